"""Fixed periods, counted from the Unix epoch; knows no clock, no zone and no Celery."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Count, Micros
from celery_redlock_beat.timetables.walk import CEILING, FLOOR


def check_period(period: Micros) -> None:
    """Refuse a period that is not positive.

    Raises:
        ConfigurationError: It is not; says what to do.

    """
    if period <= 0:
        raise ConfigurationError(
            f"the period of an interval must be positive, not {period} microseconds; "
            "use a number of seconds above zero, or remove the entry"
        )


@dataclass(frozen=True)
class Interval:
    """Whole multiples of ``period`` since the epoch, shifted by ``phase`` (both in microseconds).

    Counting from the epoch and not from a start lets all nodes agree without talking, and a
    restart or a deploy does not restart the countdown.  A phase counts modulo the period, so that
    equal sets of instants are equal values.

    ``goes_on`` tells that the phase is not the entry's own, but that of the scheduler which sent it
    before.
    """

    period: Micros
    phase: Micros = 0
    goes_on: bool = False

    def __post_init__(self) -> None:
        check_period(self.period)
        object.__setattr__(self, "phase", self.phase % self.period)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the set of instants does."""
        return f"interval:{self.period}{'~' if self.goes_on else '+'}{self.phase}"

    def going_on(self, fingerprint: str) -> Interval:
        """Return it with the phase that goes on in a fingerprint of this period, or with none."""
        found = re.search(rf"\binterval:{self.period}~(\d+)", fingerprint)
        return replace(self, phase=int(found[1]) if found else 0, goes_on=bool(found))

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the first instant later than ``moment``; ``None`` past the year 9999."""
        return self._representable(self._index(moment) + 1)

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the last instant not later than ``moment``; ``None`` before the year 1."""
        return self._representable(self._index(moment))

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count the instants strictly between two moments, always exactly."""
        return Count(max(0, self._index(before - 1) - self._index(after)))

    def _index(self, moment: Micros) -> int:
        return (moment - self.phase) // self.period

    def _representable(self, index: int) -> Micros | None:
        tick = self.phase + index * self.period
        return tick if FLOOR <= tick <= CEILING else None
