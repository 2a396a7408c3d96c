from __future__ import annotations

import time

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.proxy import Proxy
from support.servers import free_port


@pytest.fixture
def direct(shared_redis):
    with shared_redis.client() as client:
        yield client


@pytest.fixture
def line(shared_redis):
    with Proxy(shared_redis.port) as proxy:
        yield proxy


@pytest.fixture
def through(line):
    with client_of(line) as client:
        yield client


def client_of(proxy: Proxy, timeout: float = 0.3) -> redis.Redis:
    retry = Retry(NoBackoff(), 0)
    settings = {"socket_timeout": timeout, "socket_connect_timeout": 2, "protocol": 2}
    return redis.Redis.from_url(proxy.url, retry=retry, **settings)


def ping(connection: redis.Connection) -> None:
    connection.send_command("PING")
    connection.read_response()


def pings(proxy: Proxy, count: int) -> list[bool]:
    answers = []
    for _ in range(count):
        try:
            answers.append(client_of(proxy).ping())
        except redis.ConnectionError:
            answers.append(False)
    return answers


def test_it_forwards_small_and_large(direct, through):
    through.set("key", "x" * 1_000_000)
    assert direct.strlen("key") == 1_000_000
    assert len(through.get("key")) == 1_000_000


def test_a_dropped_reply_belongs_to_a_request_that_was_served(line, direct, through):
    through.ping()
    line.drop_replies()
    with pytest.raises(redis.ConnectionError):
        through.incr("count")
    assert direct.get("count") == b"1"
    assert line.dropped == 1


def test_only_replies_to_matching_requests_are_dropped_and_only_so_many(line, direct, through):
    line.drop_replies(matching=b"INCR", limit=1)
    assert through.set("key", 1)
    with pytest.raises(redis.ConnectionError):
        through.incr("count")
    assert through.incr("count") == 2


def test_the_same_seed_drops_the_same_replies(line, direct):
    line.drop_replies(0.3, seed=7, matching=b"PING")
    first = pings(line, 30)
    line.drop_replies(0.3, seed=7, matching=b"PING")
    assert pings(line, 30) == first
    assert 0 < first.count(False) < 30


def test_no_probability_drops_nothing(line, through):
    line.drop_replies()
    line.drop_replies(0)
    assert through.ping()


def test_a_cut_line_refuses_until_it_is_restored(line, through):
    through.ping()
    line.cut()
    with pytest.raises(redis.ConnectionError):
        through.ping()
    with pytest.raises(redis.ConnectionError, match="refused"):
        through.ping()
    line.restore()
    assert through.ping()


def test_half_open_swallows_what_is_sent_on_old_and_new_connections(line, direct, through):
    through.ping()
    line.half_open()
    with pytest.raises(redis.TimeoutError):
        through.incr("count")  # an old connection
    with pytest.raises(redis.TimeoutError):
        through.incr("count")  # a new one
    line.restore()
    assert direct.get("count") is None
    assert through.incr("count") == 1


def test_a_swallowed_connection_stays_silent(line, shared_redis):
    client = client_of(line, timeout=5)
    connection = client.connection_pool.make_connection()
    connection.connect()
    line.half_open()
    connection.send_command("PING")
    assert not connection.can_read(timeout=0.2)
    line.restore()
    connection.send_command("PING")
    assert not connection.can_read(timeout=0.2)
    connection.disconnect()


def test_replies_are_delayed(line, through):
    through.ping()
    line.delay(0.1)
    began = time.monotonic()
    assert through.ping()
    assert 0.1 <= time.monotonic() - began < 0.3


def test_requests_are_delayed_past_the_clients_patience(line, direct, through):
    through.ping()
    line.delay(requests=0.5)
    with pytest.raises(redis.TimeoutError):
        through.incr("count")
    assert direct.get("count") is None


def test_connections_that_are_closed_can_be_made_again(line, through):
    connection = through.connection_pool.make_connection()
    connection.connect()
    line.close_connections()
    with pytest.raises(redis.ConnectionError):
        ping(connection)
    assert through.ping()
    assert line.accepted == 2


def test_a_dead_server_closes_the_connection():
    with Proxy(free_port()) as proxy, pytest.raises(redis.ConnectionError):
        client_of(proxy).ping()


def test_swallowed_requests_reach_no_server(line, direct, through):
    through.ping()
    line.half_open(replies=False)
    for _ in ("an old connection", "a new one"):
        with pytest.raises(redis.TimeoutError):
            through.incr("count")
    line.restore()
    assert direct.get("count") is None
    assert through.incr("count") == 1


def test_swallowed_replies_belong_to_requests_that_were_served(line, direct, through):
    through.ping()
    line.half_open(requests=False)
    with pytest.raises(redis.TimeoutError):
        through.incr("count")
    assert direct.get("count") == b"1"
    line.restore()
    assert through.incr("count") == 2


def test_it_answers_in_the_servers_place(line, direct, through):
    through.ping()
    line.answer(b":7\r\n")
    assert through.incr("count") == 7
    line.restore()
    assert direct.get("count") is None
    assert through.incr("count") == 1
    assert line.accepted == 1


def test_it_hangs_up_after_its_own_answer(line, through):
    connection = through.connection_pool.make_connection()
    connection.connect()
    line.answer(b":7\r\n", ends=True)
    connection.send_command("PING")
    assert connection.read_response() == 7
    with pytest.raises(redis.ConnectionError, match="closed"):
        connection.read_response()


def test_a_reply_is_cut_off_after_so_many_bytes(line, direct, through):
    direct.set("long", "x" * 100)
    direct.set("short", "x")
    through.ping()
    line.truncate_replies(20)
    assert through.get("short") == b"x"
    with pytest.raises(redis.ConnectionError, match="closed"):
        through.get("long")


def test_it_says_what_nobody_asked_for(line, through):
    connection = through.connection_pool.make_connection()
    connection.connect()
    assert line.say(b"+HELLO\r\n") == 1
    assert connection.read_response() == b"HELLO"
    connection.disconnect()
