"""From what a local clock shows to instants, by offsets alone; knows no schedule.

A *wall* time is what the clock shows, in microseconds, as if it were UTC; a *day* is a local date,
counted from 1970-01-01.  The fold of tzinfo objects is not used: not all libraries agree on gaps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from celery_redlock_beat.timetables.zones import DAY, NEARBY_DAYS, Zone, changes_near

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.ticks import Micros


def instant_showing(zone: Zone, wall: Micros, fold: int = 0) -> Micros:
    """Return the instant at which the clock shows ``wall``.

    Where it does twice, ``fold`` tells which.  What lies in a gap is shifted by the gap's length:
    it is told in the offset before.
    """
    shown, before = [], wall
    for begin, end, offset in _pieces(zone, wall // DAY):
        instant = wall - offset
        if begin <= instant < end:
            shown.append(instant)
        elif instant >= end:
            before = instant
    if not shown:
        return before
    return shown[-1] if fold else shown[0]


@lru_cache(maxsize=16_384)
def day_start(zone: Zone, day: int) -> Micros:
    """Return the first instant of a local date, which need not be midnight.

    A date that the zone skipped begins and ends where the next one begins.
    """
    wall = day * DAY
    starts = (
        max(begin, wall - offset)
        for begin, end, offset in _pieces(zone, day)
        if wall - offset < end
    )
    return next(starts)


def day_at(zone: Zone, moment: Micros) -> int:
    """Return the last local date that has begun by ``moment``.

    It is later than the date that the clock shows where clocks go back over midnight: a date
    begins once.
    """
    day = (moment + zone.offset(moment)) // DAY
    while day_start(zone, day + 1) <= moment:
        day += 1
    return day


def _pieces(zone: Zone, day: int) -> Iterator[tuple[Micros, Micros, Micros]]:
    """Yield each piece of one UTC offset around a day: its begin, its end and that offset."""
    begin = (day - NEARBY_DAYS) * DAY
    offset = zone.offset(begin)
    for change in changes_near(zone, day):
        yield begin, change.at, offset
        begin, offset = change.at, offset + change.shift
    yield begin, (day + NEARBY_DAYS + 1) * DAY, offset
