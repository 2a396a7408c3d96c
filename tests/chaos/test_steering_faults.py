"""Data that is lost, and nodes that sleep, while an operator's entries and pauses are in force."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SECOND
from support.clock import ShiftedClock
from support.moving import MovingPrimary
from support.servers import Server, wait_until
from support.steered import SteeredTrial
from support.trial import LIMIT, NAMESPACE

HOLD_DOWN = 3.0
KEYS = ledger_keys(NAMESPACE)
UNTOUCHED = {"one": "latest", "two": "latest"}
CODE = ("held", "let go")
BROKER = 'import os; app.conf.broker_url = os.environ["BROKER"]'
BEGINNING = "what was sent last, what was paused and which entries were stored is unknown"


@pytest.fixture
def server():
    """Start a server that keeps nothing over a restart but the snapshots it is told to make."""
    with Server() as server:
        yield server


@pytest.fixture
def trial(server, tmp_path):
    with SteeredTrial(tmp_path, server, untouched=UNTOUCHED, code=CODE) as trial:
        yield trial


def begin_steering(trial):
    """Have entries and pauses of every kind in force."""
    operator = trial.operator
    for entry in ("kept", "edited", "paused", "freed", "removed"):
        operator.add(entry)
    for entry in ("paused", "freed", "let go"):
        operator.pause(entry)
    _in_force(trial)


def steer_on(trial):
    """Change what an older copy does not know of."""
    operator = trial.operator
    operator.edit("edited", 0.5)
    operator.remove("removed")
    operator.resume("freed")
    operator.resume("let go")
    operator.pause("held")
    operator.add("added")
    _in_force(trial)


def _in_force(trial):
    """Wait until all nodes have taken part since, and no message of ours is in the queue."""
    trial.go_on(1)
    last = trial.operator.deeds[-1].mark("returned")
    trial.wait_for(lambda came: any(each.task_id == last for each in came))


def steered(trial):
    """Return what is stored, and what is paused."""
    views = trial.operator.control.entries()
    stored = {view.name: view.definition for view in views if view.revision}
    return stored, {view.name: view.paused for view in views if view.paused}


@contextmanager
def nothing_changes(trial):
    """Look that what is stored and paused is the same after something happened, and in force."""
    before = steered(trial)
    yield
    assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN
    assert steered(trial) == before
    for entry in ("kept", "edited", "freed", "added", "let go"):
        trial.sent_for(entry, trial.now())
    assert steered(trial) == before


def conclude(trial):
    """Judge the messages; nothing came of what was removed or paused."""
    trial.operator.resume("held")  # and it is steered as before
    resumed = trial.sent_for("held", trial.operator.deeds[-1].moment.returned)
    assert resumed.at - resumed.tick.at < SECOND
    assert trial.stop() == []
    assert dict(trial.judge_messages().faults) == {}


@pytest.mark.timeout(200)
@pytest.mark.parametrize("lost", ["all", "marks", "entries", "paused", "changes", "gone"])
def test_what_is_lost_of_entries_and_pauses_is_told_again_by_the_nodes(trial, server, lost):
    begin_steering(trial)
    steer_on(trial)
    with nothing_changes(trial), server.client() as client:
        client.flushall() if lost == "all" else client.delete(KEYS[lost])
    conclude(trial)


@pytest.mark.timeout(200)
def test_an_older_snapshot_brings_no_entry_and_no_pause_back(trial, server):
    begin_steering(trial)
    with server.client() as client:
        client.save()
    steer_on(trial)
    with nothing_changes(trial):
        server.kill()
        server.start()
    conclude(trial)


@pytest.mark.timeout(200)
def test_a_replica_that_lacks_the_last_changes_is_told_of_them(tmp_path):
    with MovingPrimary(entrances=4) as moving:
        *doors, own = moving.entrances
        with SteeredTrial(
            tmp_path,
            moving.primary,
            broker_url=own.url,
            untouched=UNTOUCHED,
            code=CODE,
            extra=BROKER,
            env={place: {"BROKER": door.url} for place, door in enumerate(doors)},
        ) as trial:
            begin_steering(trial)
            moving.fall_behind()
            steer_on(trial)
            with nothing_changes(trial):
                moving.fail_over(0, [0, 0.3, 0.6, 0])
                trial.server = moving.primary
            conclude(trial)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("wakes", ["before", "during", "after"])
def test_a_node_that_slept_through_changes_and_a_flush_brings_nothing_back(trial, server, wakes):
    begin_steering(trial)
    sleeper = trial.nodes[0]
    sleeper.freeze()
    steer_on(trial)
    with nothing_changes(trial), server.client() as client:
        if wakes == "before":
            sleeper.thaw()
        client.flushall()
        if wakes == "during":
            wait_until(lambda: client.hget(KEYS["marks"], "revision"), LIMIT, "a first push")
            sleeper.thaw()
        if wakes == "after":
            trial.resumed_after(trial.now())
            sleeper.thaw()
    trial.go_on(2)
    conclude(trial)


@pytest.mark.timeout(200)
def test_what_nodes_that_were_restarted_know_to_be_gone_stays_gone(trial, server):
    begin_steering(trial)
    sleeper, *others = trial.nodes
    sleeper.freeze()
    steer_on(trial)
    for node in others:  # they have never heard of what is gone by now
        trial.end(node)
        trial.begin([node])
    trial.go_on(1)
    with nothing_changes(trial), server.client() as client:
        for node in others:
            node.freeze()
        client.flushall()
        sleeper.thaw()  # and is the first to tell what it remembers
        wait_until(lambda: client.hget(KEYS["marks"], "revision"), LIMIT, "a first push")
        for node in others:
            node.thaw()
    conclude(trial)


@pytest.mark.timeout(200)
def test_after_a_loss_that_no_node_outlives_it_is_told_what_is_unknown(trial, server):
    begin_steering(trial)
    control, victim = trial.operator.control, trial.nodes[0]
    for node in trial.nodes:
        node.kill()
    with server.client() as client:
        client.flushall()
    assert not control.health().ready
    seen = len(victim.log)
    trial.begin([victim])
    assert BEGINNING in victim.log[seen:]
    told = control.health()
    assert not told.ready
    assert any(
        "marks, pauses and stored entries of before are unknown" in each for each in told.problems
    )


@pytest.mark.needs_cc
@pytest.mark.timeout(200)
def test_an_entry_that_is_added_again_after_the_clock_was_set_back_sends_no_tick_twice(tmp_path):
    with (
        ShiftedClock() as clock,
        Server(env=clock.env) as server,
        SteeredTrial(tmp_path, server) as trial,
    ):
        trial.operator.add("back", 1.0)
        trial.until(lambda: len(ticks_of(trial, "back")) > 4, "messages")
        trial.operator.remove("back")
        sent = ticks_of(trial, "back")
        clock.set(-4)  # so that what was sent last is due once more
        trial.operator.add("back", 1.0)
        trial.until(lambda: len(ticks_of(trial, "back")) > len(sent) + 5, "more messages")
        assert trial.stop() == []
        ticks = ticks_of(trial, "back")
    assert len(set(ticks)) == len(ticks)


def ticks_of(trial, entry):
    """Return the ticks of the messages of an entry that have come so far."""
    came = (each.tick for each in trial.collector.arrivals)
    return [tick.at for tick in came if tick and tick.entry == entry]
