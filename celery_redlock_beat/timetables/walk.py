"""The canonical walk: makes of a stepper that goes wrong where clocks change a lawful timetable.

It must not know what steps (CronSim, Celery or anything else), and it reads no clock.

A *step* answers the next instant after a moment.  Between two changes of UTC offset a step may
begin anywhere and the answer is the same.  Around a change it is not: CronSim and Celery then
answer differently for different beginnings, and sometimes an instant before the beginning.  So
each walked timetable names, for each change, the *stretch* that is only ever walked from its own
fixed beginning; what is found there is kept.  Every instant then has one owner, a calm piece or a
stretch, and the answer does not depend on where a node began.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice, takewhile

from celery_redlock_beat.ticks import COUNT_LIMIT, SECOND, Count, Micros, to_micros
from celery_redlock_beat.timetables.zones import DAY, Change, Zone, changes_near

MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
# Leave room at both ends of the calendar for offsets and for the search around a day.
FLOOR: Micros = to_micros(datetime(1, 1, 10, tzinfo=UTC))
CEILING: Micros = to_micros(datetime(9999, 12, 20, tzinfo=UTC))
# 29 February on a given weekday can be 40 years apart (around a century without a leap day).
FARTHEST: Micros = 60 * 366 * DAY


@dataclass(frozen=True)
class Stretch:
    """The instants from ``begin`` up to but not including ``end``; may be empty."""

    begin: Micros
    end: Micros


class Walked(ABC):
    """A timetable that is walked by steps; subclasses are immutable and hash by value."""

    @property
    @abstractmethod
    def place(self) -> Zone:
        """The zone in which the schedule is told."""

    @abstractmethod
    def step(self, moment: Micros) -> Micros | None:
        """Return the next instant after ``moment``, reliable up to the next stretch."""

    @abstractmethod
    def stretch(self, change: Change) -> Stretch | None:
        """Return what must be walked from its beginning around a change, if anything."""

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the first instant later than ``moment``, or ``None`` if there is none."""
        # By the law of the grid the answer of the minute's beginning holds until that instant has
        # come, so that all who ask within a minute share one.
        tick = _next_after(self, moment - moment % MINUTE)
        return tick if tick is None or tick > moment else _next_after(self, moment)

    def instants(self, after: Micros) -> Iterator[Micros]:
        """Yield the instants later than ``after``, ascending."""
        tick = first_after(self, after)
        while tick is not None:
            yield tick
            tick = first_after(self, tick)

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the last instant not later than ``moment``, or ``None`` within 60 years."""
        return _latest_until(self, moment)

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count the instants strictly between two moments: exactly, or up to ``COUNT_LIMIT``."""
        first, before = self.next_after(after), min(before, CEILING)
        return Count(0) if first is None or first >= before else _count_from(self, first, before)


@lru_cache(maxsize=16_384)
def _next_after(table: Walked, moment: Micros) -> Micros | None:
    return first_after(table, moment)


@lru_cache(maxsize=16_384)
def _latest_until(table: Walked, moment: Micros) -> Micros | None:
    return last_until(table, moment)


@lru_cache(maxsize=4096)
def _count_from(table: Walked, first: Micros, before: Micros) -> Count:
    following = takewhile(lambda tick: tick < before, table.instants(first))
    number = 1 + sum(1 for _ in islice(following, COUNT_LIMIT))
    return Count(min(number, COUNT_LIMIT), exact=number <= COUNT_LIMIT)


def first_after(table: Walked, moment: Micros) -> Micros | None:
    """Return the first instant later than ``moment``; pieces and stretches take turns."""
    cursor = max(moment, FLOOR)
    passed = cursor
    if cursor >= CEILING:
        return None
    here = _stretch_around(table, cursor)
    if here is not None:
        ticks = _ticks_in(table, here)
        index = bisect_right(ticks, cursor)
        if index < len(ticks):
            return ticks[index]
        cursor, passed = here.end - 1, here.begin
    while True:
        tick = table.step(cursor)
        if tick is None or tick >= CEILING:
            return None
        ahead = _stretch_before(table, cursor, passed, tick)
        if ahead is None:
            return tick
        ticks = _ticks_in(table, ahead)
        if ticks:
            return ticks[0]
        cursor, passed = ahead.end - 1, ahead.begin


def last_until(table: Walked, moment: Micros) -> Micros | None:
    """Return the last instant not later than ``moment``, looking back ever four times as far."""
    reach, empty_from = MINUTE, moment
    while True:
        tick = first_after(table, moment - reach)
        if tick is not None and tick <= moment:
            return _bisect_last(table, tick, empty_from, moment)
        if reach > FARTHEST or moment - reach < FLOOR:
            return None
        empty_from, reach = moment - reach, reach * 4


def _bisect_last(table: Walked, tick: Micros, empty_from: Micros, moment: Micros) -> Micros:
    """Narrow down to the last instant, given one, and a moment after which there is none.

    Bisecting, and not walking on from ``tick``, bounds the work where a quiet night follows hours
    of one instant a second.
    """
    following = first_after(table, tick)
    while following is not None and following <= moment:
        tick = following
        middle = (tick + empty_from) // 2
        later = first_after(table, middle)
        if later is not None and later <= moment:
            tick = later
        else:
            empty_from = middle
        following = first_after(table, tick)
    return tick


@lru_cache(maxsize=1024)
def _ticks_in(table: Walked, stretch: Stretch) -> tuple[Micros, ...]:
    return tuple(_walk(table, stretch))


def _walk(table: Walked, stretch: Stretch) -> Iterator[Micros]:
    last = begin = stretch.begin - 1
    while begin < stretch.end:
        tick = table.step(begin)
        if tick is None or tick >= stretch.end:
            return
        if tick > last:
            yield tick
            last = begin = tick
        else:  # the answer lies before the question: ask again from a little later
            begin += MINUTE


def _stretches_near(table: Walked, day: int) -> Iterator[Stretch]:
    for change in changes_near(table.place, day):
        stretch = table.stretch(change)
        if stretch is not None:
            yield stretch


def _stretch_around(table: Walked, moment: Micros) -> Stretch | None:
    for stretch in _stretches_near(table, moment // DAY):
        if stretch.begin <= moment < stretch.end:
            return stretch
    return None


def _stretch_before(table: Walked, cursor: Micros, passed: Micros, tick: Micros) -> Stretch | None:
    """Return the first stretch after ``passed`` in which an earlier tick than ``tick`` may be.

    Only changes near either end count.  A step visits every local date on its way, so it can only
    miss what the clock shows again after a change that follows closely, or the rest of a day on
    which there was one; it may leap over all other changes, of years if need be.
    """
    for day in dict.fromkeys((cursor // DAY, tick // DAY)):
        for stretch in _stretches_near(table, day):
            if passed < stretch.begin <= tick:
                return stretch
    return None
