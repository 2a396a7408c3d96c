"""What py-amqp needs to be trusted: confirms, bounded waits, a look at an idle connection.

Nothing here publishes or connects.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.delivery.timeouts import bound_amqp
from celery_redlock_beat.errors import BrokerUnreachable

if TYPE_CHECKING:
    from kombu import Connection

logger = logging.getLogger(__name__)

PROBE_AFTER = 5.0
"""Seconds of silence after which a connection is asked for a sign of life before it is used."""


def is_amqp(connection: Connection) -> bool:
    """Answer whether a connection is one of py-amqp's."""
    return getattr(connection.get_transport_cls(), "driver_name", None) == "py-amqp"


class Amqp:
    """The health of one py-amqp connection."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        self._connection = connection
        self._used_at = time.monotonic()
        self._user_on_blocked = connection.transport_options.get("on_blocked")
        self._user_on_unblocked = connection.transport_options.get("on_unblocked")
        self.blocked = False
        self._was_blocked = False
        self._reason = ""
        bound_amqp(connection.transport_options, timeout)
        connection.transport_options.update(
            confirm_publish=True, on_blocked=self._on_blocked, on_unblocked=self._on_unblocked
        )

    def connected(self) -> None:
        """Note that the connection was made anew."""
        self.blocked = self._was_blocked = False
        self.used()

    def used(self) -> None:
        """Note that the connection has just proved to be alive."""
        self._used_at = time.monotonic()

    def check(self) -> bool:
        """Read what the broker has sent; false if the connection has to be made anew.

        Raises ``BrokerUnreachable`` while the broker blocks publishers: what is written then is
        neither refused nor confirmed, and every new try would become one more message.
        """
        try:
            self._look()
        except (*self._connection.connection_errors, *self._connection.channel_errors) as exc:
            logger.debug("the connection to the broker was lost: %s", exc)
            return False
        if self.blocked:
            raise BrokerUnreachable(f"the broker blocks publishers: {self._reason}")
        # What was written while it was blocked may still be confirmed: that must not be taken
        # for the confirmation of the next message.
        return not self._was_blocked

    def _look(self) -> None:
        self._drain()
        if self._connection.heartbeat:
            self._connection.heartbeat_check()
        if not self.blocked and time.monotonic() - self._used_at > PROBE_AFTER:
            self.probe()

    def _drain(self) -> None:
        with suppress(TimeoutError):  # nothing more to read, as it should be
            self._connection.drain_events(timeout=0)

    def probe(self) -> None:
        """Ask for a sign of life."""
        # A firewall forgets idle connections without a word. This needs no permission, changes
        # nothing for a publisher, and is answered.
        self._connection.default_channel.basic_qos(0, 1, a_global=False)
        self.used()

    def _on_blocked(self, reason: Any) -> None:
        self.blocked = self._was_blocked = True
        self._reason = str(reason)
        logger.info("the broker blocks publishers: %s", reason)
        if self._user_on_blocked:
            self._user_on_blocked(reason)

    def _on_unblocked(self) -> None:
        self.blocked = False
        logger.info("the broker lets publishers continue")
        if self._user_on_unblocked:
            self._user_on_unblocked()
