"""A broker that may be away, silent or late, under the package's own deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from celery_redlock_beat.delivery.counting import Tally
from celery_redlock_beat.delivery.enqueue import Enqueue
from celery_redlock_beat.delivery.headers import ENTRY, FENCE, TICK
from celery_redlock_beat.delivery.publish import AtMostOnce, Publish
from celery_redlock_beat.delivery.recording import Tape
from celery_redlock_beat.errors import BrokerUnreachable, DeliveryFailed
from celery_redlock_beat.ledger import Command
from celery_redlock_beat.ticks import Tick, to_micros

if TYPE_CHECKING:
    from celery_redlock_beat.entries import RedlockEntry
    from simulation.link import Link
    from simulation.node import SimNode
    from simulation.world import World

QUEUE = "celery"


class Message(NamedTuple):
    """What a worker would see."""

    tick: Tick
    task_id: str
    fence: int
    node: str


def message_of(entry: RedlockEntry, node: SimNode) -> Message:
    headers = entry.options["headers"]
    tick = Tick(headers[ENTRY], to_micros(datetime.fromisoformat(headers[TICK])))
    return Message(tick, entry.options["task_id"], headers[FENCE], node.name)


class Transport:
    """In the place of the package's Broker: one node's way to a broker of its own."""

    recoverable_errors = ()

    def __init__(self, world: World, node: SimNode) -> None:
        self.world = world
        self.node = node

    def ready(self) -> bool:
        return not self.world.faults.broker_is_away()

    def publish(self, entry: RedlockEntry) -> Tally:
        """Send the message, wait for the confirmation."""
        world, node = self.world, self.node
        faults, latency, message = world.faults, world.plan.latency, message_of(entry, node)
        fault = faults.hits(world.plan.broker_faults)
        world.oracle.publishes(node, message)
        if fault == "slow broker":
            node.sleep(faults.spread(0.1, 1))
        if faults.broker_is_away() or fault == "broker unreachable":
            node.sleep(latency)
            raise BrokerUnreachable("connection refused")
        if fault != "delivery failed":
            late = faults.spread(1, 8) if fault == "late message" else 0
            arrives = world.baton.now + latency + late
            world.baton.at(arrives, lambda: world.oracle.message_is_out(message))
        node.sleep(2 * latency)
        if fault and fault != "slow broker":
            world.trace.note(node.name, f"{message.tick}: {fault}")
            raise DeliveryFailed("no confirmation")
        world.oracle.has_published(node, message)
        return Tally(calls=1, out=1, published=1)

    def reset(self) -> None:
        pass

    def close(self) -> None:
        pass


class Recording(Transport):
    """In the place of a broker that is the ledger's server: messages are only recorded."""

    def __init__(self, world: World, node: SimNode, tape: Tape) -> None:
        super().__init__(world, node)
        self.tape = tape

    def publish(self, entry: RedlockEntry) -> Tally:
        self.tape.commands.append(Command("LPUSH", QUEUE, message_of(entry, self.node)))
        return Tally(calls=1, out=1, published=1)


def delivery(kind: str, world: World, node: SimNode, link: Link) -> Publish | Enqueue:
    """Return one of the package's deliveries, over a simulated broker."""
    if kind == "enqueue":
        enqueue = object.__new__(Enqueue)
        enqueue._ledger, enqueue._tape = link, Tape()
        enqueue._broker = Recording(world, node, enqueue._tape)
        return enqueue
    publish = object.__new__(AtMostOnce if kind == "at_most_once" else Publish)
    publish._ledger, publish._broker = link, Transport(world, node)
    return publish
