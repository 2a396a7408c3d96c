"""When an entry is due by its own last run, as RedBeat's callers ask it; it asks no ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from celery.schedules import schedstate

from celery_redlock_beat.contrib.redbeat.phases import is_plain_interval
from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables.own_schedule import OwnSchedule

if TYPE_CHECKING:
    from datetime import datetime

LOOK_AGAIN = 5.0
"""In how many seconds RedBeat asks a disabled entry again."""
SWITCHED_OFF = SimpleNamespace(
    last_run_at=None,
    schedule=SimpleNamespace(is_due=lambda _last_run_at: schedstate(is_due=False, next=LOOK_AGAIN)),
)
"""An entry that is never due."""


def following(spec: Any, last_run_at: datetime) -> datetime | None:
    """Return the first instant of a schedule after its last run, ``None`` if there is none.

    Celery's crontab tells it to within a moment, and never too early.
    """
    if isinstance(spec, OwnSchedule):
        at = spec.timetable().next_after(to_micros(last_run_at))
        return None if at is None else to_datetime(at).astimezone(last_run_at.tzinfo)
    if is_plain_interval(spec):
        after_one_period: datetime = last_run_at + spec.run_every
        return after_one_period
    remaining = spec.remaining_estimate(last_run_at)
    # What remains is from the moment before.
    due_at: datetime | None = None if remaining is None else spec.now() + remaining
    return due_at
