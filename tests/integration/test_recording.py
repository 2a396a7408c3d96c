"""What is recorded and then pushed is what stock kombu would have pushed."""

from __future__ import annotations

import copy
import json
import re
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import kombu
import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler
from celery.contrib.testing.worker import start_worker
from kombu import Exchange, Queue
from kombu.transport.redis import Channel, Transport

from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.enqueue import Enqueue
from celery_redlock_beat.delivery.headers import CurrentTick, current_tick, message_for
from celery_redlock_beat.delivery.recording import install, refusal
from celery_redlock_beat.errors import DeliveryImpossible
from celery_redlock_beat.lateness import PassedOver
from celery_redlock_beat.ledger import Closing, Grant
from celery_redlock_beat.ticks import Reason, Tick, to_micros

INSTANT = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
THREE = PassedOver({Reason.SUPERSEDED: 3})
GRANT = Grant(Tick("report", to_micros(INSTANT)), fence=7, attempt=1, previous=0, deadline=1)
KOMBU = tuple(map(int, kombu.__version__.split(".")[:2]))

topic = Exchange("animals", "topic")
news = Exchange("news", "fanout")
QUEUES = (
    Queue("celery"),
    Queue("direct", Exchange("direct"), "direct"),
    Queue("all", topic, "#"),
    Queue("cats", topic, "cat.*"),
    Queue("short", expires=60),
    Queue("urgent", max_priority=10),
)


class PushingLedger:
    """Pushes what it is given, on a plain client, and keeps it."""

    def __init__(self, client):
        self.client = client
        self.commands = []

    def enqueue(self, grant, commands, passed):
        self.commands = list(commands)
        for command in commands:
            self.client.execute_command(*command)
        return Closing.DONE


def app_at(server, **conf):
    app = Celery("shop", broker=server.url, set_as_current=False)
    app.conf.update(task_queues=QUEUES, task_default_queue="celery", **conf)
    app.conf.beat_schedule = {}
    return app


def entry_for(app, task="add", **options):
    return ScheduleEntry(
        name="report", task=task, schedule=timedelta(1), args=[2, 2], options=options, app=app
    )


def send_with(app):
    scheduler = Scheduler(app=app, lazy=True)
    return lambda entry, producer: scheduler.apply_async(entry, producer=producer, advance=False)


@contextmanager
def enqueue_of(app, server, ledger=None):
    delivery = Enqueue(app, ledger or PushingLedger(server.client()), send_with(app), 1.0)
    try:
        yield delivery
    finally:
        delivery.close()


def push_stock(app, entry):
    with app.connection_for_write() as connection:
        send_with(app)(entry, app.amqp.Producer(connection, auto_declare=False))


def push_recorded(app, server, entry):
    with enqueue_of(app, server) as delivery:
        assert delivery.deliver(GRANT, entry, {}) is Delivered.SETTLED


def found(client):
    """Return every list with its raw messages and whether it expires, and empty the server."""
    lists = {
        key: (client.lrange(key, 0, -1), client.pttl(key) > 0)
        for key in sorted(client.keys())
        if client.type(key) == b"list"
    }
    client.flushall()
    return {key: ([no_tags(raw) for raw in raws], ttl) for key, (raws, ttl) in lists.items()}


def no_tags(raw):
    """Remove what is random in every message: kombu's tag, and this producer's reply queue."""
    return re.sub(rb'"delivery_tag": "[^"]+"', b'"delivery_tag": ""', raw)


CASES = {
    "default queue": {},
    "direct exchange": {"queue": "direct"},
    "exchange by name": {"exchange": "direct", "routing_key": "direct", "queue": "direct"},
    "topic, two queues": {"exchange": "animals", "routing_key": "cat.tom", "queue": "cats"},
    "topic, one queue": {"exchange": "animals", "routing_key": "dog.rex", "queue": "all"},
    "priority": {"queue": "urgent", "priority": 7},
    "queue that expires": {"queue": "short"},
    "compression": {"compression": "zlib"},
    "pickle": {"serializer": "pickle"},
    "countdown": {"eta": INSTANT, "expires": INSTANT + timedelta(1)},
    "headers": {"headers": {"mine": [1, {"deep": "ü"}]}},
}
PREFIXED = {"broker_transport_options": {"global_keyprefix": "eu:", "priority_steps": [0, 5]}}


@pytest.mark.parametrize("conf", [{}, PREFIXED, {"task_protocol": 1}], ids=["2", "prefix", "1"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_pushed_is_equal_to_stock_to_the_byte(shared_redis, case, conf):
    client = shared_redis.client()
    app = app_at(shared_redis, **conf)
    for queue in (app.amqp.queues["all"], app.amqp.queues["cats"]):  # as their workers would
        with app.connection_for_write() as connection:
            queue(connection.default_channel).declare()
    bindings = {key: client.smembers(key) for key in client.scan_iter()}

    message = entry_for(app, task_id=str(uuid.uuid4()), **CASES[case])
    push_stock(app, message)
    stock = found(client)
    for key, members in bindings.items():
        client.sadd(key, *members)
    push_recorded(app, shared_redis, message)
    assert found(client) == stock
    assert stock
    if KOMBU >= (5, 7) and case == "queue that expires" and not conf:
        assert stock[b"short"][1]


@pytest.mark.parametrize("conf", [{}, PREFIXED], ids=["plain", "prefix"])
@pytest.mark.parametrize("options", [{"exchange": news, "routing_key": "x"}, {"exchange": news}])
def test_a_fanout_is_published_to_the_same_channel(shared_redis, options, conf):
    app = app_at(shared_redis, **conf)
    listener = shared_redis.client().pubsub()
    listener.psubscribe("*")
    assert listener.get_message(timeout=5)["type"] == "psubscribe"
    queue = Queue("n", news, "x")
    message = entry_for(app, task_id=str(uuid.uuid4()), queue=queue, **options)

    def heard():
        told = listener.get_message(timeout=5)
        return told["channel"], no_tags(told["data"])

    push_stock(app, message)
    stock = heard()
    push_recorded(app, shared_redis, message)
    assert heard() == stock
    assert shared_redis.client().keys("*celery") == []


def test_declares_and_bindings_reach_redis_before_anything_is_pushed(shared_redis):
    app = app_at(shared_redis)
    client = shared_redis.client()
    ledger = PushingLedger(client)
    ledger.client = None
    message = entry_for(app, exchange="animals", routing_key="cat.tom", queue="cats")
    with enqueue_of(app, shared_redis, ledger) as delivery, pytest.raises(AttributeError):
        delivery.deliver(GRANT, message, {})
    assert client.smembers("_kombu.binding.animals")
    assert client.keys("cats") == []


def test_after_a_flush_a_reset_declares_anew(shared_redis):
    app = app_at(shared_redis)
    client = shared_redis.client()
    message = entry_for(app, exchange="animals", routing_key="cat.tom", queue="cats")
    with enqueue_of(app, shared_redis) as delivery:
        assert delivery.deliver(GRANT, message, {}) is Delivered.SETTLED
        client.flushall()
        assert delivery.deliver(GRANT, message, {}) is Delivered.NOTHING
        delivery.reset()
        assert delivery.deliver(GRANT, message, {}) is Delivered.SETTLED
    assert client.llen("cats") == 1


def test_the_users_options_and_the_connections_are_untouched(shared_redis):
    options = {"queue": "direct", "headers": {"mine": {"x": 1}}, "link": [], "retry": True}
    app = app_at(shared_redis, broker_transport_options={"visibility_timeout": 9})
    before = copy.deepcopy((options, app.conf.broker_transport_options))
    entry = entry_for(app, **options)
    entry.options = options
    with enqueue_of(app, shared_redis) as delivery:
        delivery.deliver(GRANT, message_for(entry, GRANT, "shop"), {})
        used = delivery._broker._connection.transport_options
    assert (options, app.conf.broker_transport_options) == before
    # Not Celery's retry policy, which kombu would write into them.
    assert "interval_start" not in used
    assert "max_retries" not in used


@pytest.mark.skipif(KOMBU < (5, 7), reason="kombu has no batches yet")
def test_kombus_own_batch_does_not_swallow_the_recording(shared_redis):
    app = app_at(shared_redis)
    stock = send_with(app)

    def send(entry, producer):
        with producer.batch():
            stock(entry, producer)
            stock(entry, producer)

    ledger = PushingLedger(shared_redis.client())
    delivery = Enqueue(app, ledger, send, 1.0)
    assert delivery.deliver(GRANT, entry_for(app), {}) is Delivered.SETTLED
    assert [command.name for command in ledger.commands] == ["LPUSH", "LPUSH"]
    assert shared_redis.client().llen("celery") == 2
    delivery.close()


def test_the_event_task_sent_is_pushed_together_with_its_message(shared_redis):
    app = app_at(shared_redis, task_send_sent_event=True)
    ledger = PushingLedger(shared_redis.client())
    with enqueue_of(app, shared_redis, ledger) as delivery:
        assert delivery.deliver(GRANT, entry_for(app), {}) is Delivered.SETTLED
    assert [command.name for command in ledger.commands] == ["LPUSH", "PUBLISH"]
    assert ledger.commands[1].key == "/0.celeryev/task.sent"


class LoggingChannel(Channel):
    puts = 0

    def _put(self, queue, message, **kwargs):
        type(self).puts += 1
        super()._put(queue, message, **kwargs)


class LoggingTransport(Transport):
    Channel = LoggingChannel


class PastChannel(Channel):
    def _put(self, queue, message, **kwargs):
        self.client.lpush(queue, json.dumps(message))


class PastTransport(Transport):
    Channel = PastChannel


def test_a_transport_of_the_user_records_too(shared_redis):
    app = app_at(shared_redis, broker_transport=LoggingTransport)
    push_recorded(app, shared_redis, entry_for(app))
    assert shared_redis.client().llen("celery") == 1


def test_a_channel_with_its_own_way_to_redis_has_published(shared_redis):
    app = app_at(shared_redis, broker_transport=PastTransport)
    ledger = PushingLedger(shared_redis.client())
    with enqueue_of(app, shared_redis, ledger) as delivery:
        assert delivery.deliver(GRANT, entry_for(app), {}) is Delivered.PUBLISHED
    assert ledger.commands == []
    assert shared_redis.client().llen("celery") == 1


@pytest.mark.parametrize("url", ["memory://", "amqp://"])
def test_what_is_not_redis_is_refused(url):
    connection = kombu.Connection(url)
    assert "not Redis" in refusal(connection)
    with pytest.raises(DeliveryImpossible, match="cannot be recorded"):
        install(connection, None)


def test_a_channel_without_the_seam_is_refused():
    class Bare:
        pass

    class Odd(Transport):
        Channel = Bare

    assert "_put" in refusal(kombu.Connection("redis://", transport=Odd))


@pytest.mark.parametrize("url", ["redis://", "rediss://", "sentinel://", "redis+socket:///x"])
def test_every_redis_transport_can_record(url):
    assert refusal(kombu.Connection(url)) == ""


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("prefix", ["", "eu:"])
def test_a_real_worker_executes_it_and_knows_its_tick(shared_redis, protocol, prefix):
    app = app_at(
        shared_redis,
        task_protocol=protocol,
        broker_transport_options={"global_keyprefix": prefix},
        result_backend=shared_redis.url,
        broker_connection_retry_on_startup=True,
    )

    @app.task(name="add", shared=False)
    def add(_x, _y):
        return repr(current_tick())

    message = message_for(entry_for(app, queue="cats", routing_key="cat.x"), GRANT, "shop", THREE)
    with start_worker(app, perform_ping_check=False, pool="solo", queues=["cats"]):
        push_recorded(app, shared_redis, message)
        result = app.AsyncResult(GRANT.tick.task_id("shop")).get(timeout=20)
    assert result == repr(CurrentTick("report", INSTANT, fence=7, attempt=1, passed_over=3))
    # No subscription was left by the sender.
    assert shared_redis.client().pubsub_numpat() == 0
