"""Run seeds: ``python tests/simulation --seed 123 -v`` replays one, ``--seeds 1000`` runs many."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[0] = str(
    Path(__file__).parents[1]
)  # not this folder: it has names of the standard library

from simulation.campaign import Campaign, complaint  # noqa: E402
from simulation.world import World  # noqa: E402

ALWAYS_SHOWN = {"PLAN", "FAULT", "WORKER", "JUDGE"}


def say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def replay(seed: int, *, is_verbose: bool) -> bool:
    """Run one seed and show what happened; return whether it kept the laws."""
    result = World(seed, is_traced=True).run()
    for line in result.trace:
        if is_verbose or line.split()[1] in ALWAYS_SHOWN:
            say(line)
    say(f"seed {seed}: {result.sent} messages, trace {result.digest}")
    say(*result.violations or ["no law was broken"])
    return not result.violations


def run(seeds: range) -> bool:
    """Run many seeds and show those that failed; return whether all kept the laws."""
    campaign = Campaign()
    for result in campaign.run(seeds):
        say(complaint(result))
    say(*campaign.told())
    return not campaign.failed


def main() -> bool:
    parser = argparse.ArgumentParser(prog="python tests/simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every call")
    parser.add_argument("--seeds", type=int, default=1000, help="how many to run")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    given = parser.parse_args()
    if given.seed is not None:
        return replay(given.seed, is_verbose=given.verbose)
    return run(range(given.start, given.start + given.seeds))


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
