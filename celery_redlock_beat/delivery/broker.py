"""Our own connection to the broker: one bounded attempt, a short back-off, nothing shared.

Knows neither ticks nor the ledger, and never retries a message.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from celery.result import denied_join_result
from celery.signals import after_task_publish

from celery_redlock_beat.delivery.amqp import Amqp, is_amqp
from celery_redlock_beat.delivery.failures import classify, describe
from celery_redlock_beat.errors import BrokerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery import Celery
    from celery.beat import ScheduleEntry
    from kombu import Connection, Producer

    from celery_redlock_beat.delivery import Send
    from celery_redlock_beat.delivery.failures import Kinds

logger = logging.getLogger(__name__)

LONGEST_BACK_OFF = 1.0


@dataclass(slots=True)
class Tally:
    """What came of one call of ``send``.

    ``calls`` of our producer for a task, how many messages are ``out`` through it, and how many
    tasks Celery says were published on whatever producer.
    """

    calls: int = 0
    out: int = 0
    published: int = 0

    @property
    def elsewhere(self) -> int:
        """Messages that went past our producer: an ``apply_async`` that does not pass it on."""
        return max(0, self.published - self.calls)


class Broker:
    """A producer of our own, made lazily and anew in every process.

    ``prepare`` is given each new connection before it connects. ``count`` tells how many
    messages are out so far, where that is not once for each publish.
    """

    def __init__(
        self,
        app: Celery,
        send: Send,
        socket_timeout: float,
        prepare: Callable[[Connection], None] | None = None,
        count: Callable[[], int] | None = None,
    ) -> None:
        self._app = app
        self._send = send
        self._timeout = socket_timeout
        self._prepare = prepare
        self._count = count
        self._pid = 0
        self._failures = 0
        self._again_at = 0.0
        self._depth = 0
        self._thread = 0
        self._tally = Tally()
        self._connection: Connection | None = None
        self._producer: Producer | None = None
        self._amqp: Amqp | None = None
        self.recoverable_errors: Kinds = ()

    def ready(self) -> bool:
        """Connect if there is need, once; answer whether a message can be tried."""
        try:
            self._usable_producer()
        except BrokerUnreachable as exc:
            logger.debug("the broker cannot be used: %s", exc)
            return False
        return True

    def publish(self, message: ScheduleEntry) -> Tally:
        """Send a message once, and return what came of it.

        Raises ``BrokerUnreachable`` if it was not tried, or what ``send`` raised, classified.
        """
        producer = self._usable_producer()
        self._tally, self._thread = Tally(), threading.get_ident()
        try:
            # Not denied, the Redis result backend subscribes per message and never reads.
            with self._working(), denied_join_result():
                self._send(message, producer)
        except Exception as exc:
            failure = classify(exc, self.recoverable_errors)
            # A late confirmation must not be taken for that of the next message.
            self._forget_unless_blocked()
            raise failure from exc
        finally:
            self._thread = 0
        if self._amqp:
            self._amqp.used()
        return self._tally

    def reset(self) -> None:
        """Drop the connection and all that is remembered of the broker."""
        self._drop("release")

    def close(self) -> None:
        """Let go of the connection; in the middle of something, without a word on it."""
        if self._depth:
            self._connection = self._producer = self._amqp = None
        else:
            self.reset()

    def _usable_producer(self) -> Producer:
        if self._pid != os.getpid():
            # A connection from before a fork belongs to the parent: it is not even closed.
            self._connection = self._producer = self._amqp = None
            self._pid = os.getpid()
            after_task_publish.connect(self._on_published)
        with self._working():
            if self._producer is not None and self._is_alive():
                return self._producer
            wait = self._again_at - time.monotonic()
            if wait > 0:
                msg = f"it could not be reached; the next attempt is in {wait:.1f} s"
                raise BrokerUnreachable(msg)
            return self._connect()

    def _is_alive(self) -> bool:
        if self._connection is None or not self._connection.connected:
            return False
        return self._amqp is None or self._amqp.check()

    def _connect(self) -> Producer:
        self._producer = None
        connection = self._connection = self._connection or self._new_connection()
        try:
            connection.collect()
            connection.ensure_connection(max_retries=0)
            producer = self._producer = self._new_producer(connection)
        except Exception as exc:
            self._failures += 1
            longest = min(LONGEST_BACK_OFF, 0.1 * 2 ** min(self._failures, 10))
            self._again_at = time.monotonic() + longest * random.uniform(0.5, 1.0)  # noqa: S311
            _quietly(connection.collect)
            _quietly(connection.maybe_switch_next)
            raise BrokerUnreachable(describe(exc)) from exc
        self._failures = 0
        if self._amqp:
            self._amqp.connected()
        return producer

    def _new_connection(self) -> Connection:
        ours = self._timeout
        timeout = shortest(self._app.conf.broker_connection_timeout, ours)
        connection = self._app.connection_for_write(connect_timeout=timeout)
        self._amqp = Amqp(connection, ours) if is_amqp(connection) else None
        if getattr(connection.get_transport_cls(), "driver_type", None) == "redis":
            _bound_redis(connection.transport_options, ours)
        if self._prepare:
            self._prepare(connection)
        errors = connection.recoverable_connection_errors
        self.recoverable_errors = (*errors, *connection.recoverable_channel_errors)
        return connection

    def _new_producer(self, connection: Connection) -> Producer:
        connection.default_channel  # noqa: B018  opened here, so that nothing connects later
        producer = self._app.amqp.Producer(connection, auto_declare=False)
        producer.publish = partial(self._publish_once, producer.publish)
        return producer

    def _publish_once(self, publish: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # With retry, kombu sleeps, and writes the policy into the transport options.
        kwargs["retry"] = False
        if self._amqp:
            kwargs["confirm_timeout"] = kwargs.get("confirm_timeout") or self._timeout
        exchange = kwargs.get("exchange")
        if getattr(exchange, "name", exchange) == self._app.conf.event_exchange:
            return publish(*args, **kwargs)  # "task-sent" is no message of a tick
        tally, before = self._tally, self._count() if self._count else 0
        tally.calls += 1
        result = publish(*args, **kwargs)
        tally.out += self._count() - before if self._count else 1
        return result

    def _on_published(self, **_kwargs: Any) -> None:
        if self._thread == threading.get_ident():
            self._tally.published += 1

    def _forget_unless_blocked(self) -> None:
        if self._amqp is None or not self._amqp.blocked:
            self._drop("collect")

    def _drop(self, way: str) -> None:
        connection, self._connection = self._connection, None
        self._producer = self._amqp = None
        if connection is not None and self._pid == os.getpid():
            _quietly(getattr(connection, way))

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


def shortest(given: Any, ours: float) -> float:
    """Return the user's timeout if it is shorter than ours."""
    return min(float(given), ours) if given else ours


def _bound_redis(options: dict[str, Any], ours: float) -> None:
    names = ("socket_timeout", "socket_connect_timeout")
    options.update({name: shortest(options.get(name), ours) for name in names})
    options["retry_on_timeout"] = False
    # For Sentinel's own nodes redis-py makes clients that retry ten times.
    nodes = dict(options.get("sentinel_kwargs") or {})
    nodes.update({name: shortest(nodes.get(name), ours) for name in names}, retry=None)
    options["sentinel_kwargs"] = nodes


def _quietly(let_go: Callable[[], Any]) -> None:
    try:
        let_go()
    except Exception as exc:  # noqa: BLE001  it is being thrown away
        logger.debug("letting go of the connection to the broker: %s", describe(exc))
