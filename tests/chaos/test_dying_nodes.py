"""Nodes that are killed, one by one or all at once, at any point of their work."""

from __future__ import annotations

import time
from random import Random

import pytest

from celery_redlock_beat.ticks import SECOND
from support.account import untold_gaps
from support.every_second import FIVE
from support.failpoint import AROUND_VERBS, BEFORE_PUBLISHING, IN_A_LAZY_ARGUMENT, fail_one
from support.judge import grid
from support.lengths import policies, times
from support.servers import Server
from support.trial import LEASE, NAMESPACE, Trial

OUTAGE = 8.0


def test_two_of_three_nodes_that_are_killed_in_turn_cost_no_tick(redis_server, tmp_path):
    with Trial(tmp_path, redis_server) as trial:
        victims = trial.nodes[:2]
        for victim in victims:
            trial.go_on(2)
            trial.next_burst()
            victim.kill()
        trial.go_on(LEASE + 1)
        trial.begin(victims)
        trial.go_on(2)
        account = trial.conclude()
    assert account.faults == {}


def test_after_all_nodes_were_dead_each_entry_catches_up_by_its_policy(redis_server, tmp_path):
    newest = {"newest": "latest", "newest too": "latest"}
    with Trial(tmp_path, redis_server, policies=FIVE | newest) as trial:
        trial.go_on(2)
        trial.next_burst()
        for node in trial.nodes:
            node.kill()
        marks = trial.books().marks
        time.sleep(OUTAGE)
        back = trial.now()
        trial.begin()
        trial.go_on(3)
        account = trial.conclude()
    assert account.faults == {}
    passed_over = 0
    for entry in newest:
        came = {each.tick.at: each for each in trial.collector.of(entry)}
        first = min(at for at in came if at > marks[entry])
        assert first > back - SECOND, "the newest one alone is sent of those that are late"
        missed = len(grid(1, marks[entry] + 1, first - 1))
        assert missed >= OUTAGE - 1
        assert int(came[first].headers["redlock_passed_over"]) == missed
        assert list(untold_gaps(came.values(), entry)) == []
        passed_over += sum(int(each.headers["redlock_passed_over"]) for each in came.values())
    assert account.totals["skipped:superseded"] == passed_over


def test_two_of_three_nodes_that_stand_still_in_mid_work_cost_no_tick(redis_server, tmp_path):
    with Trial(tmp_path, redis_server, extra=BEFORE_PUBLISHING) as trial:
        trial.go_on(1)
        sleepers = [trial.nodes[fail_one(tmp_path, "SIGSTOP").place] for _ in range(2)]
        trial.go_on(OUTAGE)
        for node in sleepers:
            node.thaw()
        trial.go_on(3)
        account = trial.conclude()
    assert account.faults == {}
    assert max(each.attempt for each in trial.collector.arrivals) > 1, "others took over"


@pytest.mark.parametrize("point", [BEFORE_PUBLISHING, IN_A_LAZY_ARGUMENT], ids=["signal", "lazy"])
def test_what_a_node_had_claimed_when_it_died_is_sent_by_another(redis_server, tmp_path, point):
    with Trial(tmp_path, redis_server, extra=point) as trial:
        trial.go_on(1)
        died = fail_one(tmp_path, "SIGKILL")
        trial.go_on(LEASE + 2)
        trial.begin([trial.nodes[died.place]])
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}
    again = [each for each in trial.collector.arrivals if each.attempt > 1]
    assert again
    assert {each.attempt for each in again} == {2}
    assert max(each.at for each in again) <= died.at + (LEASE + 1) * SECOND
    assert all(each.task_id == each.tick.task_id(NAMESPACE) for each in again)
    if died.task_id:
        assert died.task_id in {each.task_id for each in again}


@pytest.mark.timeout(1200)
def test_deaths_around_each_call_of_the_ledger_cost_no_tick(redis_server, tmp_path):
    points = ("before claim", "after claim", "before enqueue", "after enqueue")
    config = {"redlock_beat_lease": 2.5}
    with Trial(
        tmp_path, redis_server, policies=policies(), extra=AROUND_VERBS, config=config, nodes=5
    ) as trial:
        trial.go_on(1)
        die_at_each(trial, points, times(2, 50))
        account = trial.conclude()
    assert account.faults == {}


@pytest.mark.timeout(1200)
def test_deaths_around_publish_and_settle_resend_with_the_same_id(redis_server, tmp_path):
    points = ("before claim", "after claim", "before settle", "after settle")
    config = {"redlock_beat_lease": 2.5, "redlock_beat_url": redis_server.url}
    with (
        Server() as broker,
        Trial(
            tmp_path,
            redis_server,
            broker_url=broker.url,
            policies=policies(),
            extra=AROUND_VERBS,
            config=config,
            nodes=5,
        ) as trial,
    ):
        trial.go_on(1)
        die_at_each(trial, points, times(1, 10))
        trial.wait_for_quiet()  # what was published and not settled is open for a lease
        account = trial.conclude()
    assert account.faults_but("doubled") == {}
    assert account.count("doubled") <= times(1, 10), "only those that were published, not settled"


def die_at_each(trial: Trial, points: tuple[str, ...], rounds: int) -> None:
    """Have a node die at each of the points in turn, and start it again at once."""
    for _ in range(rounds):
        for point in points:
            died = fail_one(trial.directory, f"SIGKILL {point}")
            node = trial.nodes[died.place]
            node.wait_for_exit()
            trial.begin([node])


@pytest.mark.timeout(1200)
def test_nodes_and_the_server_stand_still_for_a_while_again_and_again(redis_server, tmp_path):
    random = Random(22)
    with Trial(tmp_path, redis_server, policies=policies()) as trial:
        for _ in range(times(5, 50)):
            trial.next_burst()
            sleeper = random.choice([*trial.nodes, redis_server])
            sleeper.freeze()
            time.sleep(0.1 * 300 ** random.random() if times(0, 1) else random.uniform(0.1, 3))
            sleeper.thaw()
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}
