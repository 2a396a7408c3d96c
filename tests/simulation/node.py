"""A process of the fleet: the package's own parts, over a simulated link, broker and clock."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.dispatch import Dispatcher
from celery_redlock_beat.due import DueQueue
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import LedgerError
from celery_redlock_beat.host import Host
from celery_redlock_beat.lateness import Slot
from celery_redlock_beat.ledger.memory import MemoryLedger
from celery_redlock_beat.node import Node
from celery_redlock_beat.ticks import SECOND, Micros
from simulation.baton import Actor, Killed
from simulation.broker import delivery
from simulation.faults import LONG_AGO
from simulation.link import Link
from simulation.plan import NAMES, NAMESPACE, Job

if TYPE_CHECKING:
    from simulation.world import World

ENTRIES = {name: RedlockEntry(name=name, task="tasks.ping", schedule=60) for name in NAMES}
BRIEFLY: Micros = SECOND // 1000
DRIFTS = (0, 0, -200, 200)
"""How wrong a node's clock may run, in parts of a million."""


class SimNode(Actor):
    """Run passes, as Celery's loop does, until the process dies or is told to leave."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.baton, name)
        plan = world.plan
        self.world = world
        self.cut_until: Micros = LONG_AGO
        self.cut_how = ""
        self.news: list[tuple[str, Job | None]] = list(world.jobs.items())
        self.clock = LedgerClock(monotonic=self.monotonic)
        self._entries: dict[str, RedlockEntry] = {}
        self._is_told_to_leave = False
        self._ahead = world.rng.randrange(1000) * SECOND
        self._drift = world.rng.choice(DRIFTS)
        link = Link(
            world,
            self,
            MemoryLedger(world.server, node=name, lease=plan.lease, hold_down=plan.hold_down),
        )
        dispatcher = Dispatcher(
            link,
            delivery(plan.delivery, world, self, link),
            self.clock,
            DueQueue(lambda names, exc: world.oracle.blame(f"Alive: {names}: {exc!r}")),
            Host(self._entries.get, world.oracle.is_told),
            namespace=NAMESPACE,
            lease=plan.lease,
        )
        self._node = Node(dispatcher, plan.poll, lambda: None)

    def monotonic(self) -> Micros:
        """Read this node's clock; it may be stopped just there."""
        if self.world.plan.stop_at_clock:
            self.world.faults.stop_at_clock(self)
        return self._ahead + self.baton.now + self.baton.now * self._drift // 1_000_000

    def sleep(self, span: Micros) -> None:
        super().sleep(span)
        if self._is_told_to_leave:
            self._is_told_to_leave = False
            self._leave()

    def live(self) -> None:
        try:
            while True:
                self._hear_of_deploys()
                wait = self._node.run()
                self.world.oracle.passes(self, wait)
                self.sleep(max(wait, BRIEFLY))
        except Exception as exc:  # noqa: BLE001 - that is what must never happen
            self.world.oracle.blame(f"Alive: {self.name} raised {exc!r}")

    def tell_to_leave(self) -> None:
        """Send it SIGTERM, which interrupts whatever it is waiting for."""
        self._is_told_to_leave = True
        self.baton.wake(self, self.baton.now)

    def _leave(self) -> None:
        with suppress(LedgerError):  # the scheduler logs it: leases end by themselves
            self._node.leave()
        self.world.trace.note(self.name, "has left")
        self.world.remove_node(self)
        raise Killed

    def _hear_of_deploys(self) -> None:
        news, self.news = self.news, []
        for name, job in news:
            if job:
                self._entries[name] = ENTRIES[name]
                self._node.put(Slot(name, job.timetable, job.policy))
            elif self._entries.pop(name, None):
                self._node.discard(name)
