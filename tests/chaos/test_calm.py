"""Nothing fails: the measure for all other runs."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from celery_redlock_beat.ticks import SECOND
from support.trial import Trial

SECONDS = max(20.0, float(os.environ.get("REDLOCK_CHAOS_SECONDS", "60")))


@pytest.mark.timeout(SECONDS + 120)
def test_each_tick_is_sent_once_and_not_before_its_instant(redis_server, tmp_path):
    with Trial(tmp_path, redis_server) as trial:
        trial.go_on(SECONDS)
        account = trial.conclude()
    assert account.faults == {}
    for verdict in account.verdicts.values():
        assert len(verdict.sent) >= SECONDS
        steps = {later - one for one, later in pairwise(verdict.sent)}
        assert steps == {SECOND}, "the nominal instants are exactly a second apart"
