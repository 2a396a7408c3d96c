"""A timetable between two instants; it knows nothing of the one that it bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Count, Micros, Timetable, to_datetime


@dataclass(frozen=True)
class Bounded:
    """The instants of ``inner`` from ``start`` to ``end``, both inclusive; ``None`` is open."""

    inner: Timetable
    start: Micros | None = None
    end: Micros | None = None

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.start > self.end:
            start, end = (to_datetime(each).isoformat() for each in (self.start, self.end))
            raise ConfigurationError(
                f"it starts at {start}, after its end at {end}, and so never fires; "
                "correct one of them, or remove the entry"
            )

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the inner timetable or a bound does."""
        start, end = ("" if each is None else each for each in (self.start, self.end))
        return f"{self.inner.fingerprint}|{start}..{end}"

    def going_on(self, fingerprint: str) -> Bounded:
        """Return it with an interval that goes on with the phase in a fingerprint."""
        going_on = getattr(self.inner, "going_on", None)
        return replace(self, inner=going_on(fingerprint)) if going_on else self

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the first instant later than ``moment``, or ``None`` if there is none."""
        tick = self.inner.next_after(self._not_before_start(moment))
        return None if tick is None or (self.end is not None and tick > self.end) else tick

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the last instant not later than ``moment``, or ``None`` if there is none."""
        tick = self.inner.latest_until(moment if self.end is None else min(moment, self.end))
        return None if tick is None or (self.start is not None and tick < self.start) else tick

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count the instants strictly between two moments, as exactly as ``inner`` does."""
        if self.end is not None:
            before = min(before, self.end + 1)
        return self.inner.count_between(self._not_before_start(after), before)

    def _not_before_start(self, moment: Micros) -> Micros:
        return moment if self.start is None else max(moment, self.start - 1)
