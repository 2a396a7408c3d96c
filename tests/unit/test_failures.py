"""Which failures may pass by themselves, and which are bugs."""

from __future__ import annotations

import socket
from itertools import pairwise

import pytest
import redis.exceptions
from amqp.exceptions import PreconditionFailed
from celery.beat import SchedulingError
from celery.exceptions import NotRegistered, QueueNotFound
from kombu.exceptions import ContentDisallowed, EncodeError, OperationalError
from kombu.transport.redis import Transport
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from celery_redlock_beat.delivery.failures import classify, is_connection_error
from celery_redlock_beat.errors import BrokerUnreachable, DeliveryFailed, DeliveryImpossible

REDIS = Transport.connection_errors


def raised(*chain: BaseException, cause: bool = False) -> BaseException:
    """Link exceptions as raising each while handling the next would, or from it."""
    for outer, inner in pairwise(chain):
        outer.__context__ = inner
        if cause:
            outer.__cause__ = inner
    return chain[0]


@pytest.mark.parametrize(
    "exc",
    [
        ConnectionRefusedError(),
        socket.gaierror(),
        TimeoutError(),
        OperationalError("gone"),
        RedisConnectionError(),
        RedisTimeoutError(),
    ],
    ids=repr,
)
def test_a_lost_connection_may_come_back(exc):
    assert type(classify(exc, REDIS)) is DeliveryFailed
    assert is_connection_error(exc, REDIS)


@pytest.mark.parametrize(
    "exc",
    [
        EncodeError("object"),
        ContentDisallowed(),
        QueueNotFound("q"),
        NotRegistered("t"),
        TypeError(),
        ValueError(),
        KeyError("q"),
        IndexError(),
        AttributeError(),
        NameError(),
        NotImplementedError(),
    ],
    ids=repr,
)
def test_a_bug_does_not_pass_by_itself(exc):
    assert type(classify(exc, REDIS)) is DeliveryImpossible
    assert not is_connection_error(exc, REDIS)


def test_kombu_counts_keyerror_among_connection_errors_and_we_do_not():
    assert type(classify(KeyError("queue"), (*REDIS, KeyError))) is DeliveryImpossible
    assert not is_connection_error(KeyError("queue"), (*REDIS, KeyError))


def test_what_celery_wrapped_counts_and_not_the_wrapping():
    for inner, kind in {
        KeyError("queue"): DeliveryImpossible,
        ResponseError("WRONGTYPE Operation against a key"): DeliveryImpossible,
        ResponseError("OOM command not allowed"): DeliveryFailed,
        RedisConnectionError("refused"): DeliveryFailed,
    }.items():
        wrapped = raised(OperationalError(str(inner)), inner, cause=True)
        exc = raised(SchedulingError("Couldn't apply"), wrapped)
        assert type(classify(exc, (*REDIS, KeyError, ResponseError))) is kind


@pytest.mark.parametrize("exc", [RuntimeError("?"), PreconditionFailed("differs")], ids=repr)
def test_what_is_not_known_may_pass(exc):
    assert type(classify(exc, REDIS)) is DeliveryFailed
    assert not is_connection_error(exc, REDIS)


@pytest.mark.parametrize("cause", [True, False])
def test_the_cause_behind_celerys_scheduling_error_decides(cause):
    bug = raised(SchedulingError("Couldn't apply"), EncodeError("x"), TypeError("x"), cause=cause)
    away = raised(SchedulingError("Couldn't apply"), OperationalError("x"), cause=cause)
    assert type(classify(bug)) is DeliveryImpossible
    assert type(classify(away)) is DeliveryFailed


def test_an_index_error_while_kombu_opened_a_channel_is_no_bug():
    exc = raised(SchedulingError(), RedisConnectionError("refused"), IndexError("pop from empty"))
    assert type(classify(exc, REDIS)) is DeliveryFailed


def test_a_delivery_error_is_kept():
    inner = BrokerUnreachable("no")
    assert classify(raised(SchedulingError(), inner)) is inner


def test_a_chain_that_bites_its_tail_ends():
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__context__, two.__context__ = two, one
    assert type(classify(one)) is DeliveryFailed


def test_the_text_names_the_exception_on_one_line():
    assert str(classify(ValueError("two\nlines"))) == "ValueError: two lines"


def test_the_text_shows_no_password_of_a_url():
    text = str(classify(OSError("cannot reach amqp://me:s3cret@host//")))
    assert text == "OSError: cannot reach amqp://***@host//"


@pytest.mark.parametrize("name", ["ReadOnlyError", "OutOfMemoryError", "BusyLoadingError"])
def test_a_server_that_takes_nothing_was_not_tried(name):
    refusal = getattr(redis.exceptions, name)("no")
    assert isinstance(classify(refusal, (redis.exceptions.ConnectionError,)), BrokerUnreachable)
