"""The five expanded fields of Celery's crontab, as a value; it knows no zone and no instant."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from calendar import monthrange
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery.schedules import crontab

WHOLE = {
    "minute": frozenset(range(60)),
    "hour": frozenset(range(24)),
    "day_of_week": frozenset(range(7)),
    "day_of_month": frozenset(range(1, 32)),
    "month_of_year": frozenset(range(1, 13)),
}
# The 29th of February on a given weekday can be 40 years off.
_FARTHEST_MONTHS = 50 * 12


@dataclass(frozen=True, slots=True)
class CrontabFields:
    """The minutes, hours and days on which a crontab fires; a day must be in all three fields."""

    minute: frozenset[int]
    hour: frozenset[int]
    day_of_week: frozenset[int]
    day_of_month: frozenset[int]
    month_of_year: frozenset[int]

    @staticmethod
    def of(schedule: crontab) -> CrontabFields:
        """Return the fields of a crontab."""
        return CrontabFields(*(frozenset(getattr(schedule, name)) for name in WHOLE))

    @property
    def text(self) -> str:
        """The fields in their order, each as a star or a list of numbers."""
        values = (getattr(self, each.name) for each in fields(self))
        return " ".join(map(_text, values, WHOLE.values()))

    def is_whole(self, name: str) -> bool:
        """Answer whether a field leaves nothing out."""
        return bool(getattr(self, name) == WHOLE[name])

    def wall_after(self, wall: dt.datetime) -> dt.datetime:
        """Return the first match after what a clock shows, both naive.

        Raises:
            ValueError: There is none within 50 years, or before the year 10000.

        """
        times = _times(self.hour, self.minute)
        index = bisect_right(times, wall.hour * 60 + wall.minute)
        if index < len(times) and self._has(wall.date()):
            day, time = wall.date(), times[index]
        else:
            day, time = self._day_after(wall.date()), min(times)
        return dt.datetime.combine(day, dt.time(*divmod(time, 60)))

    def _has(self, day: dt.date) -> bool:
        return (
            day.month in self.month_of_year
            and day.day in self.day_of_month
            and day.isoweekday() % 7 in self.day_of_week
        )

    def _day_after(self, day: dt.date) -> dt.date:
        this_month = day.year * 12 + day.month - 1
        for number in range(this_month, this_month + _FARTHEST_MONTHS):
            year, month = number // 12, number % 12 + 1
            if month in self.month_of_year:
                for each in range(1, monthrange(year, month)[1] + 1):
                    found = dt.date(year, month, each)
                    if found > day and self._has(found):
                        return found
        raise ValueError("no day is in all of the fields")


@lru_cache(maxsize=1024)
def _times(hours: frozenset[int], minutes: frozenset[int]) -> tuple[int, ...]:
    """Return the times of day, in minutes since midnight, ascending."""
    return tuple(sorted(hour * 60 + minute for hour in hours for minute in minutes))


def _text(values: frozenset[int], whole: frozenset[int]) -> str:
    return "*" if values == whole else ",".join(map(str, sorted(values)))
