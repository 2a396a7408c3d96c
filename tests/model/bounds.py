"""How large a world is explored: nodes, ticks, policies, and how often each fault may happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from model.rules import Rules

FAULTS = (
    "reply_lost",
    "late",
    "crash",
    "sleep",
    "failover",
    "blind",
    "flush",
    "lose_key",
    "drop_entry",
    "pause",
    "pause_until",
    "remove",
    "change",
    "skip",
)
DEEDS = ("pause", "pause_until", "remove", "change", "skip")


@dataclass(frozen=True, slots=True)
class Bounds:
    """One bounded world. ``faults`` says how often each may happen, ``most`` how many in all,
    ``attempts`` after how many a tick is settled.

    ``delivery`` is enqueue or publish. ``catch_up`` is all (each tick is wanted), latest, or none
    (what is late may not be sent). ``new`` nodes start later. ``hasty`` nodes have a clock that
    runs ahead; ``poison`` is a tick that no broker takes; ``clock_back`` lets a failover meet a
    server whose clock is one tick behind. ``limit`` is how many messages the entry may have; none
    where it is 0. ``stored`` is an entry that is kept in the ledger, ``absent`` one that nobody has
    stored yet; ``caught_up`` lets an operator resume without passing anything over. Faults that are
    ``in_order`` happen in that order only, so that long ways to one end can be seen whole.
    """

    name: str
    nodes: int = 2
    ticks: int = 1
    delivery: str = "enqueue"
    catch_up: str = "all"
    faults: tuple[tuple[str, int], ...] = ()
    most: int = 2
    attempts: int = 2
    new: int = 0
    without_entry: int = 0
    run_on_start: bool = False
    hasty: bool = False
    poison: bool = False
    clock_back: bool = False
    limit: int = 0
    in_order: tuple[str, ...] = ()
    stored: bool = False
    absent: bool = False
    caught_up: bool = False

    @property
    def has_feed(self) -> bool:
        """Whether operators do anything."""
        return self.stored or any(fault in DEEDS for fault in (*dict(self.faults), *self.in_order))

    def left(self) -> tuple[int, ...] | tuple[str, ...]:
        if self.in_order:
            return self.in_order
        allowed = dict(self.faults)
        return (self.most, *(allowed.get(fault, 0) for fault in FAULTS))


class World(NamedTuple):
    """What stays the same during one exploration."""

    bounds: Bounds
    rules: Rules = Rules()
