"""Nodes whose wall clocks are wrong, or are set while they run."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import partial

import pytest

from support.clock import ShiftedClock
from support.nodes import BeatNode, Node
from support.trial import Trial

HOUR = 3600.0


@pytest.mark.needs_cc
def test_wall_clocks_that_are_an_hour_off_or_jump_decide_nothing(redis_server, tmp_path):
    with ShiftedClock(-HOUR) as slow, ShiftedClock(HOUR) as fast, ShiftedClock() as jumping:
        clocks = dict(enumerate((slow.env, fast.env, jumping.env)))
        talkative = partial(BeatNode, loglevel="debug")
        with Trial(tmp_path, redis_server, env=clocks, make_node=talkative) as trial:
            trial.go_on(4)
            for hours in (1, -1, 24, 0.0001, -0.0001):
                jumping.set(hours * HOUR)
                trial.go_on(2)
                assert [_hours_off(node) for node in trial.nodes] == [-1, 1, round(hours)]
            slow.set(HOUR)
            fast.set(-HOUR)
            trial.go_on(2)
            assert [_hours_off(node) for node in trial.nodes] == [1, -1, 0]
            account = trial.conclude()
    assert account.faults == {}


def _hours_off(node: Node) -> int:
    """How far the clock is off with which a node logs."""
    last = re.findall(r"^\[(\S+ \S+),\d+: ", node.log, re.MULTILINE)[-1]
    return round((datetime.fromisoformat(last) - datetime.now()) / timedelta(hours=1))
