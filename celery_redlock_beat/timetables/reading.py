"""From what an entry says of its time to a timetable: its schedule, its zone, and its terms."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfoNotFoundError

from celery.schedules import crontab

from celery_redlock_beat.errors import ConfigurationError, SettingError
from celery_redlock_beat.timetables.bounded import Bounded
from celery_redlock_beat.timetables.cron import cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.kinds import (
    check_spec,
    is_timetable,
    schedule_of,
    timetable_of,
)
from celery_redlock_beat.timetables.oneoff import instant_of, once
from celery_redlock_beat.timetables.opaque import Opaque
from celery_redlock_beat.timetables.relative import Relative
from celery_redlock_beat.timetables.rule import rrule
from celery_redlock_beat.timetables.terms import Terms
from celery_redlock_beat.timetables.zones import Zone, zone_of

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros, Timetable

_NOTHING_SAID = Terms()


def timetable_for(spec: Any, app: Any, terms: Terms = _NOTHING_SAID) -> Timetable | Opaque:
    """Return the timetable of whatever an entry's ``schedule`` may be.

    Arguments:
        spec: Seconds, a timedelta, a cron string, a recurrence rule, a Celery schedule object, or
            a timetable.
        app: The Celery app, whose ``timezone`` holds where neither entry nor schedule have one.
        terms: What else the entry says of its time.

    Raises:
        ConfigurationError: It is none of these, never fires, or contradicts the terms.

    """
    spec = schedule_of(spec)
    check_spec(spec)
    zone = _zone(spec, app, terms)
    table = _read(spec, zone, terms)
    if table is None:
        return opaque_for(spec, app, terms)
    if terms.start is not None or terms.end is not None:
        table = _bounded(table, *_bounds(zone, terms))
    return table if is_timetable(spec) else _shared(table)


def opaque_for(spec: Any, app: Any, terms: Terms = _NOTHING_SAID) -> Opaque:
    """Return the timetable of an object that alone knows when it is due.

    Raises:
        ConfigurationError: The terms ask for what it cannot be asked.

    """
    for key in ("phase", "dst"):
        if getattr(terms, key) is not None:
            raise ConfigurationError(
                f"{key} cannot be used with {type(spec).__qualname__}, which alone knows when it "
                "is due: leave it out"
            )
    zone = _zone(spec, app, terms)
    return Opaque(spec, zone.tz, *_bounds(zone, terms))


def app_zone(app: Any) -> Zone:
    """Return the zone of the app, in which schedules without a zone of their own are told.

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


def _zone(spec: Any, app: Any, terms: Terms) -> Zone:
    """Return the zone that the entry, its schedule, or else the app names."""
    own = None if terms.timezone is None else zone_of(terms.timezone)
    if type(spec) in (cron, once, rrule) and spec.timezone is not None:
        named = zone_of(spec.timezone)
        if own not in (None, named):
            raise ConfigurationError(
                f"timezone = {own.name!r}, and its schedule has {named.name!r}: keep one of them"
            )
        return named
    # `tz` of a crontab is cached on the instance, where it can also be set by hand.
    set_by_hand = vars(spec).get("tz") if type(spec) is crontab else None
    if own is None:
        own = app_zone(app) if set_by_hand is None else zone_of(set_by_hand)
    return own


def _read(spec: Any, zone: Zone, terms: Terms) -> Timetable | None:
    """Return the timetable of a schedule whose exact class is known: a subclass may differ."""
    table = timetable_of(spec, zone, terms)
    if table is None or (terms.phase is None and terms.dst is None):
        return table
    if terms.dst is not None and type(spec) is not crontab:
        raise ConfigurationError(
            f"dst = {terms.dst!r} is about Celery's crontab, and this is another kind of schedule: "
            "leave it out"
        )
    if terms.phase is not None:
        if not isinstance(table, Interval | Relative):
            raise ConfigurationError(
                "phase shifts intervals, and this is another kind of schedule: leave it out, and "
                "write the time of day into the schedule"
            )
        return replace(table, phase=terms.phase)
    return table


def _bounded(table: Timetable, start: Micros | None, end: Micros | None) -> Timetable:
    bounded = Bounded(table, start, end)
    if start is not None and bounded.next_after(start - 1) is None:
        raise ConfigurationError(
            "its schedule never fires from its start on, or not before its end: correct one of "
            "them, or remove the entry"
        )
    return bounded


def _bounds(zone: Zone, terms: Terms) -> tuple[Micros | None, Micros | None]:
    start, end = (None if at is None else instant_of(at, zone) for at in (terms.start, terms.end))
    return start, end


@lru_cache(maxsize=4096)
def _shared(table: Timetable) -> Timetable:
    """Return the first of all equal timetables: one object makes memoised look-ups cheap."""
    return table
