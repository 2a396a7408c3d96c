"""What a Redis server holds for the ledger, in this process, and what guards it.

It decides what the prelude of the scripts decides; no verb is in here, and nothing outlives the
process, so it serves tests only.
"""

from __future__ import annotations

from operator import itemgetter
from threading import RLock
from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.ledger import Closing, Grant
from celery_redlock_beat.ledger.memory_records import (
    NAMES,
    Done,
    Mark,
    Open,
    Records,
    Vouched,
    copied,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from celery_redlock_beat.ledger import Command
    from celery_redlock_beat.ticks import Micros, Reason, Tick

__all__ = ["Done", "Mark", "MemoryServer", "Open", "Records", "Vouched"]

NOBODY = "-"
KEPT = ("open", "grants", "paused", "entries")
MINUTE: Micros = 60_000_000
HOUR: Micros = 60 * MINUTE
DAY: Micros = 24 * HOUR
SWEPT_PER_CLOSE = 2


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
            return Records(**{name: copied(getattr(self, name)) for name in NAMES})

    def restore(self, snapshot: Records) -> None:
        """Hold what a snapshot holds, and nothing else."""
        with self.lock:
            vars(self).update({name: copied(getattr(snapshot, name)) for name in NAMES})

    def must_recover(self, epoch: str, seen: int) -> bool:
        """Tell whether a node must push before any verb but ``recover`` answers it."""
        return self.must_wait() or self.epoch != epoch or seen > self.fence

    def must_wait(self) -> bool:
        """Tell whether an operator, who has pushed nothing, must wait while nodes do."""
        return (
            self.recovering is not None
            or not self.keepers.issuperset(KEPT)
            or self.identity != self.replid
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

    def open_of(self, entry: str) -> list[tuple[Tick, Micros]]:
        """Return the open ticks of an entry with the ends of their leases, as Redis orders them."""
        return in_order((tick, ends) for tick, ends in self.open.items() if tick.entry == entry)

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

    def close(self, tick: Tick, done: Done, now: Micros, keep: Micros) -> None:
        """Close an open tick that was counted, and sweep two for each one that is kept."""
        self.open.pop(tick, None)
        self.grants[tick] = done
        self.settled[tick] = now + keep
        for old, _ in until(self.settled, now)[:SWEPT_PER_CLOSE]:
            self.grants.pop(old, None)
            del self.settled[old]

    def count(self, passed: Mapping[Reason, int]) -> None:
        """Count what was skipped, by reason."""
        for reason, number in passed.items():
            self._count(f"skipped:{reason}", number)

    def count_one(self, outcome: str) -> None:
        """Count one outcome."""
        self._count(outcome, 1)

    def no_list(self, commands: Sequence[Command]) -> str | None:
        """Return the first key to push to that is no list, if there is one."""
        pushed = (command.key for command in commands if command.name == "LPUSH")
        return next((key for key in pushed if key in self.not_lists), None)

    def push(self, command: Command) -> None:
        """Do one of a message's commands. Nothing expires here."""
        if command.name == "LPUSH":
            self.lists.setdefault(command.key, []).insert(0, command.argument)
        elif command.name == "PUBLISH":
            self.published.append((command.key, command.argument))

    def lost_keys(self) -> list[str]:
        """Name the keys that were deleted or evicted."""
        marks = [] if self.identity or self.recovering else ["marks"]
        return marks + [key for key in KEPT if key not in self.keepers]

    def _count(self, outcome: str, number: int) -> None:
        self.totals[outcome] = self.totals.get(outcome, 0) + number


def until(scores: dict[Tick, Micros], now: Micros) -> list[tuple[Tick, Micros]]:
    """Return the ticks with a score of at most ``now`` in the order of a sorted set in Redis."""
    return in_order((tick, score) for tick, score in scores.items() if score <= now)


def in_order(scored: Iterable[tuple[Tick, Micros]]) -> list[tuple[Tick, Micros]]:
    """Return ticks in the order of a sorted set in Redis."""
    members = ((score, f"{tick.at}:{tick.entry}".encode(), tick) for tick, score in scored)
    return [(tick, score) for score, _, tick in sorted(members, key=itemgetter(0, 1))]
