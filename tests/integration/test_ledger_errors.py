"""What an operator is told when Redis refuses, asked of real servers."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from redis import Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.errors import LedgerUnavailable
from celery_redlock_beat.ledger import Ask, Registration, Verdict
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.ledger.testimony import Testimony
from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.store.eviction import eviction_warning
from celery_redlock_beat.ticks import SECOND, Tick
from support.proxy import Proxy
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


# --- noise, and answers that come too late --------------------------------------------------------

NOISES = {
    "a page": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbye",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x50",
    "every byte": bytes(range(256)) * 4,
    "a number that is none": b":12a\r\n",
    "a length that is none": b"$1a\r\n",
    "a huge length": b"$99999999999\r\nabc",
    "a length beyond all": b"$" + b"9" * 40 + b"\r\nabc",
    "a list without an end": b"*1\r\n" * 5000,
    "an empty list": b"*0\r\n",
    "nothing": b"$-1\r\n",
    "a word": b"+OK\r\n",
    "a number": b":1\r\n",
    "another answer": b"*3\r\n+PONG\r\n:1\r\n:1\r\n",
    "an error within": b"*3\r\n-ERR no\r\n:1\r\n:1\r\n",
    "no text": b"*3\r\n$2\r\n\xff\xfe\r\n:1\r\n:1\r\n",
}


@pytest.fixture
def line(shared_redis):
    with Proxy(shared_redis.port) as line:
        yield line


@pytest.fixture
def ledger(line):
    """A ledger at the other end of a line that the test breaks, and that knows one entry."""

    def connect():
        settings = {"socket_timeout": 0.3, "socket_connect_timeout": 1, "protocol": 2}
        return Redis.from_url(line.url, retry=Retry(NoBackoff(), 0), **settings)

    ledger = RedisLedger(connect, LedgerClock(), "proj", hold_down=0)
    wait_until(lambda: not ledger.recover(Testimony()).wait, 5, "the end of the recovery")
    ledger.register([Registration("one", "every second")])
    return ledger


def goes_on(ledger, line, accepted):
    """Look that each call gets its own answer, on a connection made anew."""
    (record,) = ledger.register([Registration("one", "every second")])
    assert (record.entry, record.fingerprint) == ("one", "every second")
    tick = Tick("one", record.mark + SECOND)
    (answer,) = ledger.claim([Ask(tick, tick.at)]).answers
    assert (answer.tick, answer.verdict) == (tick, Verdict.EARLY)
    assert line.accepted == accepted + 1


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_in_the_place_of_an_answer_ends_the_connection_and_nothing_else(ledger, line, noise):
    accepted = line.accepted
    line.answer(noise)
    with pytest.raises(LedgerUnavailable) as caught:
        ledger.claim([])
    assert caught.value.advice
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    line.restore()
    goes_on(ledger, line, accepted)


@pytest.mark.parametrize("most", [0, 1, 4, 20, 40])
def test_an_answer_that_breaks_off_is_none(ledger, line, most):
    accepted = line.accepted
    line.truncate_replies(most)
    with pytest.raises(LedgerUnavailable):
        ledger.claim([])
    line.restore()
    goes_on(ledger, line, accepted)


def test_an_answer_that_comes_too_late_is_not_read_as_that_of_the_next_call(ledger, line):
    accepted = line.accepted
    line.delay(0.5)
    with pytest.raises(LedgerUnavailable, match="did not answer in time"):
        ledger.claim([])
    line.restore()
    goes_on(ledger, line, accepted)


@pytest.mark.parametrize(
    "words", [b"+OK\r\n", b"*3\r\n$2\r\nOK\r\n:1\r\n:1\r\n"], ids=["noise", "what looks like one"]
)
def test_what_was_said_unasked_is_not_read_as_an_answer(ledger, line, words):
    accepted = line.accepted
    assert line.say(words) == 1
    goes_on(ledger, line, accepted)


def test_the_text_of_an_error_is_shown_without_credentials_or_control_characters():
    url = f"\x1b[2J redis://me:{SECRET}@host"
    command = f"unknown command 'AUTH', with args beginning with: 'me' '{SECRET}'"
    shown = str(unavailable(exceptions.ResponseError(f"{url} {command}")))
    assert "redis://***@host unknown command 'AUTH'" in shown
    assert SECRET not in shown
    assert shown.isprintable()
