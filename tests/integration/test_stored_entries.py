"""Stored entries in great numbers, on a real server: what they cost a node that has them all."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from celery import Celery

from celery_redlock_beat import Control, RedlockScheduler
from celery_redlock_beat.claims import registration_of
from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.documents.entries import written
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.ledger.redis_steering import RedisSteering
from celery_redlock_beat.ledger.steering import Definition
from celery_redlock_beat.roster import slot_of
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.timetables import timetable_for

NAME = "proj"
NUMBER = 100_000
LONG = 100_000_000.0  # seconds: none of them is due meanwhile
LIMIT = 200.0
OF_ITS_OWN = 20_000
"""Bytes that the answers to the questions of the test itself come to."""


@pytest.fixture
def app(shared_redis):
    app = Celery(NAME, broker=shared_redis.url, set_as_current=False)
    app.conf.beat_schedule = {"from code": {"task": "proj.noop", "schedule": LONG}}
    return app


@pytest.fixture
def scheduler(app):
    scheduler = RedlockScheduler(app=app)
    yield scheduler
    scheduler.close()


class Traffic:
    """What a server has been asked and has told, as it counts that itself."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._before = self._read()

    def so_far(self) -> tuple[int, int]:
        """Return how many scripts were called, and how many bytes it has sent."""
        now = self._read()
        return now[0] - self._before[0], now[1] - self._before[1]

    def _read(self) -> tuple[int, int]:
        stats, net = self._client.info("commandstats"), self._client.info("stats")
        calls = sum(
            stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval")
        )
        return calls, net["total_net_output_bytes"]


def store(app, shared_redis, number):
    """Store so many entries, as an operator does."""
    steering = RedisSteering(shared_redis.client, LedgerClock(), NAME, who="a test", history=0)
    wait_for_the_ledger(steering)
    settings, definitions = Settings.from_app(app), []
    for kind in range(100):
        fields = {"task": "proj.noop", "schedule": LONG + kind, "args": ["x" * 20]}
        text = written("any", fields)
        entry = RedlockEntry(name="any", app=app, **fields)
        slot, *_ = slot_of(
            "any", entry, settings, lambda terms, e=entry: timetable_for(e.schedule, app, terms)
        )
        for one in range(kind, number, 100):
            slot.name = f"entry {one}"
            definitions.append(Definition(text, registration_of(slot)))
    assert all(each.done for each in steering.store(definitions))


def wait_for_the_ledger(steering):
    while wait := steering.begin():
        time.sleep(wait / 1_000_000)


def pass_until(scheduler, condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(scheduler.tick())


def revision_of(scheduler, name):
    slot = scheduler.node.dispatcher.due.get(name) if scheduler.node else None
    return slot.revision if slot else None


def load_all(scheduler):
    """Pass until a node has all entries, and has made them known."""
    pass_until(scheduler, lambda: len(scheduler.stored.roster.slots()) == NUMBER)
    pass_until(scheduler, lambda: not scheduler.node.dispatcher.claims.unregistered)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_with_100_000_entries_a_node_asks_twice_a_second_and_a_change_costs_one_small_answer(
    app, scheduler, shared_redis
):
    store(app, shared_redis, NUMBER)
    load_all(scheduler)
    with shared_redis.client() as client, closing(Control(app)) as control:
        traffic, began = Traffic(client), time.monotonic()
        pass_until(scheduler, lambda: time.monotonic() > began + 4)
        calls, told = traffic.so_far()
        assert calls <= 2 * (time.monotonic() - began) + 1
        assert told < 1000 * calls + OF_ITS_OWN

        revision = control.update("entry 4711", args=["other"]).revision
        traffic = Traffic(client)
        scheduler.tick()
        calls, told = traffic.so_far()
        assert revision_of(scheduler, "entry 4711") == revision
        assert calls == 4, "a claim, what is new, making it known, and a claim again"
        assert told < 2000 + OF_ITS_OWN

        control.remove("entry 4711")
        scheduler.tick()
        assert revision_of(scheduler, "entry 4711") is None
