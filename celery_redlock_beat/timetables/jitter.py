"""Jitter: by how much later than its instant a tick is due; a pure function, with no dice in it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros, Timetable

_BITS = 64


def jitter_of(entry: str, tick: Micros, most: Micros, gap: Micros | None) -> Micros:
    """Return the delay of one tick, the same on every node, from 0 up to but excluding ``most``.

    It also stays below ``gap``, the distance to the next tick (``None``: there is none), so that
    ticks are due in their order.
    """
    limit = most if gap is None else min(most, gap)
    digest = sha256(f"{tick}:{entry}".encode()).digest()[: _BITS // 8]
    return int.from_bytes(digest, "big") * max(0, limit) >> _BITS


def due_at(entry: str, tick: Micros, most: Micros, timetable: Timetable) -> Micros:
    """Return when a tick is due, given that it may be delayed by less than ``most``."""
    if most <= 0:
        return tick
    following = getattr(timetable, "inner", timetable).next_after(tick)
    end = getattr(timetable, "end", None)
    if end is not None:
        most = min(most, end - tick)
    gap = None if following is None else following - tick
    return tick + jitter_of(entry, tick, most, gap)
