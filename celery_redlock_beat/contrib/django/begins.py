"""From when on a row counts that the ledger does not know; it reads no clock and no table.

It is where django-celery-beat would go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.contrib.django.once import saved_at
from celery_redlock_beat.contrib.django.rows import MICROSECOND, aware, kind_of, period_of
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ticks import Micros, to_datetime

if TYPE_CHECKING:
    import datetime as dt


def begins(row: Any, at: Micros | None) -> dt.datetime | None:
    """Return the last run of a row, or what stands for it; ``None``: it begins when it is known.

    A row that runs once, ``at`` an instant, is owed even if nobody was there to run it. One with a
    ``start_time`` that has never run is due from that on: an interval counts from it.
    """
    if at is not None:
        return to_datetime(at) - MICROSECOND
    if row.last_run_at is not None:
        return aware(row.last_run_at)
    if row.start_time is None:
        return None
    start = aware(row.start_time)
    if kind_of(row) != "interval":
        return start - MICROSECOND
    try:
        return start - period_of(row)
    except (EntryError, OverflowError):
        return None  # it is told as a bad row


def enabled_since(row: Any) -> dt.datetime | None:
    """Return from when on a row counts that has not run since it was enabled: when it was saved.

    Saving it as disabled has erased its last run. What the ledger knows from before is over then.
    An interval would change its phase with that, on some nodes before others: ``None``.
    """
    if row.last_run_at is not None or row.start_time is not None or kind_of(row) == "interval":
        return None
    saved = getattr(row, "date_changed", None)
    return saved_at(row) if saved else None
