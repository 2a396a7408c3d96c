"""The package's collector, from a URL, and of the brokers that only tests read: AMQP's.

It takes part in nothing: it sends no message, and judges none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import amqp
import redis
from kombu import Connection, Exchange, Queue
from kombu.exceptions import KombuError
from redis.backoff import NoBackoff
from redis.retry import Retry

from celery_redlock_beat.verify import collector
from celery_redlock_beat.verify.arrivals import Arrival
from celery_redlock_beat.verify.sources import (
    PAUSE,
    POLL,
    Receive,
    RedisSource,
    Source,
    micros,
)

if TYPE_CHECKING:
    import threading

    from celery_redlock_beat.ticks import Micros

__all__ = ["Arrival", "Collector"]


def _client(url: str) -> redis.Redis:
    settings = {"socket_timeout": 5, "socket_connect_timeout": 1, "protocol": 2}
    retry = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(url, retry=retry, single_connection_client=True, **settings)


class _AmqpSource(Source):
    """Consume a queue, acknowledging each message; a redelivery of a known one is not counted."""

    def __init__(self, url: str, queue: str, clock_url: str | None) -> None:
        super().__init__(queue)
        self.url = url
        self._clock_url = clock_url
        self._seen: set[str] = set()

    def run(self, receive: Receive, ended: threading.Event) -> None:
        queue = Queue(self.queue, Exchange(self.queue), routing_key=self.queue)

        def take(message: Any) -> None:
            headers = message.headers
            known = str(headers.get("id")) in self._seen
            if not (known and message.delivery_info["redelivered"]):
                self._seen.add(str(headers.get("id")))
                receive(Arrival.of(headers, self._now()))
            message.ack()

        while not ended.is_set():
            with (
                suppress(OSError, amqp.AMQPError, KombuError),
                Connection(self.url, connect_timeout=2) as connection,
                connection.Consumer(queue, on_message=take),
            ):
                self.ready.set()
                while not ended.is_set():
                    with suppress(TimeoutError):
                        connection.drain_events(timeout=POLL)
            ended.wait(PAUSE)

    def put(self, message: str) -> None:
        raise NotImplementedError("send it as kombu does")

    def _now(self) -> Micros:
        """Ask the ledger's server; AMQP has no clock of its own."""
        if self._clock_url is not None:
            with suppress(redis.RedisError), _client(self._clock_url) as client:
                return micros(client.time())
        return time.time_ns() // 1000


class Collector(collector.Collector):
    """Collect the messages of one queue in a thread of its own; a context manager.

    The queue is Redis's (``redis://``, ``rediss://``, ``unix://``) or AMQP's (``amqp://``); with
    the latter, ``clock_url`` names the Redis server whose clock counts. A function as ``url`` is
    asked on every connection, for brokers that move (``SentinelTrio.master_url``).
    """

    def __init__(
        self,
        url: str | Callable[[], str],
        queue: str = "celery",
        *,
        clock_url: str | None = None,
    ) -> None:
        where = (lambda: url) if isinstance(url, str) else url
        if isinstance(url, str) and url.startswith(("amqp", "pyamqp")):
            super().__init__(_AmqpSource(url, queue, clock_url))
        else:
            super().__init__(RedisSource(lambda: _client(where()), queue))
