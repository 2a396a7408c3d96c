"""Who must know what: the nodes by the replies that they heard, the server by what it did.

What a node knows is lost with it. What the server knows is lost with its data, and grows again
when nodes tell what they remember.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from celery_redlock_beat.ticks import Micros, Tick

NEVER: Micros = -1
TOLD = "known to be settled"
"""The outcome of a tick for which a node vouches, until it is written down anew."""


class Told(NamedTuple):
    """The runs of an entry up to a mark: the ticks that were granted, and not skipped."""

    mark: Micros = 0
    ticks: frozenset[Tick] = frozenset()


@dataclass
class Mind:
    """One node's memory, and how it was of late."""

    marks: dict[str, Micros] = field(default_factory=dict)
    closed_until: dict[str, Micros] = field(default_factory=dict)
    tried: set[Tick] = field(default_factory=set)
    fence: int = 0
    runs: dict[str, Told] = field(default_factory=dict)
    published: set[Tick] = field(default_factory=set)

    ill_until: Micros = NEVER
    claimed_at: Micros = NEVER
    second: Micros = NEVER
    steps: int = 0

    def copy(self) -> Mind:
        closed, runs = dict(self.closed_until), dict(self.runs)
        return Mind(dict(self.marks), closed, set(self.tried), self.fence, runs)

    def is_well(self, now: Micros) -> bool:
        """Whether it is at work, and nothing keeps it from that."""
        return self.claimed_at != NEVER and self.ill_until < now

    def hear_of(self, entry: str, mark: Micros) -> None:
        if mark > 0:  # not: unregistered
            self.marks[entry] = max(mark, self.marks.get(entry, 0))

    def learn_closed(self, least_open: Mapping[str, Micros] | None) -> None:
        """Conclude that what is not open, up to a mark, is settled."""
        if least_open is not None:
            for entry, mark in self.marks.items():
                until = min(mark, least_open.get(entry, mark + 1) - 1)
                self.closed_until[entry] = max(until, self.closed_until.get(entry, 0))

    def knows_closed(self, tick: Tick) -> bool:
        return tick in self.tried or tick.at <= self.closed_until.get(tick.entry, 0)

    def knows_mark(self, tick: Tick) -> bool:
        return tick.at <= self.marks.get(tick.entry, 0)


class Lease(NamedTuple):
    """A grant's lease: it ends by the server's clock, and ``until`` by true time."""

    fence: int
    ends: Micros
    until: Micros
    is_released: bool = False


@dataclass
class Known:
    """What the server must know; a copy of it goes with each copy of the server's data.

    ``runs`` are the runs of each entry.
    """

    closed: dict[Tick, str] = field(default_factory=dict)
    marks: dict[str, Micros] = field(default_factory=dict)
    leases: dict[Tick, Lease] = field(default_factory=dict)
    fence: int = 0
    runs: dict[str, Told] = field(default_factory=dict)

    def copy(self) -> Known:
        marks, leases = dict(self.marks), dict(self.leases)
        return Known(dict(self.closed), marks, leases, self.fence, dict(self.runs))

    def learn(self, mind: Mind, forgotten: set[Tick], open_ticks: Collection[Tick]) -> int:
        """Know from now on what a node knew; return how many forgotten ticks that brought back."""
        self.fence = max(self.fence, mind.fence)
        for entry, mark in mind.marks.items():
            self.marks[entry] = max(mark, self.marks.get(entry, 0))
        brought_back = [
            tick
            for tick in forgotten - self.closed.keys()
            if mind.knows_closed(tick) or (mind.knows_mark(tick) and tick not in open_ticks)
        ]
        self.closed.update(dict.fromkeys(brought_back, TOLD))
        return len(brought_back)
