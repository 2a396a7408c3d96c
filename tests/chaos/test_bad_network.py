"""Between nodes and the ledger: lost replies, delays, silence one way or both, and cuts."""

from __future__ import annotations

import time
from contextlib import ExitStack
from random import Random

import pytest

from support.lengths import LONG, policies, times
from support.proxy import Proxy
from support.trial import Trial

BROKER = 'import os; app.conf.broker_url = os.environ["BROKER"]'


@pytest.fixture
def entrances(redis_server):
    """One way into the server per node."""
    with ExitStack() as stack:
        yield [stack.enter_context(Proxy(redis_server.port)) for _ in range(3)]


@pytest.fixture
def trial(redis_server, entrances, tmp_path):
    env = {place: {"BROKER": door.url} for place, door in enumerate(entrances)}
    with Trial(tmp_path, redis_server, policies=policies(), extra=BROKER, env=env) as trial:
        yield trial


@pytest.mark.timeout(600)
def test_each_tenth_reply_lost_costs_no_tick(trial, entrances):
    for seed, door in enumerate(entrances):
        door.drop_replies(0.1, seed=seed)
    trial.go_on(times(15, 120))
    account = trial.conclude(patience=40)
    assert sum(door.dropped for door in entrances) > 10
    assert account.faults == {}


@pytest.mark.timeout(600)
def test_slow_links_half_open_links_and_links_that_lose_one_way_cost_no_tick(trial, entrances):
    random = Random(23)
    for _ in range(times(3, 20)):
        victim, slow = random.sample(entrances, 2)
        slow.delay(random.uniform(0, 0.1), requests=random.uniform(0, 0.1))
        trial.next_burst()
        fault = random.choice(("half open", "requests go, replies do not", "cut"))
        if fault == "half open":
            victim.half_open()
        elif fault == "cut":
            victim.cut()
        else:
            victim.drop_replies()
        time.sleep(random.uniform(0.5, 4))
        for door in (victim, slow):
            door.restore()
            door.close_connections()
    trial.go_on(1)
    account = trial.conclude(patience=40)
    assert account.faults == {}


@pytest.mark.timeout(600)
def test_a_node_that_is_cut_off_costs_no_tick_and_takes_part_again_afterwards(trial, entrances):
    trial.go_on(1)
    trial.next_burst()
    entrances[0].cut()
    trial.go_on(20 if LONG else 8)
    entrances[0].restore()
    trial.nodes[0].wait_for_log("The ledger is back after")
    trial.go_on(2)
    account = trial.conclude()
    assert account.faults == {}
