"""The judge: it sees every call, every message and every loss, and holds them against the laws.

It believes nothing that the core says of itself. "Once, while the server keeps its data or one
live node remembers" is a look-up in what the server must know (:class:`~simulation.minds.Known`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ledger import Closing, Verdict
from celery_redlock_beat.ledger.memory_server import Done, Open
from celery_redlock_beat.ticks import SECOND, Event, Micros, Tick
from simulation.books import Books
from simulation.broker import QUEUE, Message
from simulation.minds import TOLD, Known, Lease, Mind
from simulation.plan import NAMESPACE
from simulation.runs import Runs

if TYPE_CHECKING:
    from celery_redlock_beat.ledger import Grant, Settlement
    from simulation.link import Call
    from simulation.node import SimNode
    from simulation.world import World

MOST_STEPS = 150
"""Passes of one node in one second, and calls but for those that deliver: more is a busy loop."""
DELIVERING = {"enqueue", "settle", "release"}
MOST_NAMED = 32
"""Open ticks that an answer may name; of more a node need not know which are settled."""
DRIFTED: Micros = SECOND // 500
"""How far a node's clock may have drifted in the course of a lease."""


class Oracle:
    """Blame whoever breaks a law; the first violation ends the run."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.server = world.server
        self.violations: list[str] = []
        self.known = Known()
        self.books = Books(world.server, self.blame)
        self.runs = Runs(self)
        self.minds: dict[SimNode, Mind] = defaultdict(Mind)
        self.sends: dict[Tick, list[Message]] = defaultdict(list)
        self.losses = 0
        self.brought_back = 0
        self._forgotten: set[Tick] = set()
        self._well: set[SimNode] = set()  # ever since the last loss, and not heard since
        self._granted: dict[tuple[Tick, int], tuple[SimNode, Micros]] = {}
        self._used: set[tuple[Tick, int]] = set()
        self._events: set[Tick] = set()
        self._before: dict[Tick, Open | Done] = {}
        self._own_marks: dict[str, Micros] = {}  # what this copy had before any push
        self._was_recovering = False
        for entry, job in world.jobs.items():
            self.books.open_for(entry, job)

    def blame(self, text: str) -> None:
        self.world.trace.note("JUDGE", text)
        self.violations.append(text)
        self.world.baton.halt()

    # --- what it sees of nodes and disasters ----------------------------------------------------

    def data_is_lost(self, known: Known) -> None:
        """From now on the server must know no more than this."""
        self._forgotten |= self.known.closed.keys() - known.closed.keys()
        self.known = known
        self.losses += 1
        self.books.totals_are_lost()
        now = self.world.baton.now
        well = {node for node in self.world.nodes if self.minds[node].is_well(now)}
        self._well = well

    def clock_is_set(self) -> None:
        """How long a recovery waits, and how late a tick is, is by that clock."""
        for node in self.world.nodes:  # its heartbeat may be too old by that clock
            self.disturbed(node, 2 * SECOND)
        self.books.clock_is_set()

    def disturbed(self, node: SimNode, span: Micros = 0) -> None:
        """A node that could not be reached, or did not run, need not have been heard in time."""
        mind = self.minds[node]
        mind.ill_until = max(mind.ill_until, self.world.baton.now + span)
        self._well.discard(node)

    def passes(self, node: SimNode, wait: Micros) -> None:
        """A node has come to the end of a pass, and will sleep."""
        if wait < 0:
            self.blame(f"Alive: {node.name} would wait for {wait} µs")
        self._judge_haste(node)

    def _judge_haste(self, node: SimNode) -> None:
        mind, second = self.minds[node], self.world.baton.now // SECOND
        mind.steps = mind.steps + 1 if mind.second == second else 1
        mind.second = second
        if mind.steps > MOST_STEPS:
            self.blame(f"Alive: {node.name} does not rest: {mind.steps} steps in a second")

    def is_told(self, event: Event) -> None:
        """An observer hears of an outcome."""
        if event.tick in self._events and not self.losses:
            self.blame(f"Accounting: observers were told twice of {event.tick}")
        self._events.add(event.tick)

    # --- what it sees of calls: the node asks, the server does it, the node hears ---------------

    def asks(self, node: SimNode, verb: str, args: tuple[Any, ...]) -> Mind | None:
        """Note what a node tries; return what it knows where it is about to tell that."""
        if verb not in DELIVERING:
            self._judge_haste(node)
        mind = self.minds[node]
        if verb == "enqueue":
            mind.tried.add(args[0].tick)
        elif verb == "settle":
            mind.tried |= {each.grant.tick for each in args[0]}
        return mind.copy() if verb == "recover" else None

    def hears(self, call: Call) -> None:
        mind = self.minds[call.node]
        mind.fence = max(mind.fence, call.ledger.fence)
        mind.runs.update(call.runs)
        match call.verb:
            case "claim":
                mind.claimed_at = self.world.baton.now
                for answer in call.answer.answers:
                    mind.hear_of(answer.tick.entry, answer.mark)
                    if answer.grant:  # open: whatever was tried has not arrived
                        mind.tried.discard(answer.tick)
                mind.learn_closed(call.context)
            case "register":
                for record in call.answer:
                    mind.hear_of(record.entry, record.mark)
            case "enqueue" if not call.answer.stands:
                mind.tried.discard(call.args[0].tick)
            case "settle":
                for settlement, closing in zip(call.args[0], call.answer, strict=True):
                    if not closing.stands:
                        mind.tried.discard(settlement.grant.tick)

    def hears_no(self, call: Call) -> None:
        """A node hears that nothing was done."""
        if call.verb == "enqueue":
            self.minds[call.node].tried.discard(call.args[0].tick)

    def executing(self, call: Call) -> None:
        """Look at the server before a call that may close ticks by itself."""
        self._was_recovering = self.server.recovering is not None
        self.runs.executing()
        if call.verb in {"recover", "resolve"}:
            self._before = dict(self.server.grants)
            self._own_marks = {entry: each.mark for entry, each in self.server.marks.items()}
            self._own_marks |= {entry: each.before for entry, each in self.server.vouched.items()}

    def executed(self, call: Call) -> None:
        """Judge what a call has done at the server, at the instant at which it did it."""
        if call.error is None:
            judge = getattr(self, f"_judge_{call.verb}", None)
            if judge:
                judge(call)
            self.runs.executed(call)
        self.books.balance(call.verb)
        self._judge_messages(call)
        self._judge_marks(call)

    def _judge_register(self, call: Call) -> None:
        for record in call.answer:
            if record.entry not in self.known.marks:
                self.books.begins(record.entry, record.mark)

    def _judge_claim(self, call: Call) -> None:
        for answer in call.answer.answers:
            if answer.verdict is Verdict.GRANTED:
                self._judge_grant(call.node, answer.grant)
        if len(self.server.open) <= MOST_NAMED:
            call.context = {}
            for tick in self.server.open:
                least = call.context.get(tick.entry, tick.at)
                call.context[tick.entry] = min(least, tick.at)

    def _judge_grant(self, node: SimNode, grant: Grant) -> None:
        now, tick, known = self.server.clock(), grant.tick, self.known
        if tick.at > now:
            self.blame(f"Clock: {tick} was granted {tick.at - now} µs before its instant")
        # The server's clock may have been set back: its node counts by a clock that is true.
        lease = known.leases.get(tick)
        if lease and lease.ends > now and lease.until > self.world.baton.now:
            self.blame(f"Once: {tick} was granted while another grant was alive")
        if tick in known.closed:
            self.blame(f"Once: {tick} was granted, and it is {known.closed[tick]}")
        if grant.fence <= known.fence:
            self.blame(f"Mark: {tick} was granted with the fence {grant.fence}, which is not new")
        if tick.entry in self.server.paused:
            self.blame(f"Pause: {tick} was granted while its entry was paused")
        self._granted[tick, grant.fence] = node, self.world.baton.now
        until = self.world.baton.now + grant.deadline - now
        known.leases[tick] = Lease(grant.fence, grant.deadline, until)

    def _judge_release(self, call: Call) -> None:
        grants, back_off, _ = call.args
        ends = self.server.clock() + back_off
        for grant in grants:
            lease = self.known.leases.get(grant.tick)
            if lease and lease.fence == grant.fence and not lease.is_released:
                until = self.world.baton.now + back_off
                released = Lease(grant.fence, ends, until, is_released=True)
                self.known.leases[grant.tick] = released

    def _judge_settle(self, call: Call) -> None:
        for settlement, closing in zip(call.args[0], call.answer, strict=True):
            if closing is Closing.DONE:
                self._judge_settlement(settlement)

    def _judge_settlement(self, settlement: Settlement) -> None:
        grant, outcome = settlement.grant, settlement.outcome.text
        is_published = self.world.plan.delivery == "publish" and outcome == "sent"
        if is_published and grant.tick not in self.sends:
            self.blame(f"Accounting: {grant.tick} is settled as sent, and no message is out")
        self._judge_fence(grant)
        self._learn_outcome(grant.tick, outcome)
        self.books.account(grant.tick, grant.previous, outcome, settlement.passed)

    def _judge_fence(self, grant: Grant) -> None:
        lease = self.known.leases.get(grant.tick)
        if lease and grant.fence < lease.fence:
            self.blame(f"Once: {grant.tick} was closed by a grant that was taken over")

    def _judge_enqueue(self, call: Call) -> None:
        grant, commands, passed = call.args
        pushed = self.server.lists.pop(QUEUE, [])
        for message in pushed:
            self.message_is_out(message)
        if pushed and grant.tick.entry in self.server.paused:
            self.blame(f"Pause: {grant.tick} was pushed while its entry was paused")
        due = [command.argument for command in commands] if call.answer is Closing.DONE else []
        if pushed != due:
            self.blame(f"Once: {grant.tick} is {call.answer}, and {len(pushed)} were pushed")
        if call.answer is Closing.DONE:
            self._judge_fence(grant)
            self._learn_outcome(grant.tick, "sent")
            self.books.account(grant.tick, grant.previous, "sent", passed)

    def _learn_outcome(self, tick: Tick, outcome: str, unless: str = "") -> None:
        before = self.known.closed.get(tick, unless)
        if before != unless:
            self.blame(f"Once: {tick} is {outcome}, and was {before} already")
        self.known.closed[tick] = outcome
        self.known.leases.pop(tick, None)

    def _judge_messages(self, call: Call) -> None:
        if self.server.lists.get(QUEUE):
            self.blame(f"Once: {call.verb} pushed {self.server.lists[QUEUE]}")

    def _judge_marks(self, call: Call) -> None:
        known, server = self.known, self.server
        for entry, mark in known.marks.items():
            if entry not in server.marks or server.marks[entry].mark < mark:
                self.blame(f"Mark: that of {entry!r} fell in {call.verb}")
        if server.fence < known.fence:
            self.blame(f"Mark: the fence fell in {call.verb}")
        known.marks.update({entry: record.mark for entry, record in server.marks.items()})
        known.fence = server.fence

    # --- a recovery: the server hears what nodes remember ---------------------------------------

    def _judge_recover(self, call: Call) -> None:
        heard = [call.knew]
        self._well.discard(call.node)
        if self._was_recovering and self.server.recovering is None:
            # It may not end before it has heard all who were well all the time, and remember.
            heard += [self.minds[node] for node in self._well & set(self.world.nodes)]
            self._well.clear()
        for mind in heard:
            self.brought_back += self.known.learn(mind, self._forgotten, self.server.open)
            self.runs.learn(mind, self._own_marks)
        self._judge_closed({each.grant.tick: each for each in call.args[0].settled})

    def _judge_resolve(self, call: Call) -> None:
        self._judge_closed({})

    def _judge_closed(self, settled: dict[Tick, Settlement]) -> None:
        """Take down what a recovery itself has closed: outcomes that nodes know, and doubts."""
        for tick, now in self.server.grants.items():
            before = self._before.get(tick)
            if isinstance(now, Done) and not isinstance(before, Done):
                self._learn_outcome(tick, now.outcome, unless=TOLD)
                previous, passed = tick.at - 1, {}
                own = tick in settled and tick.at <= self._own_marks.get(tick.entry, 0)
                if own and (before is None or before.previous == settled[tick].grant.previous):
                    previous, passed = settled[tick].grant.previous, settled[tick].passed
                self.books.account(tick, previous, now.outcome, passed)

    # --- messages -------------------------------------------------------------------------------

    def publishes(self, node: SimNode, message: Message) -> None:
        """A node begins to publish; it has just looked whether its lease still runs."""
        _, granted_at = self._granted[message.tick, message.fence]
        late = self.world.baton.now - granted_at - self.world.plan.lease
        lease = self.known.leases.get(message.tick)
        if lease and lease.fence == message.fence:
            # It may run longer: the clock was set back, or the key of the open ticks was lost.
            ends = max(lease.ends, self.server.open.get(message.tick, 0))
            late = min(late, self.server.clock() - ends)
        if late > DRIFTED and self.world.plan.delivery == "publish":
            self.blame(f"Once: {node.name} published {message.tick} {late} µs after its lease")
        if message.tick in self.minds[node].published:
            self.blame(f"Once: {node.name} published {message.tick}, and had done so before")

    def has_published(self, node: SimNode, message: Message) -> None:
        """The broker has confirmed a message, and the node has heard it."""
        self.minds[node].published.add(message.tick)

    def message_is_out(self, message: Message) -> None:
        """A worker sees a message, at this instant."""
        tick, proof = message.tick, (message.tick, message.fence)
        self.world.trace.note("WORKER", f"{tick} by {message.node}, fence {message.fence}")
        self.sends[tick].append(message)
        if message.task_id != tick.task_id(NAMESPACE):
            self.blame(f"Same id: {tick} was sent as {message.task_id}")
        if proof not in self._granted or self._granted[proof][0].name != message.node:
            self.blame(f"Once: {tick} was sent by {message.node} without a grant of its own")
        if proof in self._used:
            self.blame(f"Once: {tick} was sent twice by one grant")
        self._used.add(proof)
