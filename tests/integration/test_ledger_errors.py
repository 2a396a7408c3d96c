"""What an operator is told when Redis refuses, asked of real servers."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from redis import Redis, exceptions
from redis.sentinel import MasterNotFoundError, Sentinel

from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.store.eviction import eviction_warning
from support.servers import Server, free_port, replica_of, wait_for_replica, wait_until

SECRET = "s3cr3t"
WRITE = "return redis.call('SET', KEYS[1], string.rep('x', 100))"


def told(call):
    with pytest.raises((exceptions.RedisError, OSError)) as caught:
        call()
    error = unavailable(caught.value)
    assert SECRET not in str(error)
    assert error.problem
    assert "\n" not in str(error)
    return error


def says(error, problem, advice):
    assert problem in error.problem
    assert advice in error.advice


def suppressed(call):
    def called(*args):
        with suppress(exceptions.RedisError):
            call(*args)

    return called


@contextmanager
def answering(reply: bytes):
    """Serve one reply to whatever is asked, but for what a client tells of itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                while chunk := connection.recv(1 << 16):
                    for request in re.split(rb"(?<=\n)(?=\*\d)", chunk):
                        connection.sendall(b"+OK\r\n" if b"CLIENT" in request else reply)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_nobody_listens():
    client = Redis(port=free_port(), socket_connect_timeout=1)
    says(told(client.ping), "nothing listens", "check that it runs")


def test_a_missing_unix_socket():
    client = Redis(unix_socket_path="/nowhere/r.sock")
    says(told(client.ping), "nothing listens", "check that it runs")


def test_the_name_cannot_be_resolved():
    client = Redis(host="no-such-host.invalid", socket_connect_timeout=1)
    says(told(client.ping), "cannot be resolved", "check the host")


def test_no_answer_in_time(redis_server):
    client = redis_server.client(socket_timeout=0.2)
    client.ping()
    redis_server.freeze()
    try:
        says(told(client.ping), "did not answer in time", "redlock_beat_socket_timeout")
    finally:
        redis_server.thaw()


def test_a_wrong_password_and_a_missing_one():
    with Server(password="right") as server:
        wrong = Redis(port=server.port, password=SECRET, protocol=2, retry=None)
        says(told(wrong.ping), "refuses our user or password", "percent-encoded")
        wrong_user = Redis(
            port=server.port, username="nobody", password=SECRET, protocol=2, retry=None
        )
        says(told(wrong_user.ping), "refuses our user or password", "the user is enabled")
        missing = Redis(port=server.port, protocol=2, retry=None)
        says(told(missing.ping), "refuses our user or password", "check the user")


def test_a_password_that_the_server_does_not_want(shared_redis):
    client = Redis(port=shared_redis.port, password=SECRET, protocol=2)
    says(told(client.ping), "refuses our user or password", "check the user")


def test_a_user_without_the_rights(redis_server):
    with redis_server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "u", "on", f">{SECRET}", "~a*", "+ping", "+eval")
    client = Redis(port=redis_server.port, username="u", password=SECRET, protocol=2)
    says(told(lambda: client.get("a")), "forbids our user", "+evalsha")
    says(told(lambda: client.eval(WRITE, 1, "a")), "forbids our user", "{redlock:*}")
    says(told(lambda: client.eval(WRITE, 1, "b")), "forbids our user", "{redlock:*}")


def test_a_replica(redis_server):
    with replica_of(redis_server) as replica:
        wait_for_replica(replica)
        client = replica.client()
        says(told(lambda: client.set("a", 1)), "is a replica", "the primary")
        says(told(lambda: client.eval(WRITE, 1, "a")), "is a replica", "Sentinel")
        client.config_set("replica-serve-stale-data", "no")
        redis_server.kill()
        wait_until(lambda: client.info("replication")["master_link_status"] == "down", 10, "it")
        says(told(lambda: client.get("a")), "lost its primary", "restore the replication")


def test_a_full_server_that_evicts_nothing(redis_server):
    client = redis_server.client()
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")
    says(told(lambda: client.set("a", 1)), "reached its maxmemory", "noeviction")
    says(told(lambda: client.eval(WRITE, 1, "a")), "reached its maxmemory", "raise maxmemory")


def test_a_database_that_does_not_exist(shared_redis):
    client = Redis(port=shared_redis.port, db=999, protocol=2)
    says(told(client.ping), "no database of that number", "a lower number")


def test_a_script_that_does_not_end(redis_server):
    client = redis_server.client()
    client.config_set("busy-reply-threshold", 10)
    other = redis_server.client(socket_timeout=10)
    thread = threading.Thread(target=suppressed(other.eval), args=("while true do end", 0))
    thread.start()

    def answer():
        try:
            client.get("a")
        except exceptions.ResponseError as exc:
            return exc
        return None

    try:
        error = unavailable(wait_until(answer, 5, "BUSY"))
    finally:
        client.script_kill()
        thread.join(10)
    says(error, "busy with a script", "SCRIPT KILL")


def test_a_server_that_cannot_save(redis_server):
    client = redis_server.client()
    client.config_set("save", "1 1")
    (redis_server.directory / "dump.rdb").mkdir()
    client.set("a", 1)
    client.bgsave()
    wait_until(
        lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", 10, "a failed save"
    )
    says(told(lambda: client.set("a", 1)), "cannot save its data", "disk")


def test_too_few_replicas(redis_server):
    client = redis_server.client()
    client.config_set("min-replicas-to-write", 1)
    says(told(lambda: client.set("a", 1)), "fewer replicas", "bring a replica back")


def test_too_many_clients():
    with Server(extra=("--maxclients", "1")) as server:
        first = server.client()
        first.ping()
        says(told(server.client().ping), "limit of clients", "maxclients")


def test_a_node_of_a_cluster():
    with Server(extra=("--cluster-enabled", "yes")) as server:
        client = server.client()
        says(told(lambda: client.get("a")), "the cluster is down", "CLUSTER INFO")
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        info = "return redis.call('CLUSTER', 'INFO')"
        wait_until(lambda: b"cluster_state:ok" in client.eval(info, 0), 10, "the cluster")
        says(told(lambda: client.mget("a", "b")), "a node of a Redis Cluster", "not in cluster")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the Redis protocol"),
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading its data"),
        (b"-MOVED 3999 127.0.0.1:6381\r\n", "a node of a Redis Cluster"),
        (
            b"-ERR Error running script (call to f_1): @user_script:1: -OOM command not\r\n",
            "reached its maxmemory",
        ),
        (
            b"-ERR Error running script (call to f_1): @user_script:1: -READONLY You can't\r\n",
            "is a replica",
        ),
        (b"-ERR something new\r\n", "the server refused: ResponseError: something new"),
    ],
)
def test_what_only_other_servers_say(reply, problem):
    with answering(reply) as port:
        client = Redis("127.0.0.1", port, retry=None, protocol=2, socket_timeout=2)
        assert problem in told(client.ping).problem


def test_a_server_that_wants_tls():
    with answering(b"\x15\x03\x01\x00\x02\x02\x50") as port:
        client = Redis("127.0.0.1", port, retry=None, ssl=True, ssl_cert_reqs="none")
        says(told(client.ping), "no TLS connection", "certificates")


def test_sentinel_knows_no_such_master():
    sentinel = Sentinel(
        [("127.0.0.1", free_port())],
        socket_connect_timeout=0.2,
        sentinel_kwargs={"retry": None, "socket_connect_timeout": 0.2},
    )
    with pytest.raises(MasterNotFoundError) as caught:
        sentinel.master_for("main").ping()
    says(unavailable(caught.value), "Sentinel knows no primary", "master_name")


def test_a_url_in_a_text_loses_its_password():
    error = unavailable(exceptions.ConnectionError(f"at redis://u:{SECRET}@h:1/0"))
    assert SECRET not in str(error)
    assert "h:1" in str(error)


@pytest.mark.parametrize(
    ("policy", "limit", "warns"),
    [
        ("noeviction", 100, False),
        ("volatile-lru", 100, False),
        ("volatile-ttl", 100, False),
        ("allkeys-lru", 100, True),
        ("allkeys-random", 100, True),
        ("allkeys-lfu", 0, False),
    ],
)
@pytest.mark.parametrize("config", [True, False], ids=["CONFIG", "INFO"])
def test_a_policy_that_evicts_keys_without_a_ttl_is_warned_of(policy, limit, warns, config):
    hidden = () if config else ("--rename-command", "CONFIG", "")
    extra = ("--maxmemory-policy", policy, "--maxmemory", f"{limit}mb", *hidden)
    with Server(extra=extra) as server:
        warning = eviction_warning(server.client())
    assert (warning is not None) == warns
    if warning:
        assert policy in warning
        assert "noeviction" in warning


def test_a_server_that_does_not_tell_its_policy_gives_no_warning(redis_server):
    with redis_server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "u", "on", ">x", "~*", "+ping")
    client = Redis(port=redis_server.port, username="u", password="x", protocol=2)
    assert eviction_warning(client) is None
