"""What can happen to the server and its data; what the judge knows of them goes the same way."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger.memory_server import Done, Records
from celery_redlock_beat.ledger.memory_steering import MemorySteering
from celery_redlock_beat.ledger.steering import Resumption
from celery_redlock_beat.ticks import SECOND
from simulation.minds import Known
from simulation.plan import NAMES

if TYPE_CHECKING:
    from simulation.world import World


@dataclass
class Copy:
    """What a replica holds. It is one of the present data as long as the history is the same."""

    history: int
    records: Records
    known: Known


class Disasters:
    """Lose all of the server's data, what a replica lacks, or one key; become another server."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.server = world.server
        self.history = 0
        self._identities = 0
        self.restart()

    def restart(self) -> None:
        """Come back as another server, with the same data."""
        self._identities += 1
        self.server.restart(f"server-{self._identities}")

    def flush(self) -> None:
        self.history += 1
        self.server.flush()
        self.world.oracle.data_is_lost(Known())

    def copy(self) -> Copy:
        return Copy(self.history, self.server.snapshot(), self.world.oracle.known.copy())

    def fail_over(self, copy: Copy) -> None:
        """Have another server answer, with what its replica held."""
        self.history += 1
        copy.history = self.history
        self.server.restore(copy.records)
        self.restart()
        self.world.oracle.data_is_lost(copy.known.copy())

    def is_whole(self) -> bool:
        """Whether the server lacks nothing, and no recovery is due or runs."""
        server = self.server
        return server.identity == server.replid and not (server.recovering or server.lost_keys())

    def lose_key(self, name: str) -> None:
        """Have an essential key deleted, or evicted."""
        self.history += 1
        server, known = self.server, self.world.oracle.known.copy()
        getattr(server, name).clear()
        if name == "marks":
            server.identity = server.epoch = server.recovering = None
            server.fence = server.hold_down = 0
            server.revision = server.pruned = 0
            server.repairs.clear()
            done = {tick for tick, held in server.grants.items() if isinstance(held, Done)}
            known = Known({tick: known.closed[tick] for tick in done & known.closed.keys()})
        else:
            server.keepers.discard(name)
        if name == "grants":  # how many ticks an open one passes over, was written there
            for entry in NAMES:
                self.world.oracle.books.close_for(entry)
        self.world.oracle.data_is_lost(known)

    def pause(self, name: str) -> None:
        with suppress(LedgerRecovering):  # an operator is told so, and gives up
            self._operator().pause([name])

    def resume(self, name: str) -> None:
        """Have an operator resume an entry, as soon as that is possible; all of it is caught up."""
        operator = self._operator()
        pause = operator.look([name])[0].pause
        if pause is None:
            return
        try:
            operator.resume([Resumption(name, pause.revision)])
        except LedgerRecovering:
            self.world.baton.at(self.world.baton.now + SECOND // 5, lambda: self.resume(name))

    def keep_resumed(self, name: str) -> None:
        """Have an operator resume what a node, or an old copy, knows to be paused."""
        self.resume(name)
        self.world.baton.at(self.world.baton.now + SECOND, lambda: self.keep_resumed(name))

    def _operator(self) -> MemorySteering:
        clock = LedgerClock(lambda: self.world.baton.now)
        return MemorySteering(self.server, who="simulated", clock=clock)
