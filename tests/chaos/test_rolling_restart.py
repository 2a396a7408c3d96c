"""A deploy of another schedule, node by node, while the rest goes on."""

from __future__ import annotations

from celery_redlock_beat.ticks import SECOND
from support.every_second import FIVE, every_second
from support.judge import judge
from support.nodes import BeatNode, write_project
from support.trial import Trial

OF_THE_OLD = {"changed": 1.0, "removed": 1.0}
OF_THE_NEW = {"changed": 2.0, "added": 1.0}


def test_nodes_are_replaced_by_ones_with_another_schedule(redis_server, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    with Trial(old, redis_server, schedule=_schedule(OF_THE_OLD)) as trial:
        trial.go_on(2)
        registered = trial.books().since
        write_project(new, redis_server.url, _schedule(OF_THE_NEW))
        for place in range(len(trial.nodes)):
            leaves = trial.now()
            assert trial.replace(place, BeatNode(new, f"node-{place}")) < 2
            gone = trial.now()
            trial.go_on(3)
        added = trial.books().since["added"]
        account = trial.conclude(law=False)
    assert account.faults == {}, "what stayed the same"

    came = trial.collector.arrivals
    last = account.verdicts["one"].due[-1]
    removed = judge(came, "removed", 1, first=registered["removed"] + 1)
    assert removed.clean
    assert leaves - SECOND < removed.sent[-1] <= gone, "it stops with the last node that had it"
    assert judge(came, "added", 1, first=added + 1, last=last - SECOND).clean
    assert judge(came, "changed", 1).once
    assert judge(came, "changed", 2, first=gone + 1, last=last - 2 * SECOND).clean


def _schedule(others: dict[str, float]) -> str:
    more = {
        name: {"task": "proj.noop", "schedule": period, "catch_up": "all"}
        for name, period in others.items()
    }
    return every_second(FIVE, **more)
