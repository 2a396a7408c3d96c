"""What an entry says of its time beside its schedule, as a value; it computes no instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt

    from celery_redlock_beat.ticks import Micros


@dataclass(frozen=True, slots=True)
class Terms:
    """The keys of an entry that its timetable depends on; ``None`` where the entry says nothing.

    ``name`` is the entry's, which ``H`` fields hash. ``timezone`` is that of the entry. ``dst``
    tells whether a crontab follows Celery around changes of offset, or the clock; where the entry
    says nothing, ``default_dst`` does. Naive ``start`` and ``end`` are told in the entry's zone;
    both are inclusive.
    """

    name: str = ""
    timezone: str | dt.tzinfo | None = None
    dst: str | None = None
    default_dst: str = "celery"
    phase: Micros | None = None
    start: dt.datetime | None = None
    end: dt.datetime | None = None
