"""What can happen to the server and its data; what the judge knows of them goes the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger.memory_server import Done, Records
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
        self._revision = 0
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
            server.repairs.clear()
            server.resumed.clear()
            done = {tick for tick, held in server.grants.items() if isinstance(held, Done)}
            known = Known({tick: known.closed[tick] for tick in done & known.closed.keys()})
        else:
            server.keepers.discard(name)
        if name == "grants":  # how many ticks an open one passes over, was written there
            for entry in NAMES:
                self.world.oracle.books.close_for(entry)
        self.world.oracle.data_is_lost(known)

    def pause(self, name: str) -> None:
        self._revision += 1
        self.server.paused[name] = f"{self._revision} simulated"

    def resume(self, name: str) -> None:
        self._revision += 1
        self.server.resumed[name] = self._revision
        self.server.paused.pop(name, None)
