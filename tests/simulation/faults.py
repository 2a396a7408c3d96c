"""How things go wrong: each fault is one method, and each counts what it did.

Nothing here judges, and nothing here knows how the core works.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from celery_redlock_beat.ticks import SECOND, Micros
from simulation.plan import NAMES, job_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.disasters import Copy
    from simulation.link import Call
    from simulation.node import SimNode
    from simulation.world import World

CUTS = ("refused", "silent", "deaf")
"""A cut link: nothing is accepted, requests vanish (half-open), or replies do."""
WRITES = {"enqueue", "settle", "release", "resolve"}
KEYS = ("marks", "open", "grants", "paused", "entries")
LONG_AGO: Micros = -1


class Way(NamedTuple):
    """What will happen to one call."""

    there: Micros
    back: Micros
    arrives: bool = True
    answers: bool = True
    refused: bool = False


class Faults:
    """The faults of one run; all their choices come from the world's one source of chance."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng
        self.plan = world.plan
        self.counts: Counter[str] = Counter()
        self.shift: Micros = 0
        self.set_back: Micros = 0
        self._down_until: Micros = LONG_AGO
        self._broker_away_until: Micros = LONG_AGO
        self._is_over = False

    def begin(self) -> None:
        for at, kind in self.plan.events:
            action = getattr(self, f"_{kind.replace(' ', '_')}")
            self.world.baton.at(at, lambda kind=kind, action=action: self._act(kind, action))

    def end(self) -> None:
        """From now on nothing goes wrong any more, and what had gone wrong is mended."""
        world, self._is_over = self.world, True
        self._down_until = self._broker_away_until = LONG_AGO
        for node in world.nodes:
            node.cut_until = LONG_AGO
        for name in NAMES:  # also what only an old copy knows to be paused
            world.disasters.keep_resumed(name)
        self._say("all faults are over; who is stopped will wake up by itself")

    def spread(self, low: float, high: float) -> Micros:
        """Return a span between two numbers of seconds."""
        return round(self.rng.uniform(low, high) * SECOND)

    def hits(self, chances: dict[str, float]) -> str:
        """Return which kind of fault strikes now, or nothing."""
        if not chances or self._is_over:
            return ""
        luck = self.rng.random()
        for kind, chance in chances.items():
            luck -= chance
            if luck < 0:
                self.counts[kind] += 1
                return kind
        return ""

    # --- what may happen to a call, to a clock that is read, and to a message -------------------

    def way(self, node: SimNode) -> Way:
        plan, chance = self.plan, self.rng.random
        there, back = (round(plan.latency * (0.5 + chance())) for _ in range(2))
        if self.server_is_down():
            return Way(there, back, refused=True)
        if self.world.baton.now < node.cut_until:
            return Way(
                there,
                back,
                arrives=node.cut_how != "silent",
                answers=node.cut_how != "deaf",
                refused=node.cut_how == "refused",
            )
        fault = self.hits(plan.call_faults)
        if fault == "late request":
            there = plan.timeout + self.spread(0, 2 * plan.lease / SECOND)
        elif fault == "slow call":
            there = self.spread(0, 0.6 * plan.timeout / SECOND)
        return Way(there, back, arrives=fault != "request lost", answers=fault != "reply lost")

    def loses_write(self, call: Call) -> bool:
        """Perhaps have a failover lose a call; answer whether its reply is lost as well."""
        writes = call.verb in WRITES or (call.verb == "claim" and call.args[0])
        if not writes or self._is_over or self.rng.random() >= self.plan.lost_writes:
            return False
        self.counts["lost write"] += 1
        self._fail_over(self.rng.choice((0.0001, 0.01, 0.5)))
        return self.rng.random() < 0.5

    def after_execution(self, call: Call) -> None:
        """Perhaps have a node die, or stop, when its call is done and not yet answered."""
        match self.hits(self.plan.ends_in_calls):
            case "crash in a call":
                self._end(call.node)
            case "stop in a call":
                self._halt(call.node)

    def stop_at_clock(self, node: SimNode) -> None:
        """Perhaps stop a node where it reads its clock."""
        if not self._is_over and self.rng.random() < self.plan.stop_at_clock:
            self.counts["stop at clock"] += 1
            span = self.spread(0.05, 2.5 * self.plan.lease / SECOND)
            self._say(f"{node.name} stops where it reads its clock, for {span / SECOND:.3f} s")
            self.world.oracle.disturbed(node, span)
            node.sleep(span)

    def server_is_down(self) -> bool:
        return self.world.baton.now < self._down_until

    def broker_is_away(self) -> bool:
        return self.world.baton.now < self._broker_away_until

    # --- what happens at an instant -------------------------------------------------------------

    def _act(self, kind: str, action: Callable[[], None]) -> None:
        if not self._is_over:
            action()
            self.counts[kind] += 1

    def _say(self, text: str) -> None:
        self.world.trace.note("FAULT", text)

    def _somebody(self) -> SimNode | None:
        return self.rng.choice(self.world.nodes) if self.world.nodes else None

    def _replace(self) -> None:
        world = self.world
        world.baton.at(world.baton.now + self.spread(0.05, 4), world.add_node)

    def _crash(self) -> None:
        node = self._somebody()
        if node:
            self._end(node)

    def _end(self, node: SimNode) -> None:
        if not node.is_dead:
            self._say(f"{node.name} crashes")
            self.world.remove_node(node)
            self._replace()

    def _leave(self) -> None:
        node = self._somebody()
        if node:
            self._say(f"{node.name} is told to leave")
            node.tell_to_leave()
            self._replace()

    def _join(self) -> None:
        if len(self.world.nodes) <= self.plan.nodes:
            self._say("one more node starts")
            self.world.add_node()

    def _stop(self) -> None:
        node = self._somebody()
        if node:
            self._halt(node)

    def _halt(self, node: SimNode) -> None:
        span = self.spread(0.05, 2.5 * self.plan.lease / SECOND)
        self._say(f"{node.name} stops for {span / SECOND:.3f} s")
        node.stopped_until = max(node.stopped_until, self.world.baton.now + span)
        self.world.oracle.disturbed(node, span)

    def _cut(self) -> None:
        node = self._somebody()
        if node:
            node.cut_how, span = self.rng.choice(CUTS), self.spread(0.2, 6)
            self._say(f"the link of {node.name} is cut ({node.cut_how}) for {span / SECOND:.3f} s")
            node.cut_until = self.world.baton.now + span
            self.world.oracle.disturbed(node, span)

    def _server_down(self) -> None:
        span = self.spread(0.1, 5)
        self._say(f"the server is down for {span / SECOND:.3f} s")
        self._down_until = self.world.baton.now + span
        for node in self.world.nodes:
            self.world.oracle.disturbed(node, span)

    def _broker_away(self) -> None:
        span = self.spread(0.2, 6)
        self._say(f"the broker is away for {span / SECOND:.3f} s")
        self._broker_away_until = self.world.baton.now + span

    def _pause_entry(self) -> None:
        world, span = self.world, self.spread(0.5, 8)
        name = self.rng.choice(sorted(world.jobs))
        self._say(f"{name!r} is paused for {span / SECOND:.3f} s")
        world.disasters.pause(name)
        world.baton.at(world.baton.now + span, lambda: world.disasters.resume(name))

    def _deploy(self) -> None:
        """Add an entry, remove one, or change one: first in some nodes, then in the others."""
        world, rng = self.world, self.rng
        name = rng.choice(NAMES)
        if name not in world.jobs:
            job = job_by(rng, self.plan.lease)
        elif rng.random() < 0.5 and len(world.jobs) > 1:
            job = None
        elif rng.random() < 0.3:
            job = replace(job_by(rng, self.plan.lease), timetable=world.jobs[name].timetable)
        else:
            job = job_by(rng, self.plan.lease)
        self._say(f"a deploy: {name!r} is {job}")
        world.deploy(name, job, [self.spread(0, 3) for _ in world.nodes])

    # --- what happens to the server -------------------------------------------------------------

    def _restart(self) -> None:
        self._say("the server comes back as another, with the same data")
        self.world.disasters.restart()
        if self.rng.random() < 0.5:
            self._server_down()

    def _flush(self) -> None:
        self._say("the server loses everything")
        self.world.disasters.flush()
        self._perhaps_once_more(self.world.disasters.copy())

    def _failover(self) -> None:
        self._fail_over(self.rng.choice((0.05, 1, 5)))

    def _fail_over(self, longest: float) -> None:
        """Go back to a copy that was made some time ago; the copy is made now, the loss follows."""
        disasters = self.world.disasters
        copy, lag = disasters.copy(), self.spread(0, longest)

        def happens() -> None:
            if copy.history == disasters.history and not self._is_over:
                self._say(f"the server fails over to a copy that is {lag / SECOND:.3f} s old")
                disasters.fail_over(copy)
                self._perhaps_once_more(copy)

        self.world.baton.at(self.world.baton.now + lag, happens)

    def _perhaps_once_more(self, copy: Copy) -> None:
        """Have a second one fail while nodes still tell the first what they remember."""
        if self.rng.random() < 0.25:
            world = self.world

            def happens() -> None:
                if not self._is_over:
                    self._say("it fails over once more, to the same copy")
                    self.counts["second loss"] += 1
                    world.disasters.fail_over(copy)

            world.baton.at(world.baton.now + self.spread(0.01, 3), happens)

    def _lost_key(self) -> None:
        key = self.rng.choice(KEYS)
        if self.world.disasters.is_whole():
            self._say(f"the server loses its key {key!r}")
            self.world.disasters.lose_key(key)

    def _clock(self) -> None:
        span = self.spread(0.01, self.rng.choice((0.5, 3, 60)))
        span *= self.rng.choice((-1, 1))
        self._say(f"the server's clock is set by {span / SECOND:.3f} s")
        self.world.oracle.clock_is_set()
        self.shift += span
        self.set_back += max(0, -span)
