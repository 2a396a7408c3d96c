"""From what users write as a schedule to a timetable; decides by exact class and asks no clock."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfoNotFoundError

from celery.schedules import crontab, schedule

from celery_redlock_beat.errors import ConfigurationError, SettingError
from celery_redlock_beat.ticks import Micros, Timetable, to_micros
from celery_redlock_beat.timetables.celery_crontab import CeleryCrontab
from celery_redlock_beat.timetables.cron import Cron, cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.opaque import Opaque
from celery_redlock_beat.timetables.zones import Zone, zone_of

__all__ = [
    "CeleryCrontab",
    "Cron",
    "Interval",
    "Opaque",
    "app_zone",
    "check_spec",
    "cron",
    "timetable_for",
]

_REFERENCE = to_micros(dt.datetime(2000, 1, 1, tzinfo=dt.UTC))


def timetable_for(spec: Any, app: Any) -> Timetable | Opaque:
    """Return the timetable of whatever an entry's ``schedule`` may be.

    Arguments:
        spec: Seconds, a timedelta, a cron string, a Celery schedule object, or a timetable.
        app: The Celery app, whose ``timezone`` crontabs and cron strings without their own use.

    Raises:
        ConfigurationError: It is none of these, or never fires.

    """
    if isinstance(spec, str):
        place = app_zone(app)
        return _shared(Cron(spec, place.name, place.tz))
    check_spec(spec)
    if _is_span(spec):
        return Interval(_period(spec))
    if _is_timetable(spec):
        return cast("Timetable", spec)
    if getattr(spec, "nowfun", None) is not None:
        return Opaque(spec, app)
    return _known(spec, app) or Opaque(spec, app)


def check_spec(spec: Any) -> None:
    """Refuse what cannot be a schedule; whether an interval is positive is another question.

    Raises:
        ConfigurationError: It is neither a finite number, a timedelta, nor a schedule object.

    """
    if _is_span(spec):
        _span(spec)
    elif not _is_timetable(spec) and (
        isinstance(spec, type) or not callable(getattr(spec, "is_due", None))
    ):
        raise ConfigurationError(
            f"{spec!r} is not a schedule; use a number of seconds, a timedelta, a cron string, "
            "or a schedule object (one with a method is_due) as crontab()"
        )


def _is_span(spec: Any) -> bool:
    # True is an int, and hardly ever means one second.
    return isinstance(spec, (int, float, dt.timedelta)) and not isinstance(spec, bool)


def _known(spec: Any, app: Any) -> Timetable | None:
    """Return the timetable of a schedule whose exact class is known: a subclass may differ."""
    if type(spec) is schedule and not spec.relative:
        return Interval(_period(spec.run_every))
    if type(spec) is crontab:
        # `tz` is cached on the instance, where it can also be set by hand.
        own = vars(spec).get("tz")
        return _shared(_crontab(spec, app_zone(app) if own is None else zone_of(own)))
    if type(spec) is cron:
        place = zone_of(spec.timezone) if spec.timezone is not None else app_zone(app)
        return _shared(Cron(spec.expression, place.name, place.tz))
    return None


def _is_timetable(spec: Any) -> bool:
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


def app_zone(app: Any) -> Zone:
    """Return the zone of the app, in which crontabs and cron strings are told.

    Raises:
        SettingError: The app's ``timezone`` names none.

    """
    try:
        return zone_of(app.timezone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, AttributeError, OSError) as error:
        text = " ".join(map(str, error.args))  # the str of a KeyError has quotes of its own
        raise SettingError(
            f"the setting timezone = {app.conf.timezone!r} names no time zone ({text}); "
            "use an IANA name as 'Europe/Berlin'"
        ) from None


def _crontab(spec: crontab, place: Zone) -> CeleryCrontab:
    # Celery before 5.7 lets the 30th of February be made; 5.7 refuses it in the constructor.
    try:
        table = CeleryCrontab.of(spec, place)
        fires = table.next_after(_REFERENCE) is not None
    except ValueError:
        fires = False
    if not fires:
        raise ConfigurationError(
            f"{spec!r} never fires: its days do not occur in its months; correct one of them, "
            "or remove the entry"
        )
    return table


@lru_cache(maxsize=4096)
def _shared(table: Timetable) -> Timetable:
    """Return the first of all equal timetables: one object makes memoised look-ups cheap."""
    return table
