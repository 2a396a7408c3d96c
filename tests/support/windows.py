"""What a timetable has, and what a clock shows; it judges neither."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import Micros, Timetable, to_datetime

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator


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
