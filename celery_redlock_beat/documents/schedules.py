"""A schedule as a document, and back; it computes no instant and never asks what time it is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from celery.schedules import crontab, schedule, solar

from celery_redlock_beat.documents import crontabs, spans
from celery_redlock_beat.documents.json_text import type_of
from celery_redlock_beat.documents.kinds import Kind, kind_of
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.setting_values import checked
from celery_redlock_beat.timetables import Solar, cron, once, rrule, schedule_of
from celery_redlock_beat.timetables.kinds import is_span
from celery_redlock_beat.timetables.oneoff import clocked_at
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Document = dict[str, Any]

WAY_OUT = "write a number of seconds, a cron string, a recurrence rule, or an object with a 'kind'"


def written(spec: Any) -> dict[str, Any]:
    """Return the document of whatever an entry's ``schedule`` may be, if it is not code.

    It is ``{"kind": …}`` with plain fields, of which ``read`` makes a schedule with an equal
    timetable. django-celery-beat's ``clocked`` becomes a ``once``.

    Raises:
        ConfigurationError: Only code can have it: a class of the user's own, a subclass, a
            timetable, a schedule with a ``nowfun``, a zone without an IANA name. Or it cannot be.

    """
    document = _document(spec)
    read(document)
    return document


def _document(spec: Any) -> Document:
    if is_span(spec):
        return _of_schedule(schedule(_timedelta(spec)))
    spec = schedule_of(spec)
    at = clocked_at(spec)
    writer = _of_clocked if at is not None else _WRITERS.get(type(spec))
    if writer is None:
        raise ConfigurationError(
            f"a schedule of the class {type(spec).__qualname__} is code, which only the schedule "
            "of the app itself can have; write it as a crontab, a cron string or a recurrence rule"
        )
    if spec.nowfun is not None:
        raise ConfigurationError(
            "its schedule has a 'nowfun', which is code, and only the schedule of the app itself "
            "can have that; leave it out"
        )
    return writer(spec)


def read(document: Any) -> Any:
    """Return what ``RedlockEntry(schedule=…)`` takes, of a document.

    Short forms are read as well: a number of seconds, a cron string, the text of a rule.

    Raises:
        ConfigurationError: It is none of these; names the field and the way out.

    """
    if isinstance(document, str):
        return schedule_of(document)
    if is_span(document) and not isinstance(document, dt.timedelta):
        document = {"kind": "interval", "every": document}
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"its schedule is {type_of(document)}; {WAY_OUT}")
    said = {key: value for key, value in document.items() if value is not None}
    kind = kind_of(said.pop("kind", None))
    _check_keys(document["kind"], kind, said)
    values = {
        key: checked(f"schedule.{key}", value, kind.parsers[key], ConfigurationError)
        for key, value in said.items()
    }
    return kind.make(**values)


def _check_keys(name: str, kind: Kind, said: Document) -> None:
    for key in said:
        if key not in kind.parsers:
            known = f"known are {', '.join(kind.parsers)}"
            raise ConfigurationError(
                f"its schedule of the kind {name!r} has an unknown field {key!r}; "
                f"{hint(str(key), kind.parsers, known)}"
            )
    for key in kind.needs:
        if key not in said:
            raise ConfigurationError(
                f"its schedule of the kind {name!r} has no {key!r}; add that field"
            )


def zone_name(place: str | dt.tzinfo) -> str:
    """Return the IANA name of a zone.

    Raises:
        ConfigurationError: It has none, or an unknown one.

    """
    name = place if isinstance(place, str) else zone_of(place).name
    try:
        zone_of(name)
    except ConfigurationError:
        if name is place:
            raise
        raise ConfigurationError(
            f"the time zone {name} has no IANA name, and so is code; use one as 'Europe/Berlin'"
        ) from None
    return name


def _timedelta(span: float | dt.timedelta) -> dt.timedelta:
    if isinstance(span, dt.timedelta):
        return span
    try:
        return dt.timedelta(seconds=span)
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"an interval must be a finite number of seconds or a timedelta, not {span!r}"
        ) from None


def _of_schedule(spec: schedule) -> Document:
    if not isinstance(spec.run_every, dt.timedelta):
        raise ConfigurationError("its interval has no length; give it seconds or a timedelta")
    document = {"kind": "interval", "every": spans.written(spec.run_every)}
    return {**document, "relative": True} if spec.relative else document


def _of_crontab(spec: crontab) -> Document:
    return {"kind": "crontab", **crontabs.written(spec)}


def _of_solar(spec: solar) -> Document:
    place = Solar.of(spec)
    lat, lon = spans.number(place.lat), spans.number(place.lon)
    return {"kind": "solar", "event": place.event, "lat": lat, "lon": lon}


def _of_cron(spec: cron) -> Document:
    return {"kind": "cron", "expression": spec.expression, **_zone_of(spec)}


def _of_once(spec: once) -> Document:
    fold = {"fold": 1} if spec.at.fold and spec.at.utcoffset() is None else {}
    return {"kind": "once", "at": spec.at.isoformat(), **fold, **_zone_of(spec)}


def _of_clocked(spec: Any) -> Document:
    at = clocked_at(spec)
    return {"kind": "once", "at": "" if at is None else at.isoformat()}


def _of_rule(spec: rrule) -> Document:
    start = {} if spec.dtstart is None else {"dtstart": spec.dtstart.isoformat()}
    return {"kind": "rrule", "rule": spec.rule, **start, **_zone_of(spec)}


def _zone_of(spec: cron | once | rrule) -> Document:
    return {} if spec.timezone is None else {"timezone": zone_name(spec.timezone)}


_WRITERS: dict[type, Callable[[Any], Document]] = {
    schedule: _of_schedule,
    crontab: _of_crontab,
    cron: _of_cron,
    once: _of_once,
    rrule: _of_rule,
    solar: _of_solar,
}
