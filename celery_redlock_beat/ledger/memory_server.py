"""What a Redis server holds for the ledger, in this process: the records and what guards them.

It decides what the prelude of the scripts decides; no verb is in here, and nothing outlives the
process, so it serves tests only.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, fields
from operator import itemgetter
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from celery_redlock_beat.ledger import Closing, Grant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from celery_redlock_beat.ledger import Command, Settlement
    from celery_redlock_beat.ticks import Micros, Tick

NOBODY = "-"
KEPT = {"open", "grants", "paused"}
UNKNOWN = "unknown"
"""The identity of a server that refuses INFO: then the fence alone decides."""
MINUTE: Micros = 60_000_000
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR
SWEPT_PER_CLOSE = 2


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

    ``keepers`` names the keys that are still what they were: one that was lost has none.
    """

    marks: dict[str, Mark] = field(default_factory=dict)
    open: dict[Tick, Micros] = field(default_factory=dict)
    grants: dict[Tick, Open | Done] = field(default_factory=dict)
    settled: dict[Tick, Micros] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    paused: dict[str, str] = field(default_factory=dict)
    present: dict[str, Micros] = field(default_factory=dict)
    nodes: dict[str, Micros] = field(default_factory=dict)
    vouched: dict[str, Vouched] = field(default_factory=dict)
    passed_over: dict[Tick, Micros] = field(default_factory=dict)
    keepers: set[str] = field(default_factory=set)
    repairs: dict[str, int] = field(default_factory=dict)
    resumed: dict[str, int] = field(default_factory=dict)
    audit: list[dict[str, str]] = field(default_factory=list)

    identity: str | None = None
    epoch: str | None = None
    fence: int = 0
    recovering: str | None = None
    hold_down: Micros = 0

    lists: dict[str, list[str | bytes | int]] = field(default_factory=dict)
    not_lists: set[str] = field(default_factory=set)
    published: list[tuple[str, str | bytes | int]] = field(default_factory=list)


class MemoryServer(Records):
    """A server that several :class:`~celery_redlock_beat.ledger.memory.MemoryLedger` share.

    ``clock`` is its TIME. ``replid`` is its identity as INFO tells it, which no flush changes.
    Keys in ``not_lists`` hold something that cannot be pushed to; lists do not expire.
    """

    def __init__(self, clock: Callable[[], Micros]) -> None:
        super().__init__()
        self.clock = clock
        self.replid = uuid4().hex
        self.lock = RLock()

    def flush(self) -> None:
        """Lose everything, as FLUSHALL does."""
        self.restore(Records())

    def restart(self, identity: str | None = None) -> None:
        """Become another server with the same data, as a restart or a failover does."""
        self.replid = identity or uuid4().hex

    def snapshot(self) -> Records:
        """Return a copy of everything that is held now."""
        with self.lock:
            return Records(**{name: _copied(getattr(self, name)) for name in _NAMES})

    def restore(self, snapshot: Records) -> None:
        """Hold what a snapshot holds, and nothing else."""
        with self.lock:
            vars(self).update({name: _copied(getattr(snapshot, name)) for name in _NAMES})

    def must_recover(self, epoch: str, seen: int) -> bool:
        """Tell whether a node must push before any verb but ``recover`` answers it."""
        return (
            self.recovering is not None
            or not self.keepers >= KEPT
            or self.identity != self.replid
            or self.epoch != epoch
            or seen > self.fence
        )

    def next_fence(self, now: Micros) -> int:
        """Return a number that rises with every grant, also over those that a failover lost."""
        self.fence = max(self.fence, now) + 1
        return self.fence

    def grant_of(self, tick: Tick) -> Open | Done | None:
        """Return a tick's grant; where the grants were lost, an open tick had one attempt."""
        if tick in self.grants or tick not in self.open:
            return self.grants.get(tick)
        return Open(NOBODY, 0, 1, tick.at)

    def end_leases_of_a_later_clock(self, farthest: Micros, now: Micros) -> None:
        """End leases that end later than any can: their clock has been set back since."""
        self.open = {tick: now if ends >= farthest else ends for tick, ends in self.open.items()}

    def was_missing(self, entry: str, may_miss: Micros) -> bool:
        """Tell whether nodes lived, and none of them had this entry."""
        beat = min(self.clock(), max(self.nodes.values(), default=0))
        return entry in self.present and beat - self.present[entry] > may_miss

    def may_close(self, grant: Grant) -> Closing:
        """Answer ALREADY only from the settled grant, and only to the fence that settled it."""
        found = self.grants.get(grant.tick)
        if found is None or found.fence != grant.fence:
            return Closing.STALE
        return Closing.DONE if isinstance(found, Open) else Closing.ALREADY

    def close(self, settlement: Settlement, now: Micros, keep: Micros) -> None:
        """Close an open tick, counting what lay between the previous mark and it, here only."""
        grant, outcome = settlement.grant, settlement.outcome.text
        tick = grant.tick
        self.open.pop(tick, None)
        self.grants[tick] = Done(grant.fence, outcome)
        self.settled[tick] = now + keep
        self._count(outcome, 1)
        for reason, number in settlement.passed.items():
            self._count(f"skipped:{reason}", number)
        for old, _ in until(self.settled, now)[:SWEPT_PER_CLOSE]:
            self.grants.pop(old, None)
            del self.settled[old]

    def push(self, command: Command) -> None:
        """Do one of a message's commands. Nothing expires here."""
        if command.name == "LPUSH":
            self.lists.setdefault(command.key, []).insert(0, command.argument)
        elif command.name == "PUBLISH":
            self.published.append((command.key, command.argument))

    def lost_keys(self) -> list[str]:
        """Name the keys that were deleted or evicted."""
        marks = [] if self.identity or self.recovering else ["marks"]
        return marks + [key for key in ("open", "grants", "paused") if key not in self.keepers]

    def _count(self, outcome: str, number: int) -> None:
        self.totals[outcome] = self.totals.get(outcome, 0) + number


def _copied(value: Any) -> Any:
    """Copy what a record is made of: two levels deep, where it can change at all."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return copy(value) if isinstance(value, Mark | list | set) else value


_NAMES = [each.name for each in fields(Records)]


def until(scores: dict[Tick, Micros], now: Micros) -> list[tuple[Tick, Micros]]:
    """Return the ticks with a score of at most ``now`` in the order of a sorted set in Redis."""
    return _in_order((tick, score) for tick, score in scores.items() if score <= now)


def _in_order(scored: Iterable[tuple[Tick, Micros]]) -> list[tuple[Tick, Micros]]:
    members = ((score, f"{tick.at}:{tick.entry}".encode(), tick) for tick, score in scored)
    return [(tick, score) for score, _, tick in sorted(members, key=itemgetter(0, 1))]
