"""The ledger's server loses data, all of it or the last of it, while nodes live that remember."""

from __future__ import annotations

import time
from random import Random

import pytest

from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SECOND
from support.failpoint import AROUND_VERBS, fail_one
from support.lengths import policies, times
from support.moving import MovingPrimary
from support.servers import Server
from support.trial import NAMESPACE, Trial

HOLD_DOWN = 3.0
KEYS = ledger_keys(NAMESPACE)
BROKER = 'import os; app.conf.broker_url = os.environ["BROKER"]'


@pytest.fixture
def forgetful():
    """A server that keeps nothing over a restart but the snapshots that it is told to make."""
    with Server() as server:
        yield server


@pytest.mark.timeout(400)
def test_after_flushall_nothing_is_sent_twice_and_all_is_accounted_for(forgetful, tmp_path):
    random = Random(20)
    with Trial(tmp_path, forgetful, policies=policies()) as trial:
        for _ in range(times(3, 20)):
            trial.go_on(1)
            trial.next_burst()
            time.sleep(random.uniform(0, 0.05))
            lose(trial, lambda client: client.flushall())
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}


@pytest.mark.timeout(400)
def test_a_restart_without_any_data_is_like_a_flush(forgetful, tmp_path):
    with Trial(tmp_path, forgetful, policies=policies()) as trial:
        for _ in range(times(1, 5)):
            trial.go_on(1)
            trial.next_burst()
            die_and_return(trial, forgetful)
        account = trial.conclude()
    assert account.faults == {}


@pytest.mark.timeout(400)
def test_an_old_snapshot_brings_nothing_back(forgetful, tmp_path):
    with Trial(tmp_path, forgetful, policies=policies()) as trial:
        for _ in range(times(1, 5)):
            trial.next_burst()
            with forgetful.client() as client:
                client.save()
            trial.go_on(3)
            trial.next_burst()
            die_and_return(trial, forgetful)
        account = trial.conclude()
    assert account.faults == {}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["marks", "open", "grants", "paused"])
def test_a_key_that_is_deleted_alone_is_told_by_name_and_costs_nothing(
    redis_server, tmp_path, name
):
    with Trial(tmp_path, redis_server, policies=policies()) as trial:
        for _ in range(times(1, 5)):
            trial.go_on(1)
            trial.next_burst()
            lose(trial, lambda client: client.delete(KEYS[name]))
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}
    assert account.count("sent") == account.count("due")
    told = sum(node.log.count(f"had lost its key '{KEYS[name]}'") for node in trial.nodes)
    assert told == times(1, 5), "by the node that found it, once each time"


@pytest.mark.timeout(400)
def test_a_second_loss_during_the_recovery_and_a_node_that_sleeps_through_both(forgetful, tmp_path):
    with Trial(tmp_path, forgetful, policies=policies()) as trial, forgetful.client() as client:
        for place in range(times(1, 3)):
            trial.go_on(2)
            trial.next_burst()
            trial.nodes[place].freeze()
            trial.note_books()
            client.flushall()
            time.sleep(HOLD_DOWN / 2)
            client.flushall()
            back(trial)
            trial.nodes[place].thaw()
            trial.go_on(2)
        account = trial.conclude()
    assert account.faults == {}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("apart", [False, True], ids=["enqueue", "publish"])
def test_a_node_that_stood_still_with_a_grant_through_the_whole_recovery(
    forgetful, redis_server, tmp_path, apart
):
    random = Random(31)
    broker = redis_server if apart else forgetful
    config = {"redlock_beat_url": forgetful.url}
    with Trial(
        tmp_path,
        forgetful,
        broker_url=broker.url,
        config=config,
        policies=policies(),
        extra=AROUND_VERBS,
    ) as trial:
        for _ in range(times(2, 10)):
            trial.go_on(1)
            stopped = trial.nodes[fail_one(tmp_path, "SIGSTOP after claim").place]
            trial.note_books()
            with forgetful.client() as client:
                client.flushall()
            time.sleep(HOLD_DOWN + random.uniform(-0.5, 2))  # its lease may still run, or not
            stopped.thaw()
            back(trial)
        account = trial.conclude()
    # A message that is published twice has one id, and is what at least once means.
    assert account.faults_but(*(["doubled"] if apart else [])) == {}


@pytest.mark.timeout(600)
def test_failovers_to_a_replica_that_lacks_the_last_second(tmp_path):
    random = Random(21)
    nodes, cold = 3, times(1, 2)
    with MovingPrimary(entrances=nodes + cold + 1) as moving:
        *doors, own = moving.entrances
        env = {place: {"BROKER": door.url} for place, door in enumerate(doors)}
        with Trial(
            tmp_path,
            moving.primary,
            broker_url=own.url,
            policies=policies(),
            extra=BROKER,
            env=env,
            nodes=nodes + cold,
            start=False,
        ) as trial:
            starters = trial.nodes[:nodes]
            trial.begin(starters)
            for round_ in range(times(4, 20)):
                trial.go_on(1)
                trial.next_burst()
                trial.note_books()
                late = [random.uniform(0, 0.6) for _ in doors]
                behind = random.uniform(0.1, 0.9)
                # So that the replica lacks a burst, and the primary dies in the middle of it.
                await_phase(trial, random.uniform(0, 0.1) - behind)
                moving.fail_over(behind, [*late, 0])
                trial.server = moving.primary
                if round_ in (1, 11)[:cold]:  # a node that knows nothing joins at that moment
                    trial.nodes[nodes + (round_ == 11)].start()
                back(trial)
            account = trial.conclude()
    assert account.faults == {}


def await_phase(trial: Trial, seconds: float) -> None:
    """Wait until the server's clock is so far past, or before, a whole second."""
    time.sleep((seconds - trial.now() / SECOND) % 1)


def die_and_return(trial: Trial, server: Server) -> None:
    """Have the server die amid its work, with what it keeps over that, and come back."""
    trial.note_books()
    server.kill()
    server.start()
    back(trial)


def lose(trial: Trial, loss) -> None:
    """Have the server lose something, and wait until ticks are sent again."""
    trial.note_books()
    with trial.server.client() as client:
        loss(client)
    back(trial)


def back(trial: Trial) -> None:
    """Wait until what was granted after this very moment is sent; note what is in doubt by then."""
    assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN
    trial.note_books()
