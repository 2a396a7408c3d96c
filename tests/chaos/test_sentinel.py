"""A master that is killed amid its work, and comes back as a replica, behind three Sentinels."""

from __future__ import annotations

from contextlib import suppress

import pytest
import redis

from support.collector import Collector
from support.lengths import policies, times
from support.servers import KINDS, SentinelTrio, binary_of, wait_until
from support.trial import Trial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HOLD_DOWN = 3.0
SECRET = "s3cr3t"
OTHER = "0th3r"


@pytest.fixture(params=KINDS)
def binary(request):
    return binary_of(request.param)


def lose_the_master(trial, trio):
    """Kill the master amid its work, and wait until its replica is at work."""
    trial.go_on(1)
    trial.next_burst()
    trial.note_books()
    trio.master.kill()
    assert trio.wait_for_master(other_than=trio.master) is trio.replica
    assert trial.resumed_after(trial.now()) < 2 + HOLD_DOWN
    trial.note_books()


def is_replica(server):
    # Sentinel ends the connections of a server that it turns into a replica.
    with suppress(redis.ConnectionError), server.client() as client:
        return client.info("replication").get("master_link_status") == "up"
    return False


def lost_and_not_counted(trial, account):
    """How many ticks never came that the ledger does not call in doubt."""
    in_doubt = trial.books().totals.get("in_doubt:data_loss", 0)
    return max(0, account.count("lost") - in_doubt)


def test_the_broker_loses_its_master_and_nothing_is_sent_twice(binary, tmp_path):
    with SentinelTrio(binary=binary) as trio:
        config = {"broker_transport_options": trio.transport_options}
        trial = Trial(
            tmp_path,
            trio,
            url=trio.url,
            broker_url=trio.master.url,
            config=config,
            policies=policies(),
        )
        trial.collector = Collector(trio.master_url)
        with trial:
            assert "delivery -> enqueue" in trial.nodes[0].log
            for _ in range(times(1, 10)):
                lose_the_master(trial, trio)
                trio.master.start()
                wait_until(lambda: is_replica(trio.master), 30, "the old master as a replica")
                trio.master, trio.replica = trio.replica, trio.master
            trial.go_on(1)
            trial.broker_url = trio.master_url()
            account = trial.conclude()
    assert account.faults == {}


def test_the_ledger_alone_loses_its_master_and_every_tick_keeps_its_id(redis_server, tmp_path):
    place = f"redis+sentinel://:{SECRET}@{{}}/main?sentinel_password={OTHER}"
    secrets = {"password": SECRET, "own_password": OTHER}
    with SentinelTrio(service="main", **secrets) as trio:
        config = {"redlock_beat_url": place.format(trio.hosts)}
        trial = Trial(tmp_path, trio, broker_url=redis_server.url, config=config)
        with trial:
            assert "delivery -> publish, at least once" in trial.nodes[0].log
            lose_the_master(trial, trio)
            trial.go_on(1)
            account = trial.conclude(law=False, patience=5)
            assert lost_and_not_counted(trial, account) == 0
            logs = "".join(node.log for node in trial.nodes)
    assert account.faults_but("lost", "doubled") == {}
    assert SECRET not in logs
    assert OTHER not in logs
