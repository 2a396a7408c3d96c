"""The ledger's server loses replies, goes away, or stands still."""

from __future__ import annotations

import time

import pytest

from support.trial import Trial

OUTAGE = 8.0
HOLD_DOWN = 3.0


def test_lost_replies_neither_double_nor_lose_a_tick(redis_server, proxy, tmp_path):
    with Trial(tmp_path, redis_server, url=proxy.url) as trial:
        proxy.drop_replies(0.03, seed=7)
        trial.go_on(20)
        account = trial.conclude()
    assert proxy.dropped > 10
    assert account.faults == {}


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_a_server_that_was_away_is_used_again_soon(redis_server, tmp_path, fault):
    away, back = {
        "killed": (redis_server.kill, redis_server.start),
        "frozen": (redis_server.freeze, redis_server.thaw),
    }[fault]
    with Trial(tmp_path, redis_server) as trial:
        trial.go_on(2)
        trial.next_burst()
        away()
        time.sleep(OUTAGE)
        back()
        assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN
        trial.go_on(2)
        for node in trial.nodes:
            assert node.log.count("The ledger is away") == 1, "said once, not per pass"
        trial.next_burst()
        redis_server.restart()
        assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN
        trial.go_on(1)
        account = trial.conclude()
    assert account.faults == {}
