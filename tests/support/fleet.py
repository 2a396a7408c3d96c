"""A fleet of real dispatchers on a ledger in memory, with a clock that tests move; no broker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.dispatch import Dispatcher
from celery_redlock_beat.due import DueQueue
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.host import Host
from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.ledger import Ask, Closing, Command
from celery_redlock_beat.ledger.memory import MemoryLedger
from celery_redlock_beat.ledger.memory_server import MemoryServer
from celery_redlock_beat.node import Node
from celery_redlock_beat.ticks import SECOND, Event, Micros, Tick
from celery_redlock_beat.timetables.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

START: Micros = 1_800_000_000 * SECOND
LEASE: Micros = 5 * SECOND


class FakeDelivery:
    """Stands for a broker: what it was given, and what it does instead of delivering."""

    def __init__(self, ledger: MemoryLedger, *, enqueues: bool = True) -> None:
        self.ledger = ledger
        self.enqueues = self.shares_ledger = enqueues
        self.is_ready = True
        self.before: Callable[[Tick], Delivered | None] = lambda _tick: None
        self.messages: list[RedlockEntry] = []
        self.resets = 0
        self.closed = 0

    def ready(self) -> bool:
        return self.is_ready

    def deliver(self, grant, message, passed) -> Delivered:
        instead = self.before(grant.tick)
        if instead is not None:
            return instead
        if not self.enqueues:
            self.messages.append(message)
            return Delivered.PUBLISHED
        command = Command("LPUSH", "celery", f"{grant.tick.entry} {grant.tick.at}")
        closing = self.ledger.enqueue(grant, [command], passed)
        if closing.stands:
            self.messages.append(message)
            return Delivered.SETTLED
        return Delivered.PAUSED if closing is Closing.PAUSED else Delivered.LOST

    def reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.closed += 1


@dataclass
class FakeNode:
    """One node: its parts, what it told its observer, and its schedule."""

    dispatcher: Dispatcher
    node: Node
    delivery: FakeDelivery
    clock: LedgerClock
    entries: dict[str, RedlockEntry]
    events: list[Event] = field(default_factory=list)

    def outcomes(self) -> list[tuple[str, str]]:
        return [(event.tick.entry, event.outcome.text) for event in self.events]

    def run(self) -> Micros:
        """Pass until nothing more is waiting; return how long the node would sleep."""
        for _ in range(1000):
            wait = self.node.run()
            if wait:
                return wait
        raise AssertionError("the node never comes to rest")

    def put(self, name: str, timetable=None, *, takes_phase: bool = False, **policy) -> None:
        self.entries[name] = RedlockEntry(name=name, task="tasks.ping", schedule=60)
        slot = Slot(name, timetable or Interval(SECOND), Policy(**policy))
        slot.takes_phase = takes_phase
        self.node.put(slot)

    def claim_only(self, tick: Tick) -> None:
        """Claim a tick and do nothing with it, as a node that dies then."""
        self.dispatcher.ledger.claim([Ask(tick, tick.at)])

    def remove(self, name: str) -> None:
        self.entries.pop(name)
        self.node.discard(name)


class Fleet:
    """Nodes on one server in memory; time stands still until it is moved."""

    def __init__(self) -> None:
        self.now: Micros = START
        self.server_shift: Micros = 0
        self.server = MemoryServer(lambda: self.now + self.server_shift)

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    def add(
        self,
        *,
        enqueues: bool = True,
        lease: Micros = LEASE,
        hold_down: float = 0.0,
        **host: Callable[..., Any],
    ) -> FakeNode:
        clock = LedgerClock(monotonic=lambda: self.now)
        ledger = MemoryLedger(
            self.server, lease=lease, hold_down=round(hold_down * SECOND), clock=clock
        )
        delivery = FakeDelivery(ledger, enqueues=enqueues)
        entries: dict[str, RedlockEntry] = {}
        events: list[Event] = []
        dispatcher = Dispatcher(
            ledger,
            delivery,
            clock,
            DueQueue(lambda names, exc: None),
            Host(entries.get, events.append, **host),
            namespace="tests",
            lease=lease,
        )
        node = Node(dispatcher, SECOND // 2, lambda: None)
        return FakeNode(dispatcher, node, delivery, clock, entries, events)

    def queue(self) -> Counter[str]:
        return Counter(str(text) for text in self.server.lists.get("celery", []))

    def totals(self) -> dict[str, int]:
        return dict(self.server.totals)
