"""What a recurrence text means in a zone, with all that it leaves unsaid; it walks no rule."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from celery_redlock_beat.timetables.rule.instants import RuleSet, micros_of
from celery_redlock_beat.timetables.rule.parts import FREQUENCIES, TIMES
from celery_redlock_beat.timetables.rule.periods import ONE_DAY
from celery_redlock_beat.timetables.rule.recurrence import Recurrence
from celery_redlock_beat.timetables.wall import instant_showing
from celery_redlock_beat.timetables.zones import DAY, Zone, zone_of

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.timetables.rule.parts import Parts, Stamp
    from celery_redlock_beat.timetables.rule.periods import By
    from celery_redlock_beat.timetables.rule.text import RuleText

_NO_START = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a local time)
_DAYS = ("BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY")
_SECOND = dt.timedelta(seconds=1)


def meaning(text: RuleText, place: Zone) -> RuleSet:
    """Return the rules and dates of a text, with what it does not say, told in ``place``.

    Raises:
        ConfigurationError: A TZID is unknown.

    """
    dates, again = set(), set()
    for stamp in text.rdates:
        wall, instant = _wall(stamp, place), _instant(stamp, place)
        if _is_told_in(place, stamp) or instant_showing(place, micros_of(wall)) == instant:
            dates.add(wall)
        else:
            again.add(instant)
    return RuleSet(
        place,
        tuple(_recurrence(parts, start, place) for parts, start in text.rules),
        tuple(_recurrence(parts, start, place) for parts, start in text.exrules),
        tuple(sorted(dates)),
        tuple(sorted(again)),
        frozenset(_exdate(stamp, place) for stamp in text.exdates),
    )


def _recurrence(parts: Parts, start: Stamp | None, place: Zone) -> Recurrence:
    first = _NO_START if start is None else _wall(start, place)
    until, until_at = _until(parts.until, place)
    by = _left_to_start(parts, first) | parts.by
    weeks_matter = "BYWEEKNO" in by or (
        parts.freq == "WEEKLY" and (parts.interval > 1 or "BYSETPOS" in by)
    )
    wkst = parts.wkst if weeks_matter else 0
    return Recurrence(parts.freq, by, first, parts.interval, wkst, parts.count, until, until_at)


def _left_to_start(parts: Parts, start: dt.datetime) -> By:
    """Return the parts that a rule does not have and that its start has."""
    left: By = {}
    if parts.by.keys().isdisjoint(_DAYS):
        if parts.freq == "WEEKLY":
            left["BYDAY"] = ((start.weekday(), 0),)
        elif parts.freq in ("YEARLY", "MONTHLY"):
            left["BYMONTHDAY"] = (start.day,)
        if parts.freq == "YEARLY":
            left["BYMONTH"] = (start.month,)
    level = FREQUENCIES.index(parts.freq)
    for (name, freq), value in zip(
        TIMES.items(), (start.hour, start.minute, start.second), strict=True
    ):
        if level < FREQUENCIES.index(freq):
            left[name] = (value,)
    return left


def _until(stamp: Stamp | None, place: Zone) -> tuple[dt.datetime | None, Micros | None]:
    """Return the last local time of a rule, and the last instant if UNTIL is told in UTC."""
    if stamp is None or stamp.wall.year == dt.MAXYEAR:
        return None, None
    if stamp.zone is None:
        return stamp.wall + (ONE_DAY - _SECOND if stamp.whole_day else 0 * ONE_DAY), None
    instant = _instant(stamp, place)
    return _shown(place, instant + DAY), instant


def _exdate(stamp: Stamp, place: Zone) -> dt.date | Micros:
    if stamp.whole_day:
        return stamp.wall.date()
    return stamp.wall if _is_told_in(place, stamp) else _instant(stamp, place)


def _is_told_in(place: Zone, stamp: Stamp) -> bool:
    return stamp.zone is None or zone_of(stamp.zone) == place


def _instant(stamp: Stamp, place: Zone) -> Micros:
    zone = place if stamp.zone is None else zone_of(stamp.zone)
    return instant_showing(zone, micros_of(stamp.wall))


def _wall(stamp: Stamp, place: Zone) -> dt.datetime:
    return stamp.wall if _is_told_in(place, stamp) else _shown(place, _instant(stamp, place))


def _shown(place: Zone, instant: Micros) -> dt.datetime:
    return place.local(instant).replace(tzinfo=None)
