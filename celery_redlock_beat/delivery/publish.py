"""Deliver through any broker of Celery's: publish, then settle, or the other way round.

Never pushes through the ledger, and never publishes a message twice by itself.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.broker import Broker
from celery_redlock_beat.errors import BrokerUnreachable, DeliveryError
from celery_redlock_beat.ledger import Closing, Settlement
from celery_redlock_beat.ticks import SENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery
    from celery.beat import ScheduleEntry

    from celery_redlock_beat.delivery import Send
    from celery_redlock_beat.ledger import Grant, Ledger
    from celery_redlock_beat.ticks import Reason

logger = logging.getLogger(__name__)


class Publish:
    """Publish and let the caller settle: at least one message, always with the same task id.

    On AMQP each message waits for the broker's confirmation.
    """

    shares_ledger = False

    def __init__(self, app: Celery, send: Send, socket_timeout: float) -> None:
        self._broker = Broker(app, send, socket_timeout)

    def ready(self) -> bool:
        """Connect if there is need, once; answer whether a message can be tried."""
        return self._broker.ready()

    def deliver(
        self,
        grant: Grant,  # noqa: ARG002  settled by the caller
        message: ScheduleEntry,
        passed: Mapping[Reason, int],  # noqa: ARG002  counted by the caller
    ) -> Delivered:
        """Publish the message; the caller settles its tick."""
        tally = self._broker.publish(message)
        return Delivered.PUBLISHED if tally.out or tally.elsewhere else Delivered.NOTHING

    def reset(self) -> None:
        """Drop the connection and what is remembered as declared."""
        self._broker.reset()

    def close(self) -> None:
        """Let go of the broker."""
        self._broker.close()


class AtMostOnce(Publish):
    """Settle, then publish: never two messages, and after a failure in between none."""

    def __init__(self, app: Celery, ledger: Ledger, send: Send, socket_timeout: float) -> None:
        super().__init__(app, send, socket_timeout)
        self._ledger = ledger

    def deliver(
        self, grant: Grant, message: ScheduleEntry, passed: Mapping[Reason, int]
    ) -> Delivered:
        """Settle the tick as sent, and publish only if that was this call's doing."""
        if not self.ready():
            msg = "nothing was settled, since the broker cannot be reached"
            raise BrokerUnreachable(msg)
        closing = self._ledger.settle([Settlement(grant, SENT, passed)])[0]
        if closing is not Closing.DONE:
            return Delivered.PAUSED if closing is Closing.PAUSED else Delivered.LOST
        try:
            super().deliver(grant, message, passed)
        except DeliveryError:
            # At most once means that it is not tried again, whatever may pass.
            logger.exception("%s: settled as sent, and then not published", grant.tick)
            return Delivered.UNSENT
        return Delivered.SETTLED
