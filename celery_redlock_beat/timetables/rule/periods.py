"""Periods of a recurrence rule, and the days that it leaves out; knows neither zone nor dateutil.

Local times are naive datetimes.
"""

from __future__ import annotations

import datetime as dt
from calendar import isleap, monthrange
from typing import Any

ONE_DAY = dt.timedelta(days=1)
By = dict[str, tuple[Any, ...]]

_UNITS = {
    "WEEKLY": 7 * ONE_DAY,
    "DAILY": ONE_DAY,
    "HOURLY": dt.timedelta(hours=1),
    "MINUTELY": dt.timedelta(minutes=1),
    "SECONDLY": dt.timedelta(seconds=1),
}
_MONDAY = dt.datetime(1, 1, 1)  # noqa: DTZ001 (a local time)
_CYCLE = 146_097
"""After so many days the calendar repeats itself, weekdays included."""


def midnight(wall: dt.datetime) -> dt.datetime:
    """Return the beginning of a day."""
    return dt.datetime.combine(wall.date(), dt.time.min)


def period_of(freq: str, wall: dt.datetime, wkst: int) -> int:
    """Return the number of the year, month, week, … that holds ``wall``."""
    if freq == "YEARLY":
        return wall.year
    if freq == "MONTHLY":
        return wall.year * 12 + wall.month - 1
    return (wall - _zero(freq, wkst)) // _UNITS[freq]


def begin_of(freq: str, period: int, wkst: int) -> dt.datetime:
    """Return the beginning of the period of that number."""
    if freq == "YEARLY":
        return dt.datetime(period, 1, 1)  # noqa: DTZ001 (a local time)
    if freq == "MONTHLY":
        return dt.datetime(period // 12, period % 12 + 1, 1)  # noqa: DTZ001 (a local time)
    return _zero(freq, wkst) + period * _UNITS[freq]


def on_a_day_of(by: By, wall: dt.datetime) -> dt.datetime | None:
    """Return ``wall`` if its day is not left out, or else the beginning of the next such day."""
    if _counts(by, wall.date()):
        return wall
    day = midnight(wall)
    for _ in range(_CYCLE):
        day += ONE_DAY
        if _counts(by, day):
            return day
    return None


def _zero(freq: str, wkst: int) -> dt.datetime:
    return _MONDAY + wkst * ONE_DAY if freq == "WEEKLY" else _MONDAY


def _counts(by: By, day: dt.date) -> bool:
    """Tell whether a day is all that the parts ask for; BYDAY has no numbers here."""
    return (
        _is_asked(by, "BYMONTH", day.month)
        and _is_asked(by, "BYDAY", (day.weekday(), 0))
        and _is_asked(by, "BYMONTHDAY", day.day, day.day - monthrange(day.year, day.month)[1] - 1)
        and _is_asked(by, "BYYEARDAY", *_of_year(day))
    )


def _is_asked(by: By, name: str, *values: object) -> bool:
    return name not in by or any(value in by[name] for value in values)


def _of_year(day: dt.date) -> tuple[int, int]:
    number = day.timetuple().tm_yday
    return number, number - (366 if isleap(day.year) else 365) - 1
