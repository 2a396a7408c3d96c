"""Many seeds in a row, and what they have to say together."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from simulation.world import Result, World

REPLAY = "python tests/simulation --seed {seed} -v"


@dataclass
class Campaign:
    """What came of many seeds."""

    seeds: int = 0
    seconds: float = 0.0
    sent: int = 0
    quiet: int = 0
    losses: int = 0
    witnessed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def run(self, seeds: Iterable[int]) -> Iterable[Result]:
        """Run seeds; yield those that broke a law, as soon as they did."""
        for seed in seeds:
            started = time.perf_counter()
            result = World(seed).run()
            self._take(result, time.perf_counter() - started)
            if result.violations:
                self.failed.append(result)
                yield result

    def add(self, other: Campaign) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def told(self) -> list[str]:
        """Sum up in a few lines."""
        faults = ", ".join(f"{kind} {number}" for kind, number in sorted(self.faults.items()))
        pace = self.seeds / self.seconds if self.seconds else 0
        return [
            f"{self.seeds} seeds in {self.seconds:.0f} s ({pace:.0f}/s), {len(self.failed)} failed",
            f"{self.sent} messages; {self.quiet} seeds without a fault; faults: {faults}",
            f"{self.losses} losses of data; in {self.witnessed} seeds a node remembered them",
        ]

    def _take(self, result: Result, seconds: float) -> None:
        self.seeds += 1
        self.seconds += seconds
        self.sent += result.sent
        self.quiet += not result.faults
        self.losses += result.losses
        self.witnessed += result.is_witnessed
        self.faults += result.faults


def complaint(result: Result) -> str:
    """Say what a seed broke, and how to see it again."""
    return f"{REPLAY.format(seed=result.seed)}\n    {result.violations[0]}"
