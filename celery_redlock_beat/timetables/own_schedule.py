"""What the schedule classes of ours share: how a stock beat asks them; no instant is computed here.

Only ``is_due``, which stock beat calls, looks at the clock that Celery gave it.
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from typing import Any

from celery.schedules import BaseSchedule, schedstate

from celery_redlock_beat.ticks import Timetable, to_micros
from celery_redlock_beat.timetables.zones import Zone, zone_of

_MICROSECOND = dt.timedelta(microseconds=1)
_NEVER = dt.timedelta(days=36_500)


class OwnSchedule(BaseSchedule):  # type: ignore[misc]
    """A schedule that has a timetable, in a zone of its own or the app's; equal by its ``_key``."""

    timezone: str | dt.tzinfo | None
    _key: tuple[Any, ...]

    @abstractmethod
    def timetable(self, zone: Zone | None = None) -> Timetable:
        """Return the timetable of this schedule in a zone; by default its own, or the app's."""

    @property
    def tz(self) -> dt.tzinfo:
        """The zone in which it is told."""
        return self._zone().tz

    def _zone(self) -> Zone:
        return zone_of(self.app.timezone if self.timezone is None else self.timezone)

    def remaining_estimate(self, last_run_at: dt.datetime) -> dt.timedelta:
        """Return how long it is from now to the first instant after ``last_run_at``."""
        last = to_micros(self.maybe_make_aware(last_run_at))
        following = self.timetable().next_after(last)
        if following is None:
            return _NEVER
        return (following - to_micros(self.maybe_make_aware(self.now()))) * _MICROSECOND

    def is_due(self, last_run_at: dt.datetime) -> tuple[bool, float]:
        """Return whether it is due, and in how many seconds to ask again."""
        remaining = self.remaining_estimate(last_run_at)
        due = remaining <= dt.timedelta(0)
        if due:
            remaining = self.remaining_estimate(self.now())
        answer: tuple[bool, float] = schedstate(due, max(remaining.total_seconds(), 0))
        return answer

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OwnSchedule):
            return self._key == other._key and bool(self.nowfun == other.nowfun)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)
