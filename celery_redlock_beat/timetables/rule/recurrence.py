"""One recurrence rule as a row of local times, computed by python-dateutil; it knows no zone.

dateutil walks from a rule's start, and on to the year 9999 where nothing matches.  So it is given a
start that is near and means the same, the beginning of the period that holds the moment asked for.
And it is not told of days that a rule only leaves out, lest it look at every second of them.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from dateutil import rrule as dateutil

from celery_redlock_beat.timetables.rule.parts import FREQUENCIES, TIMES
from celery_redlock_beat.timetables.rule.periods import (
    ONE_DAY,
    By,
    begin_of,
    midnight,
    on_a_day_of,
    period_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.ticks import Micros

_DAYS = ("BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY")
_MAKING_DAYS = ("YEARLY", "MONTHLY", "WEEKLY")
"""With these frequencies, BYDAY and its like make days; with the others they leave days out."""
_MISSES = 1_000
"""Days in a row that count, but on which an interval has no time: then there is none to come."""


@dataclass(frozen=True)
class Recurrence:
    """The local times of a rule from ``start`` to ``until``, both inclusive.

    ``by`` has also the parts that the rule leaves to its start, since the start is moved.  Whoever
    knows the zone must look at ``until_at``; ``until`` is then a bound that is not before it.
    """

    freq: str
    by: By = field(hash=False)
    start: dt.datetime
    interval: int = 1
    wkst: int = 0
    count: int | None = None
    until: dt.datetime | None = None
    until_at: Micros | None = None

    def since(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        """Yield the local times that are not before ``wall``, ascending."""
        if self.count is None:
            return self.endless(wall)
        walls = _counted(self)
        return iter(walls[bisect_left(walls, wall) :])

    def endless(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        """Yield the local times that are not before ``wall``, as if there were no count."""
        wall = max(wall, self.start)
        # Raised at the end of the calendar, and where an interval never hits an hour or minute.
        with suppress(ValueError, OverflowError):
            for found in self._from_about(wall):
                if self.until is not None and found > self.until:
                    return
                if found >= wall:
                    yield found

    def _from_about(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        if self.freq in _MAKING_DAYS and "BYSETPOS" not in self.by:
            return self._on_days(wall)
        if self.freq not in _MAKING_DAYS and not self.by.keys().isdisjoint(_DAYS):
            return self._leaving_days_out(wall)
        return self._walk(self._start_near(wall), self.by)

    def _on_days(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        """Let dateutil find the days, and put each time of day on them."""
        times = [
            dt.timedelta(hours=hour, minutes=minute, seconds=second)
            for hour, minute, second in product(*(self.by[name] for name in TIMES))
        ]
        at_midnight = self.by | dict.fromkeys(TIMES, (0,))
        for day in self._walk(midnight(self._start_near(wall)), at_midnight):
            if day > wall - ONE_DAY:
                for time in times:
                    yield day + time

    def _leaving_days_out(self, wall: dt.datetime) -> Iterator[dt.datetime]:
        """Let dateutil find the times of days that count, one day after the other."""
        on_every_day = {name: self.by[name] for name in self.by if name not in _DAYS}
        begin, misses = on_a_day_of(self.by, wall), 0
        while begin is not None and misses < _MISSES:
            end, misses = midnight(begin) + ONE_DAY, misses + 1
            for found in self._walk(self._start_near(begin), on_every_day):
                if found >= end:
                    break
                if found >= begin:
                    misses = 0
                    yield found
            else:
                return
            begin = on_a_day_of(self.by, found)

    def _walk(self, start: dt.datetime, by: By) -> Iterator[dt.datetime]:
        parts: dict[str, Any] = {name.lower(): values for name, values in by.items()}
        days = parts.pop("byday", None)
        if days is not None:
            parts["byweekday"] = [dateutil.weekday(day, number or None) for day, number in days]
        freq: Any = FREQUENCIES.index(self.freq)
        return iter(dateutil.rrule(freq, start, self.interval, self.wkst, **parts))

    def _start_near(self, wall: dt.datetime) -> dt.datetime:
        """Return the beginning of the rule's last period that begins by ``wall``."""
        first, here = (period_of(self.freq, each, self.wkst) for each in (self.start, wall))
        periods = (here - first) // self.interval
        # BYSETPOS counts from the start in a first week, of which dateutil only sees the rest.
        if periods <= 0:
            return self.start
        return begin_of(self.freq, first + periods * self.interval, self.wkst)


@lru_cache(maxsize=256)
def _counted(rule: Recurrence) -> tuple[dt.datetime, ...]:
    return tuple(islice(rule.endless(rule.start), rule.count))
