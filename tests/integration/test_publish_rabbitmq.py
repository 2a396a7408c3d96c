"""Publishing with confirms to a real RabbitMQ, and what its bad days cost."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler
from kombu import Exchange, Queue

from celery_redlock_beat.delivery import Delivered, amqp
from celery_redlock_beat.delivery.headers import message_for
from celery_redlock_beat.delivery.publish import AtMostOnce, Publish
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    DeliveryImpossible,
    LedgerUnavailable,
)
from celery_redlock_beat.ledger import Closing, Grant
from celery_redlock_beat.ticks import SENT, Reason, Tick
from support.proxy import Proxy
from support.servers import wait_until

pytestmark = pytest.mark.needs_rabbitmq

GRANT = Grant(Tick("report", 1_700_000_000_000_000), fence=7, attempt=1, previous=0, deadline=1)
TIMEOUT = 0.5
names = (f"q{number}" for number in count(1))
CTL = Path("/usr/lib/rabbitmq/bin/rabbitmqctl")


class Stand:
    """An app, a queue of its own, and a delivery to it."""

    def __init__(self, rabbitmq, url=None, **conf):
        self.rabbitmq = rabbitmq
        self.queue = next(names)
        self.app = Celery("shop", broker=url or rabbitmq.url, set_as_current=False)
        self.app.conf.update(task_default_queue=self.queue, beat_schedule={}, **conf)
        self.scheduler = Scheduler(app=self.app, lazy=True)
        self.delivery = Publish(self.app, self.send, TIMEOUT)

    def send(self, entry, producer):
        self.scheduler.apply_async(entry, producer=producer, advance=False)

    def deliver(self, passed=None, **fields):
        fields = {"name": "e", "task": "add", "schedule": timedelta(1), **fields}
        message = message_for(ScheduleEntry(app=self.app, **fields), GRANT, "shop")
        return self.delivery.deliver(GRANT, message, passed or {})

    def queued(self):
        with self.rabbitmq.connection() as connection, connection.channel() as channel:
            return channel.queue_declare(self.queue, passive=True).message_count

    def take(self):
        with self.rabbitmq.connection() as connection, connection.channel() as channel:
            return channel.basic_get(self.queue, no_ack=True)

    def forget_back_off(self):
        self.delivery._broker._again_at = 0.0


@pytest.fixture
def stand(rabbitmq):
    stand = Stand(rabbitmq)
    yield stand
    stand.delivery.close()
    rabbitmq.delete_queues(stand.queue)


@pytest.fixture
def wire(rabbitmq):
    with Proxy(rabbitmq.port) as proxy:
        yield proxy


@pytest.fixture
def far_stand(rabbitmq, wire):
    """A stand whose connection goes through ``wire``."""
    stand = Stand(rabbitmq, f"amqp://guest:guest@127.0.0.1:{wire.port}//")
    yield stand
    stand.delivery.close()
    rabbitmq.delete_queues(stand.queue)


@contextmanager
def frozen(server):
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


def took(call):
    started = time.monotonic()
    call()
    return time.monotonic() - started


def fails(stand, kind):
    with pytest.raises(kind):
        stand.deliver()


def test_a_message_is_confirmed_and_carries_its_tick(stand):
    assert stand.deliver() is Delivered.PUBLISHED
    message = stand.take()
    assert message.headers["id"] == GRANT.tick.task_id("shop")
    assert message.headers["redlock_tick"] == "2023-11-14T22:13:20.000000+00:00"
    assert message.headers["redlock_fence"] == 7


def test_a_refused_message_is_a_failure_and_the_next_one_is_not_mistaken_for_it(stand):
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    stand.app.conf.task_queues = [Queue(stand.queue, queue_arguments=arguments)]
    assert stand.deliver() is Delivered.PUBLISHED
    with pytest.raises(DeliveryFailed, match="Nack"):
        stand.deliver()
    stand.take()
    assert stand.deliver() is Delivered.PUBLISHED


def test_a_queue_that_was_declared_otherwise_is_a_failure_and_costs_no_other_entry(stand):
    assert stand.deliver() is Delivered.PUBLISHED
    stand.delivery.reset()  # kombu remembers by name what it has declared
    other = Queue(stand.queue, queue_arguments={"x-max-length": 5})
    with pytest.raises(DeliveryFailed, match="PRECONDITION_FAILED"):
        stand.deliver(options={"queue": other})
    assert stand.deliver() is Delivered.PUBLISHED


def test_an_exchange_that_is_not_there_is_a_failure(stand):
    nowhere = Queue("nowhere", Exchange("nowhere", no_declare=True), no_declare=True)
    with pytest.raises(DeliveryFailed, match="NOT_FOUND"):
        stand.deliver(options={"exchange": "nowhere", "routing_key": "x", "queue": nowhere})
    assert stand.deliver() is Delivered.PUBLISHED


def test_what_cannot_be_serialised_is_impossible(stand):
    with pytest.raises(DeliveryImpossible):
        stand.deliver(args=(object(),))
    assert stand.deliver() is Delivered.PUBLISHED


def test_an_eager_task_is_no_message(stand):
    def add():
        """Do nothing."""

    stand.app.task(add, name="add", shared=False)
    stand.app.conf.task_always_eager = True
    assert stand.deliver() is Delivered.NOTHING


def test_wrong_credentials_are_told_as_such(rabbitmq):
    stand = Stand(rabbitmq, f"amqp://guest:s3cr3t@127.0.0.1:{rabbitmq.port}//")
    with pytest.raises(BrokerUnreachable, match="ACCESS_REFUSED") as caught:
        stand.deliver()
    assert "s3cr3t" not in str(caught.value)


def test_a_connection_that_was_cut_meanwhile_costs_no_attempt(far_stand, wire):
    assert far_stand.deliver() is Delivered.PUBLISHED
    for _ in range(3):
        wire.cut()
        wire.restore()
        assert far_stand.deliver() is Delivered.PUBLISHED
    assert far_stand.queued() == 4


def test_a_connection_that_died_in_silence_costs_no_attempt(far_stand, wire, monkeypatch):
    assert far_stand.deliver() is Delivered.PUBLISHED
    wire.half_open()
    wire.restore()  # the old connection stays swallowed
    monkeypatch.setattr(amqp, "PROBE_AFTER", 0.0)
    assert far_stand.deliver() is Delivered.PUBLISHED
    assert far_stand.queued() == 2


def test_an_idle_connection_that_lives_is_kept(far_stand, wire, monkeypatch):
    assert far_stand.deliver() is Delivered.PUBLISHED
    monkeypatch.setattr(amqp, "PROBE_AFTER", 0.0)
    accepted = wire.accepted
    for _ in range(3):
        assert far_stand.delivery.ready()
        assert far_stand.deliver() is Delivered.PUBLISHED
    assert wire.accepted == accepted


def test_a_network_that_swallows_everything_costs_the_timeout(far_stand, wire):
    assert far_stand.deliver() is Delivered.PUBLISHED
    wire.half_open()
    # Written, and never confirmed: it may have left.
    assert took(lambda: fails(far_stand, DeliveryFailed)) < 3 * TIMEOUT
    assert took(far_stand.delivery.ready) < 3 * TIMEOUT
    assert took(lambda: fails(far_stand, BrokerUnreachable)) < 0.1
    wire.restore()
    far_stand.forget_back_off()
    assert far_stand.deliver() is Delivered.PUBLISHED


def test_a_lost_confirmation_may_have_left(far_stand, wire):
    assert far_stand.deliver() is Delivered.PUBLISHED
    wire.drop_replies(limit=1, matching=b"add")
    with pytest.raises(DeliveryFailed):
        far_stand.deliver()
    assert far_stand.deliver() is Delivered.PUBLISHED
    assert far_stand.queued() == 3


def test_a_frozen_broker_costs_the_timeout_and_is_then_left_alone(stand):
    assert stand.deliver() is Delivered.PUBLISHED
    with frozen(stand.rabbitmq):
        assert took(lambda: fails(stand, DeliveryFailed)) < 3 * TIMEOUT
        assert took(stand.delivery.ready) < 3 * TIMEOUT
        assert not stand.delivery.ready()
        assert took(stand.delivery.ready) < 0.1
        assert took(stand.delivery.close) < 0.1
    stand.forget_back_off()
    assert stand.deliver() is Delivered.PUBLISHED


def test_closing_beside_a_frozen_broker_is_bounded(stand):
    assert stand.deliver() is Delivered.PUBLISHED
    with frozen(stand.rabbitmq):
        assert took(stand.delivery.close) < 3 * TIMEOUT
        assert took(stand.delivery.close) < 0.01


def test_closing_in_the_middle_of_a_publish_says_nothing(stand):
    stand.delivery.ready()

    def send(entry, producer):
        with frozen(stand.rabbitmq):
            assert took(stand.delivery.close) < 0.1
        raise SystemExit

    stand.delivery._broker._send = send
    with pytest.raises(SystemExit):
        stand.deliver()
    stand.delivery._broker._send = stand.send
    assert stand.deliver() is Delivered.PUBLISHED


def test_heartbeats_are_kept_while_it_is_asked_whether_it_is_ready(rabbitmq):
    stand = Stand(rabbitmq, f"amqp://guest:guest@127.0.0.1:{rabbitmq.port}//?heartbeat=1")
    assert stand.deliver() is Delivered.PUBLISHED
    made = stand.delivery._broker._connection.connection
    end = time.monotonic() + 4
    while time.monotonic() < end:
        assert stand.delivery.ready()
        wait_until(lambda: True, 1, "a moment")
        time.sleep(0.2)
    assert stand.delivery._broker._connection.connection is made
    # Not asked for long, the broker hangs up: that costs no attempt either.
    time.sleep(4)
    assert stand.deliver() is Delivered.PUBLISHED
    stand.delivery.close()
    rabbitmq.delete_queues(stand.queue)


def test_a_forked_child_leaves_the_parents_connection_alone(stand):
    assert stand.deliver() is Delivered.PUBLISHED
    made = stand.delivery._broker._connection.connection
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(stand.deliver() is not Delivered.PUBLISHED)
            stand.delivery.close()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert stand.deliver() is Delivered.PUBLISHED
    assert stand.delivery._broker._connection.connection is made
    assert stand.queued() == 3


def test_several_brokers_are_tried_in_turn(rabbitmq, wire):
    urls = f"amqp://guest:guest@127.0.0.1:{wire.port}//;{rabbitmq.url}"
    stand = Stand(rabbitmq, urls)
    wire.cut()
    with pytest.raises(BrokerUnreachable):
        stand.deliver()
    stand.forget_back_off()
    assert stand.deliver() is Delivered.PUBLISHED
    assert stand.delivery._broker._connection.connect_timeout == TIMEOUT
    stand.delivery.close()
    rabbitmq.delete_queues(stand.queue)


def control(rabbitmq, *arguments):
    command = [str(CTL), "-q", "-n", rabbitmq.nodename, *arguments]
    environment = {**os.environ, **rabbitmq._environment()}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)


@pytest.mark.slow
@pytest.mark.skipif(not CTL.exists(), reason="needs rabbitmqctl")
def test_a_broker_that_blocks_publishers_gets_no_pile_of_duplicates(stand):
    assert stand.deliver() is Delivered.PUBLISHED
    control(stand.rabbitmq, "set_vm_memory_high_watermark", "absolute", "1MB")
    try:
        wait_until(lambda: not _try(stand), 20, "the alarm")
        seen = stand.queued()
        for _ in range(5):
            assert not stand.delivery.ready()
            with pytest.raises(BrokerUnreachable, match="blocks publishers"):
                stand.deliver()
    finally:
        control(stand.rabbitmq, "set_vm_memory_high_watermark", "0.6")
    wait_until(stand.delivery.ready, 20, "the end of the alarm")
    before = stand.queued()
    assert before <= seen + 1
    assert stand.deliver() is Delivered.PUBLISHED
    assert stand.queued() == before + 1


def _try(stand):
    """Publish once if that is possible; answer whether it is still possible."""
    try:
        stand.deliver()
    except DeliveryFailed:
        pass
    except BrokerUnreachable:
        return False
    return stand.delivery.ready()


class Settling:
    """A ledger that answers as told and keeps what it was asked."""

    def __init__(self, closing):
        self.closing = closing
        self.asked = []

    def settle(self, settlements):
        self.asked += settlements
        if isinstance(self.closing, Exception):
            raise self.closing
        return [self.closing]


def at_most_once(stand, closing):
    stand.delivery.close()
    stand.ledger = Settling(closing)
    stand.delivery = AtMostOnce(stand.app, stand.ledger, stand.send, TIMEOUT)
    return stand


def test_at_most_once_settles_and_then_publishes(stand):
    at_most_once(stand, Closing.DONE)
    assert stand.deliver(passed={Reason.SUPERSEDED: 2}) is Delivered.SETTLED
    assert [(s.grant, s.outcome, s.passed) for s in stand.ledger.asked] == [
        (GRANT, SENT, {Reason.SUPERSEDED: 2})
    ]
    assert stand.queued() == 1


@pytest.mark.parametrize("closing", [Closing.STALE, Closing.ALREADY])
def test_at_most_once_publishes_nothing_unless_it_settled_just_now(stand, closing):
    at_most_once(stand, Closing.DONE).deliver()
    at_most_once(stand, closing)
    assert stand.deliver() is Delivered.LOST
    assert stand.queued() == 1


def test_at_most_once_publishes_nothing_when_the_ledger_did_not_answer(stand):
    at_most_once(stand, Closing.DONE).deliver()
    at_most_once(stand, LedgerUnavailable("gone"))
    with pytest.raises(LedgerUnavailable):
        stand.deliver()
    assert stand.queued() == 1


def test_at_most_once_settles_nothing_while_the_broker_is_away(far_stand, wire):
    at_most_once(far_stand, Closing.DONE)
    wire.cut()
    with pytest.raises(BrokerUnreachable):
        far_stand.deliver()
    assert far_stand.ledger.asked == []
    wire.restore()
    far_stand.forget_back_off()
    assert far_stand.deliver() is Delivered.SETTLED


def test_at_most_once_does_not_try_again_what_it_has_settled(far_stand, wire, caplog):
    at_most_once(far_stand, Closing.DONE)
    assert far_stand.deliver() is Delivered.SETTLED
    wire.half_open()
    assert far_stand.deliver() is Delivered.UNSENT
    assert "settled as sent, and then not published" in caplog.text
    wire.restore()
