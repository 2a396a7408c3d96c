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
    "pause",
    "drop_entry",
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """One bounded world. ``faults`` says how often each may happen, ``most`` how many in all,
    ``attempts`` after how many a tick is settled.

    ``delivery`` is enqueue or publish. ``catch_up`` is all (each tick is wanted), latest, or none
    (what is late may not be sent). ``new`` nodes start later. ``hasty`` nodes have a clock that
    runs ahead; ``poison`` is a tick that no broker takes; ``clock_back`` lets a failover meet a
    server whose clock is one tick behind. ``limit`` is how many messages the entry may have; none
    where it is 0.
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

    def left(self) -> tuple[int, ...]:
        allowed = dict(self.faults)
        return (self.most, *(allowed.get(fault, 0) for fault in FAULTS))


class World(NamedTuple):
    """What stays the same during one exploration."""

    bounds: Bounds
    rules: Rules = Rules()
