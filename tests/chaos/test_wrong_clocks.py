"""Nodes whose wall clocks are wrong, or are set while they run."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import partial

import pytest

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.ledger.testimony import Testimony
from celery_redlock_beat.ticks import SECOND
from support.clock import ShiftedClock
from support.nodes import BeatNode, Node
from support.servers import Server
from support.trial import NAMESPACE, Trial

HOUR = 3600.0
AHEAD = "s ahead of the ledger's clock, which was set back"


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
            for hours in (0, -1, 1):  # all of them at once: back one hour, then forward two
                for clock in (slow, fast, jumping):
                    clock.set(hours * HOUR)
                trial.go_on(2)
                assert [_hours_off(node) for node in trial.nodes] == 3 * [hours]
            account = trial.conclude()
    assert account.faults == {}


@pytest.mark.needs_cc
def test_the_servers_clock_decides_even_where_it_is_set_forward_and_back(tmp_path):
    with (
        ShiftedClock() as clock,
        Server(env=clock.env, appendonly=True) as server,
        Trial(tmp_path, server, policies=dict.fromkeys(("one", "two"), "latest")) as trial,
    ):
        trial.go_on(2)
        clock.set(HOUR)
        trial.go_on(2)
        clock.set(0)
        trial.until(lambda: any(AHEAD in node.log for node in trial.nodes), "an alarm")
        # By its clock the next hour was sent already: it is silent until an operator says so.
        for entry in ("one", "two"):
            repair(trial, entry)
        mended = trial.now()
        trial.go_on(2)
        assert [node.name for node in trial.nodes if not node.alive] == []
        assert trial.stop() == []
        came = [each for each in trial.collector.arrivals if each.tick]
        assert any(each.tick.at > mended + HOUR * SECOND / 2 for each in came)
        assert all((each.fence or 0) >= each.tick.at for each in came), "none was granted early"
        # Each instant at most once: those that were sent an hour ahead are not due again yet.
        assert len({each.tick for each in came}) == len(came)


def repair(trial: Trial, entry: str) -> None:
    """Set an entry's mark to now, as an operator does."""
    ledger = RedisLedger(trial.connect, LedgerClock(), NAMESPACE)
    ledger.recover(Testimony())
    ledger.repair({entry: trial.now()}, "a test", "the clock was set back")


def _hours_off(node: Node) -> int:
    """How far the clock is off with which a node logs."""
    last = re.findall(r"^\[(\S+ \S+),\d+: ", node.log, re.MULTILINE)[-1]
    return round((datetime.fromisoformat(last) - datetime.now()) / timedelta(hours=1))
