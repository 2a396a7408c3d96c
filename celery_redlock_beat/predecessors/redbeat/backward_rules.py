"""A recurrence rule as RedBeat would write it, with an offset for its zone; it computes no tick."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.redbeat.coding import TYPE
from celery_redlock_beat.predecessors.redbeat.rules import NUMBERS
from celery_redlock_beat.ticks import SECOND, to_micros
from celery_redlock_beat.timetables.rule.parts import FREQUENCIES
from celery_redlock_beat.timetables.rule.text import read
from celery_redlock_beat.timetables.zones import DAY

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.timetables import rrule
    from celery_redlock_beat.timetables.rule.parts import Parts, Stamp
    from celery_redlock_beat.timetables.zones import Zone

NO_START = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (a local time)
A_YEAR = range(0, 366 * DAY, 30 * DAY)

Told = tuple[dict[str, Any], tuple[str, ...]]


def rule_data(spec: rrule, place: Zone, at: Micros) -> Told:
    """Return RedBeat's data of a rule that is told in ``place``, and notes; ``at`` is about now.

    Raises:
        ConfigurationError: RedBeat cannot say it.

    """
    text = read(spec.timetable(place).text)
    if len(text.rules) != 1 or text.exrules or text.rdates or text.exdates:
        raise ConfigurationError(
            "RedBeat has one rule alone, without further dates (RDATE, EXDATE, EXRULE): make an "
            "entry of each"
        )
    ((parts, start),) = text.rules
    if any(number for _, number in parts.by.get("BYDAY", ())):
        raise ConfigurationError(
            "RedBeat forgets the number of a weekday, as in 2MO, and would send it every week: "
            "write the days of the month, as BYMONTHDAY=8,9,10,11,12,13,14 with BYDAY=MO"
        )
    offset = place.offset(at)
    changes = any(place.offset(at + later) != offset for later in A_YEAR)
    lost = f"RedBeat keeps the present offset of {place.name} alone: it is an hour off once clocks "
    notes = (f"{lost}change",) if changes else ()
    first = NO_START if start is None else start.wall
    begin = _near(parts, place, at) if first == NO_START else first
    return _data(parts, begin, offset), notes


def _data(parts: Parts, begin: dt.datetime, offset: Micros) -> dict[str, Any]:
    by = {key: list(parts.by[name]) if name in parts.by else None for key, name in NUMBERS.items()}
    days = [{TYPE: "weekday", "wkday": day} for day, _ in parts.by.get("BYDAY", ())]
    data = {
        TYPE: "rrule",
        "freq": FREQUENCIES.index(parts.freq),
        "interval": parts.interval,
        "wkst": parts.wkst or None,
        "count": parts.count,
        **{key: by[key] for key in ("bysetpos", "bymonth", "bymonthday", "byyearday")},
        "byeaster": None,
        "byweekno": by["byweekno"],
        "byweekday": days or None,
        **{key: by[key] for key in ("byhour", "byminute", "bysecond")},
        **_instant("dtstart", begin, offset, offset),
    }
    if parts.until is not None:
        data |= _until(parts.until, offset)
    return data


def _until(stamp: Stamp, offset: Micros) -> dict[str, Any]:
    return _instant("until", stamp.wall, 0 if stamp.zone else offset, offset)


def _instant(key: str, wall: dt.datetime, told_at: Micros, offset: Micros) -> dict[str, Any]:
    at = (to_micros(wall.replace(tzinfo=dt.UTC)) - told_at) // SECOND
    return {key: at, f"{key}_tz": offset / (60 * SECOND)}


def _near(parts: Parts, place: Zone, at: Micros) -> dt.datetime:
    """Return a start for a rule that has none: RedBeat walks from there whenever it asks."""
    today = place.local(at).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    often = FREQUENCIES.index(parts.freq) > FREQUENCIES.index("DAILY")
    return today if often else today.replace(year=today.year - 1, month=1, day=1)
