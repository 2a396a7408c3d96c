"""What became of one entry in a run, as sets of instants; it judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from celery_redlock_beat.ticks import Micros, to_datetime

MOST_TOLD = 5
FAULTS = ("doubled", "other_id", "early", "lost", "off_grid")
EXCUSES = ("skipped", "in_doubt", "open")
"""What the ledger may say of a tick that did not come; ``sent`` is no excuse."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one entry in a run; all instants are microseconds, sorted.

    ``due`` are the instants of the window; ``sent`` the different instants that arrived in it;
    ``doubled`` those that arrived more than once, ``other_id`` those that arrived under different
    task ids or under one that is not the tick's, ``early`` those that arrived before their instant,
    ``late`` those that arrived later than they may, ``off_grid`` those that came and were not due.
    ``resent`` are those that came again as they may. Of the due ones that never came, each is
    ``skipped``, ``in_doubt`` or ``open`` by the word of the ledger (or skipped by that of a later
    message), and otherwise ``lost``. ``latest`` is the greatest lateness.
    """

    entry: str
    due: tuple[Micros, ...] = ()
    sent: tuple[Micros, ...] = ()
    doubled: tuple[Micros, ...] = ()
    other_id: tuple[Micros, ...] = ()
    early: tuple[Micros, ...] = ()
    lost: tuple[Micros, ...] = ()
    off_grid: tuple[Micros, ...] = ()
    latest: Micros = 0
    late: tuple[Micros, ...] = ()
    skipped: tuple[Micros, ...] = ()
    in_doubt: tuple[Micros, ...] = ()
    open: tuple[Micros, ...] = ()
    resent: tuple[Micros, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether every due instant arrived exactly once, in time, and nothing else did."""
        return not any(getattr(self, name) for name in (*FAULTS, "late", *EXCUSES))

    @property
    def once(self) -> bool:
        """Whether nothing arrived twice, early or under another id; ticks may be missing."""
        return not (self.doubled or self.other_id or self.early)

    def __str__(self) -> str:
        told = [f"{self.entry}: {len(self.sent)} of {len(self.due)} due were sent"]
        told += [
            f"{name}: {told_instants(instants)}"
            for name in (*FAULTS, "late", *EXCUSES)
            if (instants := getattr(self, name))
        ]
        return "; ".join(told)


def told_instants(instants: Sequence[Micros]) -> str:
    """Return how many there are and the first of them, to be read."""
    shown = ", ".join(to_datetime(at).isoformat() for at in instants[:MOST_TOLD])
    return f"{len(instants)} ({shown}{', …' if len(instants) > MOST_TOLD else ''})"
