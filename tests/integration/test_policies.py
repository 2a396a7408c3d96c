"""What the keys of an entry do, with real nodes on a real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from celery_redlock_beat.ticks import SECOND, to_datetime
from support.nodes import BeatNode
from support.trial import Trial

QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2, "redlock_beat_strict": True}
PULSE = {"pulse": "all"}


def schedule(**entries: str) -> str:
    pulse = '"pulse": {"task": noop.name, "schedule": 1, "catch_up": "all"}'
    more = (f'"{name}": {{"task": noop.name, {fields}}}' for name, fields in entries.items())
    return "{" + ", ".join([pulse, *more]) + "}"


def came(trial: Trial, entry: str) -> list:
    return [each for each in trial.collector.arrivals if each.tick and each.tick.entry == entry]


@pytest.fixture
def trial_of(shared_redis, tmp_path):
    def make(nodes: int = 3, extra: str = "", **entries: str) -> Trial:
        return Trial(
            tmp_path,
            shared_redis,
            config=QUICK,
            policies=PULSE,
            schedule=schedule(**entries),
            extra=extra,
            nodes=nodes,
        )

    return make


def test_one_message_at_the_first_start_and_none_with_a_deploy(trial_of, tmp_path):
    with trial_of(first='"schedule": 86400.0, "run_on_start": True') as trial:
        trial.go_on(2)
        for place in range(3):
            trial.replace(place, BeatNode(tmp_path, f"next-{place}"))
        trial.go_on(2)
        assert trial.stop() == []
    assert len(came(trial, "first")) == 1


def test_a_limit_counts_over_nodes_and_restarts(trial_of, tmp_path):
    with trial_of(
        thrice='"schedule": 1, "max_runs": 3', all_at_once='"schedule": 0.1, "max_runs": 7'
    ) as trial:
        trial.wait_for(lambda _: came(trial, "thrice"))
        trial.nodes[0].kill()
        trial.adopt(0, BeatNode(tmp_path, "next"))
        trial.begin([trial.nodes[0]])
        trial.go_on(6)
        assert trial.stop() == []
    assert len(came(trial, "thrice")) == 3
    assert len(came(trial, "all_at_once")) == 7
    assert len({each.task_id for each in came(trial, "all_at_once")}) == 7


def test_a_disabled_entry_is_not_sent(trial_of):
    with trial_of(off='"schedule": 1, "enabled": False') as trial:
        trial.go_on(3)
        assert trial.stop() == []
    assert came(trial, "off") == []


def test_jitter_delays_and_costs_no_tick(trial_of):
    with trial_of(shaken='"schedule": 1, "jitter": 0.9, "catch_up": "all"') as trial:
        trial.go_on(6)
        assert trial.stop() == []
    ticks = [each.tick.at for each in came(trial, "shaken")]
    delays = [each.at - each.tick.at for each in came(trial, "shaken")]
    assert ticks == list(range(ticks[0], ticks[-1] + 1, SECOND))
    assert len(ticks) >= 5
    assert max(delays) - min(delays) > SECOND / 10


def test_a_message_expires_when_the_next_tick_is_due(trial_of):
    with trial_of(fresh='"schedule": 5, "expires": "next", "jitter": 0.5') as trial:
        trial.wait_for(lambda _: came(trial, "fresh"))
        assert trial.stop() == []
    first = came(trial, "fresh")[0]
    expires = datetime.fromisoformat(first.headers["expires"])
    following = to_datetime(first.tick.at + 5 * SECOND)
    assert following <= expires < following + timedelta(seconds=0.5)


def test_what_happens_once_happens_once_also_after_a_restart_and_a_flush(trial_of, tmp_path):
    soon = datetime.now(UTC) + timedelta(seconds=6)
    past = datetime.now(UTC) - timedelta(days=1)
    with trial_of(
        extra="from celery_redlock_beat import once\n"
        f"app.conf.beat_schedule['once'] = {{'task': noop.name, 'schedule': once('{soon}')}}\n"
        f"app.conf.beat_schedule['late'] = {{'task': noop.name, 'schedule': once('{past}')}}\n",
    ) as trial:
        trial.wait_for(lambda _: came(trial, "once"))
        trial.replace(0, BeatNode(tmp_path, "next"))
        trial.go_on(1)
        trial.note_books()
        with trial.connect() as client:
            client.flushall()
        trial.resumed_after(trial.now())
        trial.replace(1, BeatNode(tmp_path, "last"))
        trial.go_on(2)
        assert trial.stop() == []
        totals = trial.memory.then(trial.books())
    assert len(came(trial, "once")) == 1
    assert came(trial, "late") == []
    assert totals
