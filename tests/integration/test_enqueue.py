"""Message and settlement in one step, against real servers and the real ledger."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import timedelta
from itertools import count

import pytest
from celery import Celery, Task
from celery.beat import ScheduleEntry, Scheduler
from celery.signals import before_task_publish
from kombu import Exchange, Queue

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.enqueue import Enqueue
from celery_redlock_beat.delivery.headers import message_for
from celery_redlock_beat.delivery.publish import Publish
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    DeliveryImpossible,
    LedgerUnavailable,
)
from celery_redlock_beat.ledger import Ask, Registration, Release
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ledger.testimony import Testimony
from celery_redlock_beat.ticks import Reason, Tick
from support.servers import free_port

KEYS = ledger_keys("shop")
topic = Exchange("animals", "topic")
numbers = count(1)


class Stand:
    """An app, its ledger, and a delivery between them."""

    def __init__(self, server, *, url=None, **conf):
        self.server = server
        self.client = server.client()
        self.app = Celery("shop", broker=url or server.url, set_as_current=False)
        self.app.conf.beat_schedule = {}
        self.app.conf.update(**conf)
        self.ledger = RedisLedger(server.client, LedgerClock(), "shop", hold_down=0)
        self.ledger.recover(Testimony())
        self.scheduler = Scheduler(app=self.app, lazy=True)
        self.delivery = Enqueue(self.app, self.ledger, self.send, 0.5)

    def send(self, entry, producer):
        self.scheduler.apply_async(entry, producer=producer, advance=False)

    def grant(self):
        """Claim a tick of an entry of its own."""
        name = f"entry {next(numbers)}"
        record = self.ledger.register([Registration(name, "f")])[0]
        tick = Tick(name, record.mark + 1)
        grant = self.ledger.claim([Ask(tick, tick.at)]).answers[0].grant
        assert grant
        return grant

    def entry(self, **fields):
        fields = {"name": "e", "task": "add", "schedule": timedelta(1), **fields}
        return ScheduleEntry(app=self.app, **fields)

    def deliver(self, grant=None, passed=None, **fields):
        grant = grant or self.grant()
        message = message_for(self.entry(**fields), grant, "shop")
        return self.delivery.deliver(grant, message, passed or {})

    def queued(self, queue="celery"):
        return [json.loads(raw) for raw in self.client.lrange(queue, 0, -1)]

    def open(self):
        return self.client.zcount(KEYS["open"], "-inf", "(+inf")

    def totals(self):
        return {key.decode(): int(n) for key, n in self.client.hgetall(KEYS["totals"]).items()}


@pytest.fixture
def stand(shared_redis):
    stand = Stand(shared_redis)
    yield stand
    stand.delivery.close()


def took(call):
    started = time.monotonic()
    call()
    return time.monotonic() - started


def refused(stand, grant):
    with pytest.raises(BrokerUnreachable):
        stand.deliver(grant)


def test_it_is_pushed_settled_and_counted_in_one_step(stand):
    assert stand.deliver(passed={Reason.SUPERSEDED: 3}) is Delivered.SETTLED
    assert len(stand.queued()) == 1
    assert stand.open() == 0
    assert stand.totals() == {"sent": 1, "skipped:superseded": 3}


def test_a_second_time_under_the_same_grant_pushes_nothing(stand):
    grant = stand.grant()
    assert stand.deliver(grant) is Delivered.SETTLED
    assert stand.deliver(grant) is Delivered.SETTLED
    assert len(stand.queued()) == 1
    assert stand.totals() == {"sent": 1}


def test_a_grant_that_another_node_took_over_pushes_nothing(stand):
    grant = stand.grant()
    stand.ledger.release([grant], 0, Release.UNTRIED)
    assert stand.ledger.claim([Ask(grant.tick, grant.tick.at)]).answers[0].grant
    assert stand.deliver(grant) is Delivered.LOST
    assert stand.queued() == []


def test_a_paused_entry_stays_open_and_pushes_nothing(stand):
    grant = stand.grant()
    stand.client.hset(KEYS["paused"], grant.tick.entry, "note")
    assert stand.deliver(grant) is Delivered.PAUSED
    assert stand.queued() == []
    assert stand.open() == 1


def test_several_messages_of_one_tick_are_pushed_together(stand):
    queues = [Queue("all", topic, "#"), Queue("cats", topic, "cat.*")]
    stand.app.conf.task_queues = queues
    with stand.app.connection_for_write() as connection:
        for queue in queues:
            queue(connection.default_channel).declare()
    options = {"exchange": "animals", "routing_key": "cat.tom", "queue": "cats"}
    assert stand.deliver(options=options) is Delivered.SETTLED
    assert len(stand.queued("all")) == len(stand.queued("cats")) == 1


def test_an_eager_task_is_no_message(stand):
    stand.app.conf.task_always_eager = True
    ran = []

    def add(x):
        ran.append(x)

    stand.app.task(add, name="add", shared=False)
    assert stand.deliver(args=(1,)) is Delivered.NOTHING
    assert ran == [1]


@pytest.mark.parametrize("events", [False, True])
def test_a_message_without_a_queue_is_no_message(stand, events):
    stand.app.conf.task_send_sent_event = events
    stand.app.conf.task_queues = [Queue("cats", topic, "cat.*")]
    options = {"exchange": "animals", "routing_key": "dog.rex", "queue": "cats"}
    assert stand.deliver(options=options) is Delivered.NOTHING
    assert stand.queued("cats") == []
    assert stand.open() == 1


class Declining(Task):
    def apply_async(self, *args, **kwargs):
        return None


class Wayward(Task):
    def apply_async(self, args=None, kwargs=None, producer=None, **options):
        return super().apply_async(args, kwargs, **options)


def test_an_apply_async_that_declines_is_no_message(stand):
    stand.app.task(_nothing, name="add", base=Declining, shared=False)
    assert stand.deliver() is Delivered.NOTHING


def test_an_apply_async_that_takes_another_producer_has_published(stand):
    stand.app.task(_nothing, name="add", base=Wayward, shared=False)
    assert stand.deliver() is Delivered.PUBLISHED
    assert len(stand.queued()) == 1
    assert stand.open() == 1
    # ... and is not taken for one of the next message.
    assert stand.deliver(task="other") is Delivered.SETTLED
    assert len(stand.queued()) == 2


def test_what_else_is_published_meanwhile_costs_the_message_nothing(stand):
    def audit(sender=None, **_kwargs):
        if sender != "audit":
            stand.app.send_task("audit", queue="audit")

    before_task_publish.connect(audit)
    try:
        assert stand.deliver() is Delivered.SETTLED
    finally:
        before_task_publish.disconnect(audit)
    assert len(stand.queued()) == 1
    assert len(stand.queued("audit")) == 1


def _nothing():
    """Do nothing."""


def test_what_cannot_be_serialised_is_impossible_and_the_next_one_goes_out(stand):
    with pytest.raises(DeliveryImpossible, match="EncodeError"):
        stand.deliver(args=(object(),))
    assert stand.queued() == []
    assert stand.deliver() is Delivered.SETTLED


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"queue": "unknown"}, DeliveryImpossible),
        ({"serializer": "unknown"}, DeliveryImpossible),
    ],
)
def test_what_will_not_pass_by_itself_is_impossible(stand, options, error):
    stand.app.conf.task_create_missing_queues = False
    stand.app.conf.task_queues = [Queue("celery")]
    with pytest.raises(error):
        stand.deliver(options=options)


def test_an_unknown_error_may_pass_and_has_pushed_nothing(stand):
    def send(entry, producer):
        stand.send(entry, producer)
        raise RuntimeError("in somebody's override")

    stand.delivery._broker._send = send
    with pytest.raises(DeliveryFailed, match="somebody's override"):
        stand.deliver()
    stand.delivery._broker._send = stand.send
    assert stand.deliver() is Delivered.SETTLED
    assert len(stand.queued()) == 1


def test_a_queue_that_is_no_list_is_impossible(stand):
    stand.client.set("celery", "a string")
    with pytest.raises(DeliveryImpossible, match="WRONGTYPE"):
        stand.deliver()
    stand.client.delete("celery")
    assert stand.deliver() is Delivered.SETTLED
    stand.client.delete("celery")
    stand.client.set("celery", "again")
    with pytest.raises(DeliveryImpossible, match="'celery'"):
        stand.deliver()


def test_the_result_backend_is_not_subscribed_to(shared_redis):
    stand = Stand(shared_redis, result_backend=shared_redis.url)
    for _ in range(3):
        assert stand.deliver() is Delivered.SETTLED
    assert stand.client.pubsub_channels() == []
    kinds = [client["sub"] for client in stand.client.client_list()]
    assert set(kinds) == {"0"}
    stand.delivery.close()


def test_a_broker_that_is_away_is_unreachable_at_once_and_then_left_alone(shared_redis):
    stand = Stand(shared_redis, url=f"redis://127.0.0.1:{free_port()}/0")
    grant = stand.grant()
    assert took(lambda: refused(stand, grant)) < 0.5
    assert not stand.delivery.ready()
    with pytest.raises(BrokerUnreachable, match="next attempt"):
        stand.deliver(grant)


def test_the_back_off_grows_to_a_second_at_most(shared_redis, monkeypatch):
    stand = Stand(shared_redis, url=f"redis://127.0.0.1:{free_port()}/0")
    broker = stand.delivery._broker
    waits = []
    for _ in range(8):
        broker._again_at = 0.0
        assert not stand.delivery.ready()
        waits.append(broker._again_at - time.monotonic())
    assert 0.05 < waits[0] < 0.25
    assert 0.45 < waits[-1] <= 1.0


def test_a_broker_that_is_silent_costs_the_timeout_and_comes_back(redis_server):
    stand = Stand(redis_server)
    assert stand.deliver() is Delivered.SETTLED
    stand.delivery.reset()
    redis_server.freeze()
    try:
        assert took(lambda: not stand.delivery.ready()) < 1.5
        assert took(lambda: not stand.delivery.ready()) < 0.1
    finally:
        redis_server.thaw()
    stand.delivery._broker._again_at = 0.0
    assert stand.deliver() is Delivered.SETTLED


def test_a_connection_lost_while_routing_was_no_attempt(redis_server, proxy):
    stand = Stand(redis_server, url=proxy.url, task_queues=[Queue("cats", topic, "cat.*")])
    options = {"exchange": "animals", "routing_key": "cat.tom", "queue": "cats"}
    assert stand.deliver(options=options) is Delivered.SETTLED
    proxy.half_open()
    with pytest.raises(BrokerUnreachable):
        stand.deliver(options=options)
    proxy.restore()
    assert stand.deliver(options=options) is Delivered.SETTLED
    assert len(stand.queued("cats")) == 2


def test_a_broker_that_restarts_costs_no_attempt(redis_server):
    stand = Stand(redis_server)
    assert stand.deliver() is Delivered.SETTLED
    redis_server.restart()
    stand.ledger.recover(Testimony())
    assert stand.deliver() is Delivered.SETTLED


def test_the_ledgers_own_error_is_passed_on(redis_server):
    stand = Stand(redis_server)
    grant = stand.grant()
    assert stand.deliver() is Delivered.SETTLED
    redis_server.kill()
    with pytest.raises(LedgerUnavailable):
        stand.deliver(grant)


def test_it_connects_lazily(shared_redis):
    before = len(shared_redis.client().client_list())
    app = Celery("shop", broker=shared_redis.url, set_as_current=False)
    delivery = Enqueue(app, None, None, 0.5)
    delivery.reset()
    delivery.close()
    assert len(shared_redis.client().client_list()) <= before + 1


def test_closing_twice_and_then_using_it_again(stand):
    assert stand.deliver() is Delivered.SETTLED
    stand.delivery.close()
    stand.delivery.close()
    assert stand.deliver() is Delivered.SETTLED


def test_closing_in_the_middle_of_a_publish_says_nothing_and_does_not_wait(stand):
    def send(entry, producer):
        stand.delivery.close()
        stand.delivery.close()
        raise SystemExit

    stand.delivery._broker._send = send
    with pytest.raises(SystemExit):
        stand.deliver()
    stand.delivery._broker._send = stand.send
    assert stand.deliver() is Delivered.SETTLED


def test_a_forked_child_has_a_connection_of_its_own(stand):
    assert stand.deliver() is Delivered.SETTLED
    stand.grant()
    child = os.fork()
    if not child:
        code = 1
        try:
            stand.ledger.recover(Testimony())
            code = int(stand.deliver() is not Delivered.SETTLED)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert stand.deliver() is Delivered.SETTLED
    assert len(stand.queued()) == 3


def test_it_follows_sentinel_to_the_new_master(sentinels):
    app = Celery("shop", broker=sentinels.url, set_as_current=False)
    app.conf.beat_schedule = {}
    app.conf.broker_transport_options = {
        "master_name": sentinels.service,
        "sentinel_kwargs": {"socket_timeout": 30},
    }
    scheduler = Scheduler(app=app, lazy=True)
    delivery = Publish(app, lambda e, p: scheduler.apply_async(e, producer=p, advance=False), 1.0)
    entry = ScheduleEntry(name="e", task="add", schedule=timedelta(1), app=app)
    assert delivery.deliver(None, entry, {}) is Delivered.PUBLISHED
    sentinels.sentinels[0].kill()
    new = sentinels.sentinels[1].client()
    new.sentinel_failover(sentinels.service)
    sentinels.wait_for_master(other_than=sentinels.master)
    outcomes = []
    while Delivered.PUBLISHED not in outcomes and len(outcomes) < 50:
        try:
            outcomes.append(delivery.deliver(None, entry, {}))
        except (BrokerUnreachable, DeliveryFailed) as exc:
            outcomes.append(exc)
            time.sleep(0.1)
    assert outcomes[-1] is Delivered.PUBLISHED
    with sentinels.current().client() as client:
        assert client.llen("celery") >= 1
    delivery.close()


@pytest.mark.parametrize("url", ["memory://", None])
def test_publish_works_with_any_transport_and_is_not_disturbed_by_other_threads(shared_redis, url):
    app = Celery("shop", broker=url or shared_redis.url, set_as_current=False)
    app.conf.beat_schedule = {}
    app.task(_nothing, name="add", base=Declining, shared=False)
    scheduler = Scheduler(app=app, lazy=True)

    def send(entry, producer):
        other = threading.Thread(target=lambda: app.send_task("elsewhere"))
        other.start()
        other.join()
        scheduler.apply_async(entry, producer=producer, advance=False)

    delivery = Publish(app, send, 0.5)
    entry = ScheduleEntry(name="e", task="other", schedule=timedelta(1), app=app)
    declined = ScheduleEntry(name="e", task="add", schedule=timedelta(1), app=app)
    assert delivery.deliver(None, entry, {}) is Delivered.PUBLISHED
    assert delivery.deliver(None, declined, {}) is Delivered.NOTHING
    delivery.close()
