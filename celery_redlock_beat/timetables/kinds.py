"""Which timetable each kind of schedule has: one reader per exact class; it knows no app."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from celery.schedules import crontab, schedule, solar

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Micros, Timetable, to_micros
from celery_redlock_beat.timetables.celery_crontab import CeleryCrontab
from celery_redlock_beat.timetables.cron import cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.oneoff import Once, clocked_at, instant_of, once
from celery_redlock_beat.timetables.real_crontab import RealCrontab
from celery_redlock_beat.timetables.relative import Relative
from celery_redlock_beat.timetables.rule import is_rule_text, rrule, rule_of
from celery_redlock_beat.timetables.solar import Solar

if TYPE_CHECKING:
    from celery_redlock_beat.timetables.terms import Terms
    from celery_redlock_beat.timetables.zones import Zone

_REFERENCE = to_micros(dt.datetime(2000, 1, 1, tzinfo=dt.UTC))


def schedule_of(spec: Any) -> Any:
    """Return what Celery takes for a schedule: also of a string, or of a rule of dateutil.

    A string is a cron string, or a rule as in RFC 5545.

    Raises:
        ConfigurationError: The string is neither; says what is wrong with it.

    """
    if isinstance(spec, str):
        return rrule(spec) if is_rule_text(spec) else cron(spec)
    return rule_of(spec) or spec


def check_spec(spec: Any) -> None:
    """Refuse what cannot be a schedule; whether an interval is positive is another question.

    Raises:
        ConfigurationError: It is neither a finite number, a timedelta, nor a schedule object.

    """
    if is_span(spec):
        _span(spec)
    elif not is_timetable(spec) and (
        isinstance(spec, type) or not callable(getattr(spec, "is_due", None))
    ):
        raise ConfigurationError(
            f"{spec!r} is not a schedule; use a number of seconds, a timedelta, a cron string, "
            "or a schedule object (one with a method is_due) as crontab()"
        )


def timetable_of(spec: Any, zone: Zone, terms: Terms) -> Timetable | None:
    """Return the timetable of a schedule whose exact class is known: a subclass may differ."""
    if is_span(spec):
        return Interval(_period(spec))
    if is_timetable(spec):
        return cast("Timetable", spec)
    if getattr(spec, "nowfun", None) is not None:
        return None
    at = clocked_at(spec)
    if at is not None:
        return Once(instant_of(at, zone))
    reader = _READERS.get(type(spec))
    return reader(spec, zone, terms) if reader else None


def _of_schedule(spec: schedule, zone: Zone, _terms: Terms) -> Timetable:
    period = _period(spec.run_every)
    return Relative(period, zone) if spec.relative else Interval(period)


def _of_crontab(spec: crontab, zone: Zone, terms: Terms) -> Timetable:
    kind = RealCrontab if (terms.dst or terms.default_dst) == "real" else CeleryCrontab
    # Celery before 5.7 lets the 30th of February be made; 5.7 refuses it in the constructor.
    try:
        table = kind.of(spec, zone)
        fires = table.next_after(_REFERENCE) is not None
    except ValueError:
        fires = False
    if not fires:
        raise ConfigurationError(
            f"{spec!r} never fires: its days do not occur in its months; correct one of them, "
            "or remove the entry"
        )
    return table


def _of_cron(spec: cron, zone: Zone, terms: Terms) -> Timetable:
    return spec.timetable(zone, terms.name)


def _of_own(spec: once | rrule, zone: Zone, _terms: Terms) -> Timetable:
    return spec.timetable(zone)


def _of_solar(spec: solar, _zone: Zone, _terms: Terms) -> Timetable:
    table = Solar.of(spec)
    if table.next_after(_REFERENCE) is None:
        raise ConfigurationError(
            f"{spec!r} never fires: there is no such event at this place; correct its latitude, "
            "or remove the entry"
        )
    return table


_READERS: dict[type, Callable[[Any, Zone, Terms], Timetable]] = {
    schedule: _of_schedule,
    crontab: _of_crontab,
    cron: _of_cron,
    once: _of_own,
    rrule: _of_own,
    solar: _of_solar,
}


def is_span(spec: Any) -> bool:
    """Whether it is a length of time: seconds, or a timedelta."""
    # True is an int, and hardly ever means one second.
    return isinstance(spec, (int, float, dt.timedelta)) and not isinstance(spec, bool)


def is_timetable(spec: Any) -> bool:
    """Whether it is a timetable, of ours or of the user's own."""
    names = ("fingerprint", "next_after", "latest_until", "count_between")
    return not isinstance(spec, type) and all(hasattr(spec, name) for name in names)


def _span(every: float | dt.timedelta | None) -> dt.timedelta:
    try:
        return every if isinstance(every, dt.timedelta) else dt.timedelta(seconds=every)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(
            f"an interval must be a finite number of seconds or a timedelta, not {every!r}"
        ) from None


def _period(every: float | dt.timedelta | None) -> Micros:
    span = _span(every)
    period = span // dt.timedelta(microseconds=1)
    if period <= 0:
        raise ConfigurationError(
            "an interval must be positive and at least one microsecond long, not "
            f"{span.total_seconds():g} s; to switch an entry off, remove or disable it"
        )
    return period
