"""Judge one entry by when its messages came; it knows no scheduler, and no schedule but the period.

Every period earns the entry one message, in whatever phase, and each message spends one:

- A message that comes more than half a period before it is earned is *extra*.
- What was earned in a silence may still be spent in the burst that ends it: that is late, and not
  missing. What is left after the burst is *missing*, in whole periods.
- Drift is forgiven: while messages come less than one and a half periods apart, none is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

EARLY = 0.5
"""How much of a period a message may come before it is earned, and what drift may save up."""
AHEAD = 0.25
"""How much of a period an entry may stay ahead: one late message makes no later one look early."""
SILENT = 1.5
"""How many periods without a message are a silence."""
ALMOST = 0.1
"""What may lack to a whole period for it to count: instants are measured, too."""


@dataclass(frozen=True)
class Verdict:
    """What became of the messages that were due; ``silence`` is the longest, in seconds."""

    due: int = 0
    missing: int = 0
    extra: int = 0
    silence: float = 0.0

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.due + other.due,
            self.missing + other.missing,
            self.extra + other.extra,
            max(self.silence, other.silence),
        )


def judge(moments: Iterable[float], period: float, start: float, end: float) -> Verdict:
    """Judge what came from ``start`` until ``end``; the last message before it sets the phase.

    Raises ``ValueError`` if there is none.
    """
    came = sorted(moment for moment in moments if moment < end)
    before = sum(moment < start for moment in came)
    if not before:
        raise ValueError("nothing came before the window")
    came = came[before - 1 :]
    gaps = [(later - earlier) / period for earlier, later in pairwise(came)]
    rest = (end - came[-1]) / period
    missing, extra = _balance(gaps, rest)
    due = round((end - start) / period)
    return Verdict(due, missing, extra, max(*gaps, rest, 0.0) * period)


def _balance(gaps: Sequence[float], rest: float) -> tuple[int, int]:
    """Count what is missing and extra, from the gaps between messages, in periods."""
    earned, missing, extra = 0.0, 0, 0
    for gap in gaps:
        if gap >= EARLY:
            lost = _whole(earned)
            missing += lost
            earned -= lost
        earned += gap
        if earned < 1 - EARLY:
            extra += 1
            continue
        earned = max(earned - 1, -AHEAD)
        if EARLY <= gap < SILENT:
            earned = min(earned, EARLY)
    if rest >= SILENT:
        earned += rest
    return missing + _whole(earned), extra


def _whole(earned: float) -> int:
    return max(0, int(earned + ALMOST))
