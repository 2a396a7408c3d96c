"""Whose turn it is, by RedBeat's own lock: a real one, and records that a real RedBeat wrote."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.schedules import schedule
from redbeat.schedulers import RedBeatSchedulerEntry

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.predecessors.redbeat.interlock import RedBeatInterlock
from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import SECOND, to_micros

LOCK = "redbeat::lock"
LEASE = 2 * SECOND


@pytest.fixture
def app(shared_redis):
    app = Celery("shop", broker=shared_redis.url, set_as_current=False)
    app.conf.update(redbeat_redis_url=shared_redis.url, redbeat_redis_options={})
    return app


@pytest.fixture
def client(shared_redis):
    with shared_redis.client() as client:
        yield client


@pytest.fixture
def node(app):
    """Make nodes that have no entry of their own."""
    return lambda: RedBeatInterlock(app, "shop", LEASE, set)


@pytest.fixture
def entry(app):
    entry = RedBeatSchedulerEntry("every", "proj.every", schedule(60), app=app)
    entry.save()
    return entry


def ran(entry, at):
    entry.reschedule(at)
    return at


def begun(node):
    return wait_until(node.turn, 10, "our turn")


def test_a_turn_begins_once_redbeats_records_stand_still(node, entry, client):
    """A RedBeat that is stopped in the middle of its work goes on without its lock."""
    one, two = node(), node()
    now = datetime.now(UTC)
    for number in range(4):
        last = ran(entry, now + timedelta(milliseconds=number))
        assert (one.turn(), two.turn()) == (None, None)
        time.sleep(0.6)  # longer than between two looks
    token = begun(one)
    assert client.get(LOCK).decode() == token
    assert begun(two) == token
    assert one.last_run("every") == two.last_run("every") == last


def test_while_redbeat_has_its_lock_it_is_not_our_turn(node, entry, client, caplog):
    caplog.set_level("INFO")
    with client.lock(LOCK, timeout=60):
        one = node()
        assert one.turn() is None
        assert "RedBeat has its lock redbeat::lock" in caplog.text
        time.sleep(0.6)
        assert one.turn() is None
    assert begun(one)


def test_what_was_sent_is_written_back_and_the_last_one_gives_the_lock_back(node, entry, client):
    one, two = node(), node()
    assert begun(one) == begun(two)
    sent = datetime.now(UTC) + timedelta(minutes=1)
    one.leave(lambda _names: {"every": to_micros(sent)})
    assert client.exists(LOCK), "the other one has it"
    assert RedBeatSchedulerEntry.from_key(entry.key, app=entry.app).last_run_at == sent
    later = sent + timedelta(minutes=1)
    two.leave(lambda _names: {"every": to_micros(later)})
    assert not client.exists(LOCK)
    assert RedBeatSchedulerEntry.from_key(entry.key, app=entry.app).last_run_at == later


def test_a_node_that_was_killed_keeps_nobody_from_giving_the_lock_back(node, entry, client):
    killed, one = node(), node()
    assert begun(killed) == begun(one)
    until = time.monotonic() + 5.5
    while time.monotonic() < until:  # in which only one of them extends the lock
        assert one.turn()
        time.sleep(0.5)
    one.leave(lambda _names: {})
    assert not client.exists(LOCK)


def test_a_node_that_never_had_the_lock_leaves_without_a_word(node, client, caplog):
    with client.lock(LOCK, timeout=60):
        one = node()
        assert one.turn() is None
        one.leave(lambda _names: {})
        assert client.exists(LOCK)
    assert "given back" not in caplog.text


def test_without_a_lock_there_are_no_turns(app, node):
    app.conf.redbeat_lock_key = None
    with pytest.raises(SettingError, match="redbeat_lock_key switches that off"):
        node().check()
