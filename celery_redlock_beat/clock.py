"""Ledger time on this node: Redis TIME carried on by the monotonic clock.

The wall clock decides nothing on a node: it is only the server's clock where the server is us.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.ticks import Micros

SAMPLES = 16
SLACK: Micros = 5_000
"""How far two samples may disagree beyond their round trips before the clock has jumped."""


def monotonic_micros() -> Micros:
    """Read the monotonic clock, in microseconds."""
    return time.monotonic_ns() // 1000


def wall_micros() -> Micros:
    """Read the wall clock: for a ledger in this process's memory, which is its own server."""
    return time.time_ns() // 1000


class Sample(NamedTuple):
    """One reading of the server's clock: the offset to ours is right to half a round trip."""

    round_trip: Micros
    offset: Micros


class LedgerClock:
    """Tell the ledger's time between its answers, from the sample with the least round trip."""

    def __init__(self, monotonic: Callable[[], Micros] = monotonic_micros) -> None:
        self.monotonic = monotonic
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)

    @property
    def is_known(self) -> bool:
        """Whether the ledger has told its time at least once."""
        return bool(self._samples)

    def observe(self, asked: Micros, answered: Micros, told: Micros) -> None:
        """Take in a reading: monotonic instants around the call, and the time the server told."""
        sample = Sample(answered - asked, told - (asked + answered) // 2)
        if self._samples and self._contradicts(sample):
            self._samples.clear()
        self._samples.append(sample)

    def now(self) -> Micros:
        """Return the ledger's time, in microseconds since the epoch."""
        return self.monotonic() + min(self._samples).offset

    def _contradicts(self, sample: Sample) -> bool:
        # A server's clock that was set, or another server: the old samples are worth nothing.
        best = min(self._samples)
        tolerance = (sample.round_trip + best.round_trip) // 2 + SLACK
        return abs(sample.offset - best.offset) > tolerance
