"""Our own connection to the broker: one bounded attempt, a short back-off, nothing shared.

Knows neither ticks nor the ledger, and never retries a message.
"""

from __future__ import annotations

import logging
import os
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery.result import denied_join_result

from celery_redlock_beat.delivery.amqp import Amqp, is_amqp
from celery_redlock_beat.delivery.counting import Counter
from celery_redlock_beat.delivery.failures import classify
from celery_redlock_beat.delivery.outage import Outage, answers
from celery_redlock_beat.delivery.timeouts import bound_redis, shortest
from celery_redlock_beat.errors import BrokerUnreachable, DeliveryFailed, DeliveryImpossible
from celery_redlock_beat.store.endpoint import is_redis
from celery_redlock_beat.store.errors import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery import Celery
    from celery.beat import ScheduleEntry
    from kombu import Connection, Producer

    from celery_redlock_beat.delivery import Send
    from celery_redlock_beat.delivery.counting import Tally
    from celery_redlock_beat.delivery.failures import Kinds
    from celery_redlock_beat.errors import DeliveryError

logger = logging.getLogger(__name__)

LONGEST_BACK_OFF = 1.0


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
        self._counter = Counter(app.conf.event_exchange, count)
        self._pid = 0
        self._failures = 0
        self._outage = Outage()
        self._again_at = 0.0
        self._depth = 0
        self._connection: Connection | None = None
        self._producer: Producer | None = None
        self._amqp: Amqp | None = None
        self.recoverable_errors: Kinds = ()

    def ready(self) -> bool:
        """Connect if there is need, once; answer whether a message can be tried."""
        try:
            self._usable_producer()
        except BrokerUnreachable as exc:
            self._outage.begin(exc)
            return False
        if not self._outage.refuses:
            self._works()
        return True

    def publish(self, message: ScheduleEntry) -> Tally:
        """Send a message once, and return what came of it.

        Raises ``BrokerUnreachable`` if it was not tried, or what ``send`` raised, classified.
        """
        producer = self._usable_producer()
        try:
            # Not denied, the Redis result backend subscribes per message and never reads.
            with self._working(), denied_join_result(), self._counter.counting() as tally:
                self._send(message, producer)
        except Exception as exc:
            with self._working():
                failure = self._failure(exc)
            # A late confirmation must not be taken for that of the next message.
            if not isinstance(failure, DeliveryImpossible):
                self._forget_unless_blocked()
            if isinstance(failure, BrokerUnreachable):
                self._put_off()
                self._outage.begin(failure, refuses=True)
            raise failure from exc
        if self._amqp:
            self._amqp.used()
        self._works()
        return tally

    def reset(self) -> None:
        """Drop the connection and all that is remembered of the broker."""
        self._drop("release")

    def close(self) -> None:
        """Let go of the connection; in the middle of something, without a word on it."""
        if self._depth:
            self._connection = self._producer = self._amqp = None
        else:
            self.reset()

    def _works(self) -> None:
        self._failures = 0
        self._outage.end()

    def _put_off(self) -> None:
        self._failures += 1
        longest = min(LONGEST_BACK_OFF, 0.1 * 2 ** min(self._failures, 10))
        self._again_at = time.monotonic() + longest * random.uniform(0.5, 1.0)  # noqa: S311

    def _failure(self, exc: Exception) -> DeliveryError:
        failure = classify(exc, self.recoverable_errors)
        # What reads like a mistake in an entry may be what something else than a broker answered.
        if isinstance(failure, DeliveryImpossible) and not answers(self._connection, self._amqp):
            return DeliveryFailed(*failure.args)
        return failure

    def _usable_producer(self) -> Producer:
        if self._pid != os.getpid():
            # A connection from before a fork belongs to the parent: it is not even closed.
            self._connection = self._producer = self._amqp = None
            self._pid = os.getpid()
            self._counter.listen()
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
            self._put_off()
            _quietly(connection.collect)
            _quietly(connection.maybe_switch_next)
            unreachable = BrokerUnreachable(describe(exc))
            self._outage.begin(unreachable)
            raise unreachable from exc
        if self._amqp:
            self._amqp.connected()
        return producer

    def _new_connection(self) -> Connection:
        ours = self._timeout
        timeout = shortest(self._app.conf.broker_connection_timeout, ours)
        connection = self._app.connection_for_write(connect_timeout=timeout)
        self._amqp = Amqp(connection, ours) if is_amqp(connection) else None
        if is_redis(connection):
            bound_redis(connection.transport_options, ours)
        if self._prepare:
            self._prepare(connection)
        errors = connection.recoverable_connection_errors
        self.recoverable_errors = (*errors, *connection.recoverable_channel_errors)
        return connection

    def _new_producer(self, connection: Connection) -> Producer:
        connection.default_channel  # noqa: B018  opened here, so that nothing connects later
        producer = self._app.amqp.Producer(connection, auto_declare=False)
        self._counter.attach(producer, self._timeout if self._amqp else None)
        return producer

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


def _quietly(let_go: Callable[[], Any]) -> None:
    try:
        let_go()
    except Exception as exc:  # noqa: BLE001  it is being thrown away
        logger.debug("letting go of the connection to the broker: %s", describe(exc))
