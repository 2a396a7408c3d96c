"""A node's way to the ledger: each verb is a request and a reply, and either may come to grief.

What is done at the server is done there at one instant, by what the node knew when it asked; the
node learns nothing but from a reply that it hears.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import DeliveryImpossible, LedgerError, LedgerUnavailable
from simulation.trace import spoken

if TYPE_CHECKING:
    from celery_redlock_beat.ledger.memory import MemoryLedger
    from celery_redlock_beat.ticks import Micros
    from simulation.faults import Way
    from simulation.minds import Told
    from simulation.node import SimNode
    from simulation.world import World


class Told:
    """In the place of a clock: takes down the time that the server told."""

    now: Micros = 0

    def monotonic(self) -> Micros:
        return 0

    def observe(self, asked: Micros, answered: Micros, told: Micros) -> None:
        self.now = told


@dataclass
class Call:
    """One verb on its way; ``reply`` is what the node hears."""

    node: SimNode
    verb: str
    args: tuple[Any, ...]
    ledger: MemoryLedger
    knew: Any
    answer: Any = None
    error: LedgerError | DeliveryImpossible | None = None
    told: Micros = 0
    context: Any = None
    runs: dict[str, Told] = field(default_factory=dict)
    ticket: int = 0
    is_heard: bool = False


class Link:
    """A ledger as a node sees it: over a network, with a timeout."""

    marks_key = "marks"

    def __init__(self, world: World, node: SimNode, ledger: MemoryLedger) -> None:
        self.world = world
        self.node = node
        self.ledger = ledger

    def sibling(self) -> Link:
        return Link(self.world, self.node, copy(self.ledger))

    def register(self, registrations):
        return self._call("register", registrations)

    def attend(self, entries):
        return self._call("attend", entries)

    def claim(self, asks, cursor=0, told=""):
        return self._call("claim", asks, cursor, told)

    def settle(self, settlements):
        return self._call("settle", settlements)

    def enqueue(self, grant, commands, passed):
        return self._call("enqueue", grant, commands, passed)

    def release(self, grants, back_off, why):
        return self._call("release", grants, back_off, why)

    def restore(self, changes):
        return self._call("restore", changes)

    def changes(self, since, *, going_on=False):
        return self._call("changes", since)  # nothing is pruned here

    def look(self, entries):
        return self._call("look", entries)

    def resume(self, resumptions):
        return self._call("resume", resumptions)

    def depart(self, told):
        return self._call("depart", told)

    def recover(self, testimony):
        return self._call("recover", testimony)

    def resolve(self, doubts):
        return self._call("resolve", doubts)

    def _call(self, verb: str, *args: Any) -> Any:
        world, node = self.world, self.node
        # Monotonic instants around the call, as the ledger's own clock would take them.
        asked = node.monotonic()
        call = Call(node, verb, args, copy(self.ledger), world.oracle.asks(node, verb, args))
        way = world.faults.way(node)
        if way.refused:
            node.sleep(way.there)
            world.trace.note(node.name, f"{verb}: refused")
            world.oracle.disturbed(node)
            raise LedgerUnavailable("connection refused")
        call.ticket = node.waits
        if way.arrives:
            world.baton.at(world.baton.now + way.there, lambda: self._execute(call, way))
        node.sleep(world.plan.timeout)
        if not call.is_heard:
            world.trace.note(node.name, f"{verb}: no answer in time")
            world.oracle.disturbed(node)
            raise LedgerUnavailable("no answer in time")
        node.clock.observe(asked, node.monotonic(), call.told)
        vars(self.ledger).update(vars(call.ledger))
        if call.error is not None:
            world.oracle.hears_no(call)
            raise call.error
        world.oracle.hears(call)
        return call.answer

    def _execute(self, call: Call, way: Way) -> None:
        world = self.world
        if world.faults.server_is_down():
            world.trace.note("server", f"is down: {call.verb} of {call.node.name} is lost")
            return
        told = call.ledger._clock = Told()
        is_silent = world.faults.loses_write(call)
        world.oracle.executing(call)
        try:
            call.answer = getattr(call.ledger, call.verb)(*call.args)
        except (LedgerError, DeliveryImpossible) as exc:
            call.error = exc
        call.told = told.now
        if world.trace.is_on:
            answer = call.error or call.answer
            world.trace.note(call.node.name, spoken(call.verb, call.args, answer))
        world.oracle.executed(call)
        world.faults.after_execution(call)
        if way.answers and not is_silent:
            world.baton.at(world.baton.now + way.back, lambda: self._arrive(call))
        else:
            world.trace.note(call.node.name, f"{call.verb}: the reply is lost")

    def _arrive(self, call: Call) -> None:
        call.is_heard = True
        self.world.baton.wake(call.node, self.world.baton.now, call.ticket)
