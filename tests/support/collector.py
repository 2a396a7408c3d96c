"""Read the messages of a run from its real broker, and note when each came.

It takes part in nothing: it sends no message, and judges none.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, Self

import amqp  # type: ignore[import-untyped]
import redis
from kombu import Connection, Exchange, Queue
from kombu.exceptions import KombuError
from redis.backoff import NoBackoff
from redis.retry import Retry

from celery_redlock_beat.ticks import Micros, Tick, to_micros

POLL = 0.2  # how soon a source notices that it is to end
PAUSE = 0.05  # between attempts to reach a broker that is away


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message: whose tick it is, its ids, and when it came by the server's clock."""

    tick: Tick | None
    task_id: str
    attempt: int
    at: Micros
    push: str = ""  # kombu's delivery tag: the same when one recorded message was pushed twice
    headers: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, headers: Mapping[str, Any], at: Micros, push: str = "") -> Arrival:
        """Read the headers of a message; those of a stock beat have no tick."""
        entry, instant = headers.get("redlock_entry"), headers.get("redlock_tick")
        tick = None
        if entry is not None and instant is not None:
            tick = Tick(str(entry), to_micros(datetime.fromisoformat(instant)))
        attempt = int(headers.get("redlock_attempt") or 0)
        return cls(tick, str(headers.get("id", "")), attempt, at, push, dict(headers))


Receive = Callable[[Arrival], None]


class _Source(ABC):
    """Somewhere that messages come from; ``run`` hands over each until ``ended`` is set."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.ready = threading.Event()

    @abstractmethod
    def run(self, receive: Receive, ended: threading.Event) -> None:
        """Hand each message to ``receive``; reconnect for as long as it takes."""


class _RedisSource(_Source):
    """Move messages from the queue to a list that is kept, so that no lost reply loses one.

    A server that lost data may hand out again what it had handed out before: the messages that it
    forgot are not counted a second time, each once.
    """

    def __init__(self, url: Callable[[], str], queue: str) -> None:
        super().__init__(queue)
        self.url = url
        self.kept = f"{queue}.collected"
        self._pushes: list[str] = []  # of the messages in the kept list, in its order
        self._again: set[str] = set()

    def run(self, receive: Receive, ended: threading.Event) -> None:
        while not ended.is_set():
            with suppress(redis.RedisError, LookupError), _client(self.url()) as client:
                self._pull(client, receive)
                self.ready.set()
                while not ended.is_set():
                    client.execute_command("BLMOVE", self.queue, self.kept, "RIGHT", "RIGHT", POLL)
                    self._pull(client, receive)
            ended.wait(PAUSE)

    def _pull(self, client: redis.Redis, receive: Receive) -> None:
        """Hand over what the kept list has beyond what was handed over."""
        known = len(self._pushes)
        transaction: Any = client.pipeline()
        questions = transaction.time().llen(self.kept).lrange(self.kept, known, -1)
        moment, length, fresh = questions.execute()
        if length < known:
            self._see_what_was_forgotten(client.lrange(self.kept, 0, -1))
            return
        for message in map(json.loads, fresh):
            self._pushes.append(push := _push_of(message))
            if push in self._again:
                self._again.discard(push)
            else:
                receive(Arrival.of(message["headers"], _micros(moment), push))

    def _see_what_was_forgotten(self, kept: Any) -> None:
        there = [_push_of(json.loads(raw)) for raw in kept]
        both = zip(self._pushes, there, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
        self._again |= set(self._pushes[same:])
        del self._pushes[same:]


def _client(url: str) -> redis.Redis:
    settings = {"socket_timeout": 5, "socket_connect_timeout": 1, "protocol": 2}
    retry = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(url, retry=retry, single_connection_client=True, **settings)


def _micros(answer: tuple[int, int]) -> Micros:
    return answer[0] * 1_000_000 + answer[1]


def _push_of(message: dict[str, Any]) -> str:
    return str(message["properties"].get("delivery_tag", ""))


class _AmqpSource(_Source):
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

    def _now(self) -> Micros:
        """Ask the ledger's server; AMQP has no clock of its own."""
        if self._clock_url is not None:
            with suppress(redis.RedisError), _client(self._clock_url) as client:
                return _micros(client.time())
        return time.time_ns() // 1000


class Collector:
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
        self._source: _Source
        if isinstance(url, str) and url.startswith(("amqp", "pyamqp")):
            self._source = _AmqpSource(url, queue, clock_url)
        else:
            self._source = _RedisSource((lambda: url) if isinstance(url, str) else url, queue)
        self._arrivals: list[Arrival] = []
        self._news = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    @property
    def arrivals(self) -> list[Arrival]:
        """All messages so far, in the order of their arrival."""
        with self._news:
            return list(self._arrivals)

    def of(self, entry: str) -> list[Arrival]:
        """The messages of one entry so far."""
        return [each for each in self.arrivals if each.tick and each.tick.entry == entry]

    def ticks(self) -> set[Tick]:
        """The different ticks that were seen so far."""
        return {each.tick for each in self.arrivals if each.tick}

    def wait_until(
        self, wanted: int | Callable[[Collector], object], timeout: float = 30.0
    ) -> list[Arrival]:
        """Wait for so many different ticks, or for a predicate of this collector to hold."""
        met = (lambda _: len(self.ticks()) >= wanted) if isinstance(wanted, int) else wanted
        with self._news:
            if not self._news.wait_for(lambda: met(self), timeout):
                seen = f"{len(self._arrivals)} messages, {len(self.ticks())} ticks"
                raise TimeoutError(f"waited {timeout:g} s for {wanted}; there are {seen}")
        return self.arrivals

    def start(self, timeout: float = 10.0) -> Self:
        """Start collecting; returns once the broker has been reached."""
        self._thread.start()
        if not self._source.ready.wait(timeout):
            self.stop()
            raise TimeoutError(f"waited {timeout:g} s for the broker of {self._source.queue!r}")
        return self

    def stop(self) -> None:
        """Stop collecting; what was collected stays."""
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        self._source.run(self._receive, self._ended)

    def _receive(self, arrival: Arrival) -> None:
        with self._news:
            self._arrivals.append(arrival)
            self._news.notify_all()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
