"""Celery's solar schedules as timetables, computed by ephem; the user's object is never called.

It keeps no object of ephem, which searching would change.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import COUNT_LIMIT, SECOND, Count, Micros
from celery_redlock_beat.timetables.walk import CEILING, FLOOR
from celery_redlock_beat.timetables.zones import DAY

_OF_CENTRE = {"use_center": True}
# The method of ephem, the altitude in degrees, and whether it is that of the sun's centre.
EVENTS: dict[str, tuple[str, float, dict[str, bool]]] = {
    "dawn_astronomical": ("next_rising", -18, _OF_CENTRE),
    "dawn_nautical": ("next_rising", -12, _OF_CENTRE),
    "dawn_civil": ("next_rising", -6, _OF_CENTRE),
    "sunrise": ("next_rising", -34 / 60, {}),
    "solar_noon": ("next_transit", 0, {}),
    "sunset": ("next_setting", -34 / 60, {}),
    "dusk_civil": ("next_setting", -6, _OF_CENTRE),
    "dusk_nautical": ("next_setting", -12, _OF_CENTRE),
    "dusk_astronomical": ("next_setting", -18, _OF_CENTRE),
}
_SEARCHED_DAYS = 2 * 366  # what the sun does not do within two years, it never does there
_EPHEM_EPOCH = 25_567.5  # days from ephem's, noon of the last day of 1899, to that of Unix


@dataclass(frozen=True)
class Solar:
    """The instants of one of Celery's solar events at a place, to the second.

    They are those of Celery's ``solar``, which differ by fractions of a millisecond with the start
    of the search; here each belongs to a day and is searched from that day's own beginning.  Days
    without the event, as in a polar summer, are passed over; where it never happens, there is no
    instant.  (Celery before 5.7 runs on such days, and before 5.6 tells astronomical dusk wrong.)
    """

    event: str
    lat: float
    lon: float

    def __post_init__(self) -> None:
        if self.event not in EVENTS:
            raise ConfigurationError(
                f"{self.event!r} is no solar event; use one of {', '.join(EVENTS)}"
            )
        for name, most in (("lat", 90), ("lon", 180)):
            degrees = _degrees(getattr(self, name))
            if not -most <= degrees <= most:
                raise ConfigurationError(
                    f"{name} must be a number of degrees from -{most} to {most}, "
                    f"not {getattr(self, name)!r}"
                )
            object.__setattr__(self, name, degrees)
        _ephem()

    @staticmethod
    def of(schedule: Any) -> Solar:
        """Return the timetable of a ``celery.schedules.solar``."""
        return Solar(schedule.event, schedule.lat, schedule.lon)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the event or the place does."""
        return f"solar:{self.event}:{self.lat}:{self.lon}"

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the first instant later than ``moment``, or ``None`` within two years."""
        first = self._day(moment) - 1
        ticks = (_instant(self, day) for day in range(first, first + _SEARCHED_DAYS))
        return next((tick for tick in ticks if tick is not None and tick > moment), None)

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the last instant not later than ``moment``, or ``None`` within two years."""
        last = self._day(moment) + 1
        ticks = (_instant(self, day) for day in range(last, last - _SEARCHED_DAYS, -1))
        return next((tick for tick in ticks if tick is not None and tick <= moment), None)

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count the instants strictly between two moments, exactly within ``COUNT_LIMIT`` days."""
        days = range(self._day(after) - 1, self._day(before) + 2)
        ticks = [tick for day in days[:COUNT_LIMIT] if (tick := _instant(self, day)) is not None]
        number = bisect_left(ticks, before) - bisect_right(ticks, after)
        return Count(max(0, number), exact=len(days) <= COUNT_LIMIT)

    def _day(self, moment: Micros) -> int:
        return (moment - _midnight(self, 0)) // DAY


# A day is one of local mean solar time, which knows only the longitude.  The sun itself is never
# more than 17 minutes ahead of it or behind, so that each day has exactly one noon, about its
# middle.  The rising in the half turn before that noon, and the setting in the half turn after it,
# belong to the day.  Taken from midnight to midnight instead, in whatever time, some days would
# have two of them and some none: where the sun only just sets, it does so near midnight.
def _midnight(table: Solar, day: int) -> Micros:
    return day * DAY - round(table.lon * DAY / 360)


@lru_cache(maxsize=16_384)
def _instant(table: Solar, day: int) -> Micros | None:
    """Return the instant of the event that belongs to a day's noon, if there is one."""
    midnight = _midnight(table, day)
    if not FLOOR <= midnight <= CEILING:
        return None
    method, altitude, options = EVENTS[table.event]
    # A quarter turn before the half turn of the event: never close to it, on either side.
    quarter = -DAY // 4 if method == "next_rising" else DAY // 4
    start = (midnight + quarter) / DAY + _EPHEM_EPOCH
    ephem = _ephem()
    search = getattr(_observer(ephem, table, altitude), method)
    try:
        found: float = search(ephem.Sun(), start=start, **options)
    except ephem.CircumpolarError:  # the sun is above that altitude all day, or below it
        return None
    return round((found - _EPHEM_EPOCH) * (DAY // SECOND)) * SECOND


def _observer(ephem: Any, table: Solar, altitude: float) -> Any:
    observer = ephem.Observer()
    observer.lat, observer.lon = math.radians(table.lat), math.radians(table.lon)
    observer.elevation = observer.pressure = 0
    observer.horizon = math.radians(altitude)
    return observer


def _degrees(value: Any) -> float:
    try:
        return float(value) + 0.0  # no minus zero, which is another text
    except (TypeError, ValueError):
        return math.nan


def _ephem() -> Any:
    try:
        import ephem  # noqa: PLC0415  of an extra of Celery
    except ImportError:
        raise ConfigurationError(
            "a solar schedule needs the package ephem; install celery[solar]"
        ) from None
    return ephem
