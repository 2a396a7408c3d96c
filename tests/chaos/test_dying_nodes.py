"""Nodes that are killed, one by one or all at once, at any point of their work."""

from __future__ import annotations

import time

import pytest

from celery_redlock_beat.ticks import SECOND
from support.account import untold_gaps
from support.every_second import FIVE
from support.failpoint import BEFORE_PUBLISHING, IN_A_LAZY_ARGUMENT, fail_one
from support.judge import grid
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
