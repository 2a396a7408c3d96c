"""RabbitMQ carries the messages and Redis holds the ledger: at least once, under one id."""

from __future__ import annotations

from collections import defaultdict

import pytest

from support.failpoint import AFTER_PUBLISHING, fail_one
from support.trial import LEASE, NAMESPACE, Trial

pytestmark = [pytest.mark.needs_rabbitmq, pytest.mark.timeout(240)]


def test_deaths_of_nodes_and_of_the_broker_lose_nothing_and_resend_the_same_id(
    redis_server, rabbitmq, tmp_path
):
    rabbitmq.delete_queues("celery")
    config = {"redlock_beat_url": redis_server.url}
    with Trial(
        tmp_path, redis_server, broker_url=rabbitmq.url, config=config, extra=AFTER_PUBLISHING
    ) as trial:
        trial.go_on(1)
        trial.next_burst()
        trial.nodes[0].kill()
        trial.go_on(1)
        trial.begin(trial.nodes[:1])
        died = fail_one(tmp_path, "SIGKILL")  # published, and not settled
        trial.go_on(LEASE + 1)
        trial.begin([trial.nodes[died.place]])
        trial.next_burst()
        rabbitmq.restart()
        trial.go_on(3)
        trial.wait_for_quiet()
        account = trial.conclude()
    assert account.faults_but("doubled") == {}
    came = defaultdict(list)
    for each in trial.collector.arrivals:
        if each.tick is not None:
            assert each.task_id == each.tick.task_id(NAMESPACE)
            came[each.tick].append(each.attempt)
    assert all(len(set(attempts)) == len(attempts) for attempts in came.values())
    doubled = {tick: attempts for tick, attempts in came.items() if len(attempts) > 1}
    assert doubled, "the node that died had published, and could not say so"
