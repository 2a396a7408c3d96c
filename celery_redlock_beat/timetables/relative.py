"""Periods that count anew on each local date; knows no clock and no Celery."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import timedelta

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import COUNT_LIMIT, Count, Micros
from celery_redlock_beat.timetables.interval import check_period
from celery_redlock_beat.timetables.walk import CEILING, FLOOR
from celery_redlock_beat.timetables.wall import day_at, day_start
from celery_redlock_beat.timetables.zones import DAY, Zone


@dataclass(frozen=True)
class Relative:
    """Multiples of ``period`` since the start of each local date, shifted by ``phase``.

    Both are elapsed time, in microseconds: a date of 23 or 25 hours has an hour less or more of
    ticks.  The last period of a date is cut short where the period does not divide it.

    A period of whole days has one tick on every n-th date, counted from 1970-01-01 (so that a week
    begins on a Thursday), at the date's start.  A phase of more than a day then moves the dates,
    and a date is not left out for being shorter than the rest of the phase.

    Celery's own ``relative=True`` adds the period to the last run and rounds that down to a whole
    day, hour or minute, the longest of them that is not longer than the period.  For exactly one of
    them this is the same.  Otherwise Celery's instants depend on the last run, and its
    ``timedelta(minutes=90)`` runs every hour, its ``timedelta(hours=36)`` every day.
    """

    period: Micros
    zone: Zone
    phase: Micros = 0

    def __post_init__(self) -> None:
        check_period(self.period)
        if self.period > DAY and self.period % DAY:
            raise ConfigurationError(
                "a relative interval counts anew each local midnight, so one longer than a day "
                f"must be whole days, not {timedelta(microseconds=self.period)}; use "
                "timedelta(days=…), or leave out relative=True"
            )
        object.__setattr__(self, "phase", self.phase % self.period)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the period, the phase or the zone does."""
        return f"relative:{self.period}+{self.phase}:{self.zone.name}"

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the first instant later than ``moment``; ``None`` past the year 9999."""
        moment = max(moment, FLOOR - 1)
        if moment >= CEILING:
            return None
        day = self._counted(day_at(self.zone, moment) - 1)  # a phase may reach into the next date
        while day * DAY <= CEILING:
            ticks = self._ticks_of(day)
            index = bisect_right(ticks, moment)
            if index < len(ticks):
                return ticks[index] if ticks[index] <= CEILING else None
            day += self._every
        return None

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the last instant not later than ``moment``; ``None`` before the year 1."""
        moment = min(moment, CEILING)
        if moment < FLOOR:
            return None
        day = self._counted(day_at(self.zone, moment) - self._every + 1)
        while day * DAY >= FLOOR - DAY:
            ticks = self._ticks_of(day)
            index = bisect_right(ticks, moment)
            if index:
                return ticks[index - 1] if ticks[index - 1] >= FLOOR else None
            day -= self._every
        return None

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count the instants strictly between two moments, exactly within ``COUNT_LIMIT`` days."""
        after, before = max(after, FLOOR - 1), min(before, CEILING + 1)
        if after >= before - 1:
            return Count(0)
        first = self._counted(day_at(self.zone, after) - 1)
        days = range(first, day_at(self.zone, before - 1) + 1, self._every)
        number = sum(
            bisect_left(ticks, before) - bisect_right(ticks, after)
            for ticks in map(self._ticks_of, days[:COUNT_LIMIT])
        )
        return Count(number, exact=len(days) <= COUNT_LIMIT)

    @property
    def _every(self) -> int:
        return max(1, self.period // DAY)

    def _counted(self, day: int) -> int:
        """Return the first date from ``day`` on that may have ticks."""
        return day + (self.phase // DAY - day) % self._every

    def _ticks_of(self, day: int) -> range:
        """Return the ticks of a date, which are evenly spaced; none if the zone skipped it."""
        begin, end = day_start(self.zone, day), day_start(self.zone, day + 1)
        if begin == end:
            return range(0)
        first = begin + self.phase % DAY
        return range(first, end, self.period) if self.period < DAY else range(first, first + 1)
