"""Operators at work beside real nodes: no tick is lost, and none is counted or sent twice."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress

import pytest
from celery import Celery

from celery_redlock_beat import Control, RedlockScheduler, TickRefused
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SECOND, to_micros
from support.node_here import QUICK
from support.servers import wait_until

PERIOD = SECOND // 10
LIMIT = 20.0


class Fleet:
    """Two nodes that pass when told to, and an operator; all entries are stored."""

    def __init__(self, server):
        self.app = Celery("shop", broker=server.url, set_as_current=False)
        self.app.conf.update(result_expires=None, **QUICK)
        self.control = Control(self.app, who="anna@here")
        self.nodes = [RedlockScheduler(app=self.app) for _ in range(2)]
        self.client = server.client()
        self.keys = ledger_keys("shop")

    def close(self):
        for node in self.nodes:
            node.close()
        self.control.close()
        self.client.close()

    def until(self, condition):
        """Have the nodes pass until something holds."""
        wait_until(lambda: condition() or self.passes(), LIMIT, "what nodes should do", 0.01)

    def passes(self):
        for node in self.nodes:
            node.tick()

    def sent(self):
        """Return how often each tick's message was sent."""
        told = (json.loads(each)["headers"] for each in self.client.lrange("celery", 0, -1))
        return Counter(
            (each["redlock_entry"], each["redlock_tick"])
            for each in told
            if "redlock_fired_by" not in each
        )

    def sends_more(self, number=2):
        before = len(self.sent())
        self.until(lambda: len(self.sent()) >= before + number)


def told(upcoming):
    """Return how a message tells its tick."""
    return upcoming.entry, upcoming.tick.isoformat(timespec="microseconds")


@pytest.fixture
def fleet(shared_redis):
    fleet = Fleet(shared_redis)
    yield fleet
    fleet.close()


def test_what_is_added_is_sent_and_what_is_paused_or_removed_is_not(fleet):
    control = fleet.control
    control.add("often", task="shop.often", schedule=0.1)
    fleet.sends_more()
    control.pause("often")
    before = fleet.sent()
    for _ in range(20):
        fleet.passes()
    assert fleet.sent() == before
    control.resume("often")
    fleet.sends_more()
    control.remove("often")
    before = fleet.sent()
    for _ in range(20):
        fleet.passes()
    assert fleet.sent() == before
    assert max(before.values()) == 1


def test_a_pause_ends_by_itself(fleet):
    control = fleet.control
    control.add("often", task="shop.often", schedule=0.1)
    fleet.sends_more()
    (view,) = control.pause("often", until=control.get("often").next)
    fleet.sends_more()
    (resumed,) = [each for each in control.history("often", number=100) if each.action == "resumed"]
    assert resumed.tick == view.paused.until


def test_a_tick_that_is_to_be_skipped_is_skipped_and_the_next_one_is_sent(fleet):
    control = fleet.control
    control.add("often", task="shop.often", schedule=1)
    fleet.sends_more(1)
    skipped, following = control.upcoming(2, "often")
    control.skip("often", skipped.tick)
    fleet.until(lambda: told(following) in fleet.sent())
    assert told(skipped) not in fleet.sent()
    why = control.why("often", skipped.tick)
    assert (why.answer, "an operator" in why.text) == ("skipped", True)
    assert control.why("often", following.tick).answer == "sent"


def test_a_message_beside_the_schedule_moves_nothing(fleet):
    control = fleet.control
    control.add("often", task="shop.often", schedule=0.1)
    fleet.sends_more()
    control.fire("often", key="k")
    fleet.sends_more()
    assert control.fire("often", key="k")[0].already
    assert control.totals()["fired"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_whatever_operators_do_each_tick_is_accounted_for_once(fleet, seed):
    chance, control = random.Random(seed), fleet.control
    first = control.add("often", task="shop.often", schedule=0.1).revision
    deeds = {
        "pause": lambda: control.pause("often"),
        "resume": lambda: control.resume("often", catch_up=chance.random() < 0.5),
        "task": lambda: control.update("often", task=f"shop.t{chance.random()}"),
        "limit": lambda: control.update("often", max_runs=chance.choice([None, 10_000])),
        "skip": lambda: control.skip("often", control.upcoming(1, "often")[0].tick),
        "policy": lambda: control.update("often", catch_up=chance.choice(["all", "latest"])),
    }
    for _ in range(40):
        with suppress(TickRefused):  # it was claimed just then
            deeds[chance.choice(list(deeds))]()
        for _ in range(chance.randrange(8)):
            fleet.passes()
    control.resume("often")
    fleet.sends_more()
    control.remove("often")
    ended = next(each for each in control.history("often") if each.action == "removed")
    due = to_micros(ended.tick) // PERIOD - first // PERIOD  # a revision is its instant, too
    totals = control.totals()
    assert sum(totals.values()) == due, totals
    assert totals["sent"] == len(fleet.sent())
    assert max(fleet.sent().values()) == 1
