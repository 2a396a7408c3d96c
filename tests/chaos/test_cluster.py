"""A ledger in a Redis Cluster: its slot moves, and the master that holds it is killed."""

from __future__ import annotations

import pytest

from support.cluster import Cluster, slot_of
from support.servers import binary_of
from support.trial import NAMESPACE, Trial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

HOLD_DOWN = 3.0
SLOT = slot_of(NAMESPACE)


def lost_and_not_counted(trial, account):
    """How many ticks never came that the ledger does not call in doubt."""
    in_doubt = trial.books().totals.get("in_doubt:data_loss", 0)
    return max(0, account.count("lost") - in_doubt)


def move_the_slot(cluster, trial):
    """Move it amid the work of the nodes; they say so, and go on as soon as it has moved."""
    owner = cluster.owner(SLOT)
    target = next(node for node in cluster.masters if node is not owner)
    trial.next_burst()
    source = cluster.begin_move(SLOT, target)
    for node in trial.nodes:
        node.wait_for_log("is moving our keys")
    assert cluster.move_keys(SLOT, source, target)
    cluster.end_move(SLOT, source, target)
    assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN


def lose_the_master(cluster, trial):
    """Kill it amid the work of the nodes; they go on with its replica, and it comes back as one."""
    owner = cluster.owner(SLOT)
    trial.next_burst()
    owner.kill()
    assert cluster.wait_for_other_owner(SLOT, owner) in cluster.replicas
    assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN
    owner.start()


def fail_and_account(kind, tmp_path, broker):
    with Cluster(binary_of(kind)) as cluster:
        config = {"redlock_beat_url": f"redis+cluster://{cluster.hosts}"}
        with Trial(tmp_path, cluster, broker_url=broker.url, config=config) as trial:
            assert "ledger -> redis+cluster://" in trial.nodes[0].log
            move_the_slot(cluster, trial)
            trial.go_on(1)
            lose_the_master(cluster, trial)
            trial.go_on(1)
            account = trial.conclude(law=False, patience=5)
            assert lost_and_not_counted(trial, account) == 0
    assert account.faults_but("lost", "doubled") == {}


@pytest.mark.parametrize("kind", ["valkey"])
def test_a_slot_that_moves_and_a_master_that_dies_cost_no_tick(kind, redis_server, tmp_path):
    fail_and_account(kind, tmp_path, redis_server)


@pytest.mark.needs_rabbitmq
@pytest.mark.parametrize("kind", ["redis"])
def test_with_rabbitmq_as_the_broker_they_cost_no_tick_either(kind, rabbitmq, tmp_path):
    rabbitmq.delete_queues("celery")
    fail_and_account(kind, tmp_path, rabbitmq)
