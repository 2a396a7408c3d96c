"""One run of one seed: real nodes, one server, virtual time, faults, and a judge.

``World(seed).run()`` answers a :class:`Result`; the same seed has the same trace, on any machine.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger.memory_server import MemoryServer
from celery_redlock_beat.ticks import SECOND, Micros
from simulation.baton import Baton
from simulation.disasters import Disasters
from simulation.faults import Faults
from simulation.liveness import unsettled
from simulation.node import SimNode
from simulation.oracle import Oracle
from simulation.plan import START, Job, plan_by
from simulation.trace import Ear, Trace

if TYPE_CHECKING:
    from collections import Counter

PATIENCE: Micros = 80 * SECOND
"""How long a healed fleet may take: ten leases for an orphan of a removed entry, and some more."""


@dataclass
class Result:
    """What came of a run."""

    seed: int
    violations: list[str]
    sent: int
    faults: Counter[str]
    losses: int
    is_witnessed: bool
    digest: str
    trace: list[str] = field(repr=False)


class World:
    """Everything there is in one run."""

    def __init__(self, seed: int, *, is_traced: bool = False) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.plan = plan_by(self.rng)
        self.baton = Baton()
        self.trace = Trace(lambda: self.baton.now, is_on=is_traced)
        self.faults = Faults(self)
        begin = START + self.rng.randrange(SECOND)
        self.server = MemoryServer(lambda: begin + self.baton.now + self.faults.shift)
        self.jobs: dict[str, Job] = dict(self.plan.jobs)
        self.nodes: list[SimNode] = []
        self.oracle = Oracle(self)
        self.disasters = Disasters(self)
        self._starts = 0

    def run(self) -> Result:
        # The core draws its back-off from the module's own source: give it this seed, too.
        state = random.getstate()
        random.seed(self.seed)
        try:
            with Ear(self.trace, self.oracle.blame):
                self._run()
        finally:
            random.setstate(state)
        return Result(
            seed=self.seed,
            violations=self.oracle.violations,
            sent=sum(map(len, self.oracle.sends.values())),
            faults=self.faults.counts,
            losses=self.oracle.losses,
            is_witnessed=self.oracle.brought_back > 0,
            digest=self.trace.digest(),
            trace=self.trace.lines,
        )

    def _run(self) -> None:
        self.trace.note("PLAN", self.plan.told())
        for _ in range(self.plan.nodes):
            self.add_node()
        self.faults.begin()
        try:
            self.baton.run(self.plan.duration)
            if not self.oracle.violations:
                self.faults.end()
                self._heal()
        finally:
            self.baton.end()

    def _heal(self) -> None:
        limit = self.baton.now + PATIENCE + self.faults.set_back
        problems = ["it has only just begun"]
        while problems and not self.oracle.violations:
            if self.baton.now >= limit:
                self.oracle.blame(f"Alive: not settled in time: {'; '.join(problems)}")
                return
            self.baton.run(self.baton.now + SECOND)
            problems = list(unsettled(self))
        if not self.oracle.violations:
            self.oracle.books.take_stock(is_whole=not self.oracle.losses)
            self.oracle.runs.take_stock()

    def add_node(self) -> None:
        self._starts += 1
        node = SimNode(self, f"n{self._starts}")
        self.nodes.append(node)
        self.trace.note(node.name, "starts")
        node.start(node.live)

    def remove_node(self, node: SimNode) -> None:
        node.is_dead = True
        if node in self.nodes:
            self.nodes.remove(node)

    def deploy(self, name: str, job: Job | None, delays: list[Micros]) -> None:
        """Change the schedule: at once for nodes that start, later for each that runs."""
        if job:
            self.jobs[name] = job
        else:
            del self.jobs[name]
        self.oracle.books.close_for(name)
        for node, delay in zip(self.nodes, delays, strict=True):
            self.baton.at(self.baton.now + delay, lambda node=node: self._tell(node, name))

    def _tell(self, node: SimNode, name: str) -> None:
        node.news.append((name, self.jobs.get(name)))
