"""The records that a Redis server holds for the ledger, in this process; they decide nothing."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from celery_redlock_beat.ledger.steering import Kind, LastOutcome
    from celery_redlock_beat.ticks import Micros, Tick

Thing = tuple["Kind", str]
"""A stored entry or a pause, by its name."""


@dataclass(slots=True)
class Mark:
    """The record of an entry."""

    mark: Micros = 0
    since: Micros = 0
    fence: int = 0
    runs: int = 0
    fingerprint: str = ""

    @property
    def text(self) -> str:
        """The record as Redis would hold it."""
        return f"{self.mark} {self.since} {self.fence} {self.runs} {self.fingerprint}"


class Open(NamedTuple):
    """A tick claimed and not yet settled; ``previous`` is the mark before its first grant."""

    owner: str
    fence: int
    attempt: int
    previous: Micros
    waited: bool = False


class Done(NamedTuple):
    """A settled grant, kept so that its own node hears so when it asks again."""

    fence: int
    outcome: str


class Vouched(NamedTuple):
    """What nodes vouch for in a recovery: all ticks of an entry up to ``closed`` are settled.

    What lies after ``floor`` and up to ``mark`` is in doubt, unless it is known to be settled.
    ``before`` is the mark that this copy had; ``but_for`` is what is closed above open ticks.
    """

    closed: Micros
    floor: Micros
    mark: Micros
    before: Micros
    but_for: tuple[tuple[Micros, tuple[Micros, ...]], ...] = ()

    def is_closed(self, at: Micros) -> bool:
        """Tell whether a node vouched that the tick at an instant is settled."""
        return at <= self.closed or any(
            at <= closed and at not in still_open for closed, still_open in self.but_for
        )


@dataclass
class Records:
    """Everything that FLUSHALL takes, the recorded identity and the queues included.

    ``keepers`` names the keys that are still what they were: one that was lost has none. Stored
    entries and pauses are the texts that Redis would hold, each behind its revision.
    """

    marks: dict[str, Mark] = field(default_factory=dict)
    open: dict[Tick, Micros] = field(default_factory=dict)
    grants: dict[Tick, Open | Done] = field(default_factory=dict)
    settled: dict[Tick, Micros] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    present: dict[str, Micros] = field(default_factory=dict)
    nodes: dict[str, Micros] = field(default_factory=dict)
    beats: dict[str, str] = field(default_factory=dict)
    vouched: dict[str, Vouched] = field(default_factory=dict)
    passed_over: dict[Tick, Micros] = field(default_factory=dict)
    keepers: set[str] = field(default_factory=set)
    audit: list[dict[str, str]] = field(default_factory=list)
    last: dict[str, LastOutcome] = field(default_factory=dict)
    history: list[dict[str, str]] = field(default_factory=list)
    fired: dict[str, Micros] = field(default_factory=dict)

    entries: dict[str, bytes] = field(default_factory=dict)
    paused: dict[str, bytes] = field(default_factory=dict)
    changes: dict[Thing, int] = field(default_factory=dict)
    gone: dict[Thing, int] = field(default_factory=dict)

    # What is lost with the marks.
    identity: str | None = None
    epoch: str | None = None
    fence: int = 0
    recovering: str | None = None
    hold_down: Micros = 0
    began: Micros = 0
    revision: int = 0
    pruned: int = 0
    repairs: dict[str, int] = field(default_factory=dict)
    unwanted: dict[str, list[Micros]] = field(default_factory=dict)
    seeds: dict[str, Micros] = field(default_factory=dict)

    lists: dict[str, list[str | bytes | int]] = field(default_factory=dict)
    not_lists: set[str] = field(default_factory=set)
    published: list[tuple[str, str | bytes | int]] = field(default_factory=list)


NAMES = [each.name for each in fields(Records)]


def copied(value: Any) -> Any:
    """Copy what a record is made of: two levels deep, where it can change at all."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return copy(value) if isinstance(value, Mark | list | set) else value
