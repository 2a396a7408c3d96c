"""Thousands of fleets with all that can go wrong; each is replayed by its seed with one command."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import count, islice
from pathlib import Path

import pytest

from simulation.campaign import complaint
from simulation.plan import BROKER_FAULTS, CALL_FAULTS, ENDS_IN_CALLS, EVENTS
from simulation.planted import PLANTED
from simulation.world import World

SEEDS = 1750
PER_TEST = 250
BUSY = (16, 44, 106, 158, 306)
"""Seeds with many kinds of faults."""
FOUND_WITHIN = 240


@pytest.mark.parametrize("start", range(0, SEEDS, PER_TEST))
def test_whatever_goes_wrong_the_laws_hold(start, campaign):
    failed = list(campaign.run(range(start, start + PER_TEST)))
    assert not failed, "these seeds broke a law:\n" + "\n".join(map(complaint, failed))


def test_the_seeds_reach_every_kind_of_fault_and_some_are_quiet(campaign):
    assert not list(campaign.run(range(SEEDS, SEEDS + PER_TEST)))
    kinds = {*CALL_FAULTS, *BROKER_FAULTS, *ENDS_IN_CALLS, *EVENTS}
    assert campaign.faults.keys() >= kinds | {"stop at clock", "lost write", "second loss"}
    assert campaign.quiet > PER_TEST // 10
    assert campaign.witnessed > PER_TEST // 20


@pytest.mark.parametrize("seed", BUSY)
def test_a_seed_has_one_trace(seed):
    first, again = (World(seed, is_traced=True).run() for _ in range(2))
    assert first.trace == again.trace
    assert World(seed).run().faults == first.faults


def test_a_trace_does_not_depend_on_the_process():
    seed = BUSY[0]
    command = [sys.executable, str(Path(__file__).parent), "--seed", str(seed)]
    told = {
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=tempfile.gettempdir(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(told) == 1
    assert World(seed, is_traced=True).run().digest in told.pop()


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_planted_into_the_core_is_found(name):
    planted = PLANTED[name]
    seeds = (seed for seed in count() if planted.matters(World(seed).plan))
    with planted.change():
        broken = (seed for seed in islice(seeds, FOUND_WITHIN) if World(seed).run().violations)
        found = next(broken, None)
    assert found is not None
    assert not World(found).run().violations, "it is not the planted fault that was found"
