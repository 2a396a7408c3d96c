"""What a timetable has, and what a clock shows; it judges neither."""

from __future__ import annotations

import datetime as dt
from itertools import takewhile
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from celery_redlock_beat.ticks import Micros, Timetable, to_datetime, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.timetables.walk import Walked


def at(text: str, zone: str = "UTC") -> Micros:
    """Return the instant at which the clock of a zone shows a time, told as ISO 8601."""
    return to_micros(dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


def shown(table: Walked, moment: Micros) -> str:
    """Return what the clock of a timetable's zone shows, to the minute."""
    return local(moment, table.place.tz).isoformat()[:16]


def day_of(table: Walked, date: str) -> list[str]:
    """Return the local times of the ticks of a local date."""
    ticks = _ticks_after(table, at(f"{date}T00:00", table.place.name) - 1)
    walls = (shown(table, tick) for tick in ticks)
    return [wall[11:] for wall in takewhile(lambda wall: wall.startswith(date), walls)]


def ticks_within(table: Timetable, start: Micros, end: Micros) -> list[Micros]:
    """Return the ticks later than ``start`` and not later than ``end``."""
    return list(takewhile(lambda tick: tick <= end, _ticks_after(table, start)))


def _ticks_after(table: Timetable, moment: Micros) -> Iterator[Micros]:
    tick = table.next_after(moment)
    while tick is not None:
        yield tick
        tick = table.next_after(tick)


def local(moment: Micros, tz: dt.tzinfo) -> dt.datetime:
    """Return what the clock of a zone shows, without the zone."""
    return to_datetime(moment).astimezone(tz).replace(tzinfo=None)
