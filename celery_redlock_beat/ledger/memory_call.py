"""One call to the ledger in this process: who is answered at all, and what is written down of it.

It decides what the prelude of the scripts decides of a call, and knows no verb.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import DeliveryImpossible, LedgerRecovering
from celery_redlock_beat.ledger import HISTORY
from celery_redlock_beat.ledger.memory_records import Done
from celery_redlock_beat.ledger.steering import LastOutcome, Remainder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.ledger import Settlement
    from celery_redlock_beat.ledger.memory_server import MemoryServer
    from celery_redlock_beat.ticks import Micros, Reason

ALWAYS_ANSWERED = {"recover", "look"}
OF_OPERATORS = {"repair", "store", "remove", "pause", "resume", "skip", "fire", "seed"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call by a node or an operator, at one instant of its server.

    ``history`` is how many outcomes are kept, ``keep`` how long a settled grant is.
    """

    server: MemoryServer
    now: Micros
    node: str
    history: int
    keep: Micros

    def close(self, settlement: Settlement) -> None:
        """Close an open tick and note it, counting what lay between the previous mark and it."""
        grant, outcome = settlement.grant, settlement.outcome.text
        tick = grant.tick
        self.server.count_one(outcome)
        self.server.count(settlement.passed)
        self.server.close(tick, Done(grant.fence, outcome), self.now, self.keep)
        late = self.now - grant.due
        self.server.last[tick.entry] = LastOutcome(
            self.now, tick.at, outcome, self.node, grant.fence, grant.attempt, late
        )
        numbers = {"fence": grant.fence, "attempt": grant.attempt, "previous": grant.previous}
        told = {"entry": tick.entry, "tick": tick.at, "outcome": outcome} | numbers | {"late": late}
        self._write(told, settlement.passed, settlement.detail)

    def note_deed(
        self, entry: str, deed: str, detail: str, remainder: Remainder | None = None
    ) -> None:
        """Note what an operator did, with the ticks that it ended, or is going to."""
        of = remainder or Remainder(self.now, self.now)
        numbers = {"fence": 0, "attempt": 0, "previous": of.mark, "late": 0}
        told = {"entry": entry, "tick": of.upto, "outcome": deed} | numbers
        self._write(told, of.passed, detail)

    def _write(self, told: Mapping[str, object], passed: Mapping[Reason, int], detail: str) -> None:
        if not self.history:
            return
        counts = ",".join(f"{reason} {number}" for reason, number in passed.items())
        more = {"node": self.node, "passed": counts, "detail": detail}
        kept = self.server.history
        kept.append({key: str(value) for key, value in {**told, **more}.items()})
        del kept[: -self.history]


class Hold:
    """One process's hold on a server, and what it carries from call to call."""

    def __init__(
        self,
        server: MemoryServer,
        clock: LedgerClock,
        node: str,
        keep: Micros,
        history: int = HISTORY,
    ) -> None:
        self._server = server
        self._clock = clock
        self._keep = keep
        self._history = history
        self.node = node
        self.epoch = "-"
        self.fence = 0

    @contextmanager
    def _call(self, verb: str) -> Iterator[Call]:
        """Do one call: alone on the server, at one instant, or refused before anything is done."""
        server = self._server
        asked = self._clock.monotonic()
        with server.lock:
            now = server.clock()
            self._clock.observe(asked, self._clock.monotonic(), now)
            if self._is_refused(verb):
                raise LedgerRecovering(verb)
            yield Call(server, now, self.node, self._history, self._keep)
            self.fence = max(self.fence, server.fence)

    def _is_refused(self, verb: str) -> bool:
        if verb in ALWAYS_ANSWERED:
            return False
        if verb in OF_OPERATORS:
            return self._server.must_wait()
        return self._server.must_recover(self.epoch, self.fence)


def no_list(key: str) -> DeliveryImpossible:
    """Return the error of a queue's key that cannot be pushed to."""
    return DeliveryImpossible(f"the key {key!r} of its queue is not a list; delete or rename it")
