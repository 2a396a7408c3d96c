"""A schedule in RedBeat's JSON as the fields of our document; it computes no tick.

RedBeat counts an interval from its last run, and we from the epoch: where an entry begins at its
last run, its interval goes on from there, unless the document says a phase.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.documents import crontabs, spans
from celery_redlock_beat.documents.json_text import type_of
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.redbeat.coding import TYPE
from celery_redlock_beat.predecessors.redbeat.rules import rule_of
from celery_redlock_beat.ticks import EPOCH, SECOND, shown, to_micros
from celery_redlock_beat.timetables.kinds import is_span

if TYPE_CHECKING:
    from celery_redlock_beat.timetables.zones import Zone

MICROSECOND = dt.timedelta(microseconds=1)
DAY, HOUR, MINUTE = dt.timedelta(days=1), dt.timedelta(hours=1), dt.timedelta(minutes=1)
NOT_READ = "RedBeat cannot read it without 'relative', and takes it out of its schedule"
UNITS = (DAY, HOUR, MINUTE, dt.timedelta(seconds=1))


@dataclass(frozen=True, slots=True)
class Timing:
    """The ``schedule`` of a document, what else it says of its time, and what is worth telling."""

    schedule: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def timing_of(data: Any, last_run: dt.datetime | None, zone: Zone) -> Timing:
    """Return what RedBeat's schedule means; ``zone`` is the app's.

    Raises:
        ConfigurationError: It is none, or one that cannot be told; says the field.

    """
    if is_span(data):
        data = {TYPE: "interval", "every": data, "relative": False}
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"its schedule is {type_of(data)}, and must be an object")
    said = {key: value for key, value in data.items() if key != TYPE}
    kind = data.get(TYPE)
    if kind == "interval":
        return _interval(said, last_run, zone)
    if kind == "crontab":
        return _crontab(said, zone)
    if kind == "rrule":
        return Timing(*rule_of(said, zone))
    raise ConfigurationError(
        f"its schedule has the {TYPE} {shown(repr(kind))}, which RedBeat does not have: known are "
        "'interval', 'crontab' and 'rrule'"
    )


def check_keys(kind: str, said: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse a key by which RedBeat could not read the schedule either.

    Raises:
        ConfigurationError: There is one.

    """
    for key in said:
        if key not in known:
            raise ConfigurationError(
                f"its schedule of the type {kind!r} has an unknown key {shown(repr(key))}: known "
                f"are {', '.join(known)}"
            )


def _crontab(said: Mapping[str, Any], zone: Zone) -> Timing:
    check_keys("crontab", said, tuple(crontabs.RANGES))
    for key, value in said.items():
        if value is None:
            raise ConfigurationError(
                f"schedule.{key} is null, which RedBeat cannot read: write '*', or leave it out"
            )
    crontabs.made(**{key: tuple(v) if isinstance(v, list) else v for key, v in said.items()})
    lost = f"RedBeat keeps no zone of a crontab: that of the app is meant ({zone.name})"
    return Timing({"kind": "crontab", **said}, warnings=(lost,))


def _interval(said: Mapping[str, Any], last_run: dt.datetime | None, zone: Zone) -> Timing:
    check_keys("interval", said, ("every", "relative"))
    seconds = said.get("every")
    if not is_span(seconds):
        raise ConfigurationError(
            f"schedule.every = {shown(repr(seconds))} is no number of seconds: write one such as 30"
        )
    try:
        every = dt.timedelta(seconds=seconds)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        raise ConfigurationError(f"schedule.every = {seconds!r} is no finite duration") from None
    if every < MICROSECOND:
        raise ConfigurationError(
            f"schedule.every = {seconds:g} has no length, so that RedBeat sends it all the time: "
            "write a number of seconds above 0"
        )
    unit = next((each for each in UNITS if every >= each), None)
    if said.get("relative") and unit is not None:
        return _relative(every, unit, last_run, zone)
    lost = () if "relative" in said else (NOT_READ,)
    return Timing({"kind": "interval", "every": spans.written(every)}, warnings=lost)


def _from(last_run: dt.datetime | None, every: dt.timedelta, cut: tuple[str, ...]) -> Timing:
    """Return an interval that counts from another instant than the last run."""
    schedule = {"kind": "interval", "every": spans.written(every)}
    if last_run is None:
        return Timing(schedule, warnings=cut)
    phase = to_micros(last_run) % (every // MICROSECOND)
    return Timing(schedule, {"phase": spans.number(phase / SECOND)}, cut)


def _relative(
    every: dt.timedelta, unit: dt.timedelta, last_run: dt.datetime | None, zone: Zone
) -> Timing:
    """Return a relative interval as Celery runs it: whole days, hours, … after the last run.

    Celery adds the period to the last run, and rounds that down to the longest of these units.
    """
    whole = every // unit * unit
    cut = () if whole == every else (f"Celery rounds its {every} down: it ran every {whole}",)
    if unit == DAY:
        schedule = {"kind": "interval", "every": spans.written(whole), "relative": True}
        if whole == DAY or last_run is None:
            return Timing(schedule, warnings=cut)
        shown_next = zone.local(to_micros(last_run)).replace(tzinfo=None) + every
        days = (shown_next.date() - EPOCH.date()) % whole
        return Timing(schedule, {"phase": spans.number(days.total_seconds())}, cut)
    if whole == unit and unit >= MINUTE:
        schedule = {"kind": "interval", "every": spans.written(whole), "relative": True}
        return Timing(schedule, warnings=cut)
    if last_run is not None:
        local = zone.local(to_micros(last_run + every))
        minute = 0 if unit == HOUR else local.minute
        second = local.second if unit < MINUTE else 0
        last_run = local.replace(minute=minute, second=second, microsecond=0)
    return _from(last_run, whole, cut)
