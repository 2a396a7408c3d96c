"""Whether the broker is away, told once when it goes and once when it is back; it tries nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.store.endpoint import is_redis
from celery_redlock_beat.store.errors import describe

if TYPE_CHECKING:
    from kombu import Connection

    from celery_redlock_beat.delivery.amqp import Amqp

logger = logging.getLogger(__name__)


class Outage:
    """The broker's absence, from the first failure to the first success.

    ``refuses`` holds while it can be reached and takes no messages: only a message tells the end.
    """

    def __init__(self) -> None:
        self.refuses = False
        self._is_on = False

    def begin(self, exc: Exception, *, refuses: bool = False) -> None:
        """Note a failure; only the first one is news: it is asked several times per second."""
        self.refuses = self.refuses or refuses
        if self._is_on:
            logger.debug("The broker is still away: %s", exc)
            return
        self._is_on = True
        logger.error(
            "The broker is away, nothing is sent until it is back: %s (check that it runs, and "
            "the host, port, user and password of broker_url)",
            exc,
        )

    def end(self) -> None:
        """Note that it works."""
        self.refuses = False
        if self._is_on:
            self._is_on = False
            logger.warning("The broker is back.")


def answers(connection: Connection | None, amqp: Amqp | None) -> bool:
    """Answer whether what is at the other end of a connection speaks as a broker does."""
    try:
        if amqp and not amqp.blocked:
            amqp.probe()
        elif connection and is_redis(connection):
            return connection.default_channel.client.ping() is True
    except Exception as exc:  # noqa: BLE001  whatever it was, it was no answer
        logger.debug("no answer of the broker: %s", describe(exc))
        return False
    return True
