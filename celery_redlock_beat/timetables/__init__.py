"""From what users write as a schedule to a timetable; decides by exact class and asks no clock."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfoNotFoundError

from celery.schedules import crontab, schedule

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Micros, Timetable, to_micros
from celery_redlock_beat.timetables.celery_crontab import CeleryCrontab
from celery_redlock_beat.timetables.cron import Cron, cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.opaque import Opaque
from celery_redlock_beat.timetables.zones import Zone, zone_of

__all__ = ["CeleryCrontab", "Cron", "Interval", "Opaque", "cron", "timetable_for"]

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
        place = _app_zone(app)
        return _shared(Cron(spec, place.name, place.tz))
    if isinstance(spec, (int, float, dt.timedelta)) and not isinstance(spec, bool):
        return Interval(_period(spec))
    if _is_timetable(spec):
        return cast("Timetable", spec)
    if isinstance(spec, type) or not callable(getattr(spec, "is_due", None)):
        raise ConfigurationError(
            f"{spec!r} is not a schedule; use a number of seconds, a timedelta, a cron string, "
            "or a schedule object (one with a method is_due) as crontab()"
        )
    if getattr(spec, "nowfun", None) is not None:
        return Opaque(spec, app)
    return _known(spec, app) or Opaque(spec, app)


def _known(spec: Any, app: Any) -> Timetable | None:
    """Return the timetable of a schedule whose exact class is known: a subclass may differ."""
    if type(spec) is schedule and not spec.relative:
        return Interval(_period(spec.run_every))
    if type(spec) is crontab:
        # `tz` is cached on the instance, where it can also be set by hand.
        own = vars(spec).get("tz")
        return _shared(_crontab(spec, _app_zone(app) if own is None else zone_of(own)))
    if type(spec) is cron:
        place = zone_of(spec.timezone) if spec.timezone is not None else _app_zone(app)
        return _shared(Cron(spec.expression, place.name, place.tz))
    return None


def _is_timetable(spec: Any) -> bool:
    names = ("fingerprint", "next_after", "latest_until", "count_between")
    return not isinstance(spec, type) and all(hasattr(spec, name) for name in names)


def _period(every: float | dt.timedelta | None) -> Micros:
    try:
        span = every if isinstance(every, dt.timedelta) else dt.timedelta(seconds=every)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(
            f"an interval must be a finite number of seconds or a timedelta, not {every!r}"
        ) from None
    period = span // dt.timedelta(microseconds=1)
    if period <= 0:
        raise ConfigurationError(
            f"an interval must be positive and at least one microsecond long, not {every!r}; "
            "to switch an entry off, remove or disable it"
        )
    return period


def _app_zone(app: Any) -> Zone:
    try:
        return zone_of(app.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"the setting timezone = {app.conf.timezone!r} names no time zone ({error}); "
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
