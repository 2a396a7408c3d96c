"""A server that answers and refuses: nodes stay up, say what to do, and go on once it is done."""

from __future__ import annotations

from support.servers import replica_of, wait_for_replica
from support.trial import LIMIT, Trial


def test_a_refused_password_and_a_full_memory_are_waited_out(redis_server, tmp_path):
    url = redis_server.url.replace("redis://", "redis://beat:secret@")
    with (
        redis_server.client() as client,
        Trial(tmp_path, redis_server, url=url, start=False) as trial,
    ):
        for node in trial.nodes:
            node.start()
        for node in trial.nodes:
            said = node.wait_for_log("refuses our user or password.*", LIMIT)[0]
            assert "check the user and the password of redlock_beat_url or broker_url" in said
        client.execute_command("ACL SETUSER beat on >secret ~* &* +@all")
        trial.begin()
        trial.go_on(2)
        assert all("secret" not in node.log for node in trial.nodes)

        seen = {node: len(node.log) for node in trial.nodes}
        client.config_set("maxmemory", "1mb")
        for node in trial.nodes:
            said = node.wait_for_log("has reached its maxmemory.*", LIMIT, since=seen[node])[0]
            assert "raise maxmemory" in said
        client.config_set("maxmemory", "0")
        assert trial.resumed_after(trial.now()) < 2
        trial.go_on(2)
        account = trial.conclude()
    assert account.faults == {}


def test_a_read_only_replica_is_named_as_one_and_used_once_promoted(redis_server, tmp_path):
    with replica_of(redis_server) as replica:
        wait_for_replica(replica)
        with Trial(tmp_path, replica, nodes=1, start=False) as trial:
            node = trial.nodes[0].start()
            said = node.wait_for_log("the server is a replica.*", LIMIT)[0]
            assert "point the URL at the primary" in said
            with replica.client() as client:
                client.replicaof("NO", "ONE")
            trial.begin()
            trial.go_on(2)
            account = trial.conclude()
    assert account.faults == {}
