"""In bad times: entries whose ticks are due after their instants, or that end after so many."""

from __future__ import annotations

from collections import Counter

from support.every_second import FIVE, every_second
from support.trial import LEASE, Trial

JITTERED = {
    name: {"task": "proj.noop", "schedule": 1.0, "catch_up": "all", "jitter": 0.1 + 0.2 * number}
    for number, name in enumerate(FIVE)
}
LIMIT = 12
LIMITED = {
    f"limited {number}": {
        "task": "proj.noop",
        "schedule": schedule,
        "catch_up": policy,
        "max_runs": LIMIT,
    }
    for number, (schedule, policy) in enumerate(
        ((1.0, "all"), (1.0, "latest"), ("* * * * * *", "all"))
    )
}


def messages_of(trial):
    return Counter(each.tick.entry for each in trial.collector.arrivals if each.tick)


def test_deaths_and_frozen_nodes_cost_no_jittered_tick_and_exceed_no_limit(redis_server, tmp_path):
    schedule = repr(JITTERED | LIMITED)
    with Trial(tmp_path, redis_server, schedule=schedule) as trial:
        for _ in range(2):
            for victim in trial.nodes[:2]:
                trial.next_burst()
                victim.kill()
            trial.go_on(LEASE + 1)
            trial.begin(trial.nodes[:2])
            trial.nodes[2].freeze()
            trial.go_on(LEASE + 1)
            trial.nodes[2].thaw()
        trial.go_on(2)
        account = trial.conclude()
        totals = trial.books().totals
    assert account.faults == {}
    sent = messages_of(trial)
    assert {name: sent[name] for name in LIMITED} == dict.fromkeys(LIMITED, LIMIT)
    assert totals["sent"] == sum(sent.values())


def test_a_loss_of_data_that_a_node_outlives_exceeds_no_limit(redis_server, tmp_path):
    with Trial(tmp_path, redis_server, schedule=every_second(FIVE, **LIMITED)) as trial:
        trial.go_on(2)
        trial.next_burst()
        trial.note_books()
        with trial.connect() as client:
            client.flushall()
        trial.go_on(LIMIT + LEASE)
        account = trial.conclude(exact=False)
    assert account.faults == {}
    sent = messages_of(trial)
    assert all(sent[name] <= LIMIT for name in LIMITED)
