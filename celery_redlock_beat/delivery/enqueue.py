"""Deliver through the ledger's own Redis: message and settlement in one script.

Sends nothing itself: the commands are recorded, and the ledger's ``enqueue`` verb pushes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.broker import Broker
from celery_redlock_beat.delivery.failures import is_connection_error
from celery_redlock_beat.delivery.recording import Tape, install
from celery_redlock_beat.errors import BrokerUnreachable, DeliveryFailed
from celery_redlock_beat.ledger import Closing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery
    from celery.beat import ScheduleEntry

    from celery_redlock_beat.delivery import Send
    from celery_redlock_beat.delivery.counting import Tally
    from celery_redlock_beat.ledger import Grant, Ledger
    from celery_redlock_beat.ticks import Reason

ANSWERS = {
    Closing.DONE: Delivered.SETTLED,
    Closing.ALREADY: Delivered.SETTLED,
    Closing.STALE: Delivered.LOST,
    Closing.PAUSED: Delivered.PAUSED,
}


class Enqueue:
    """Deliver where the broker is the ledger's server, database and user.

    After a ``LedgerRecovering`` the caller resets it: kombu's routing tables may be gone.
    """

    shares_ledger = True

    def __init__(self, app: Celery, ledger: Ledger, send: Send, socket_timeout: float) -> None:
        self._ledger = ledger
        self._tape = tape = Tape()
        self._broker = Broker(
            app,
            send,
            socket_timeout,
            prepare=lambda connection: install(connection, tape),
            count=lambda: len(tape) + tape.unrecorded,
        )

    def ready(self) -> bool:
        """Connect if there is need, once; answer whether a message can be tried."""
        return self._broker.ready()

    def deliver(
        self, grant: Grant, message: ScheduleEntry, passed: Mapping[Reason, int]
    ) -> Delivered:
        """Record the message, then push it and settle its tick in one step."""
        tally = self._record(message)
        unrecorded, commands = self._tape.unrecorded, self._tape.take()
        if tally.out > unrecorded:  # not the tape alone: "task-sent" is on it, too
            return ANSWERS[self._ledger.enqueue(grant, commands, passed)]
        # Nothing is left to push: it went out on a way that is not ours, or there was nothing.
        return Delivered.PUBLISHED if unrecorded or tally.elsewhere else Delivered.NOTHING

    def reset(self) -> None:
        """Drop the connection and what is remembered as declared."""
        self._broker.reset()

    def close(self) -> None:
        """Let go of the broker."""
        self._broker.close()

    def _record(self, message: ScheduleEntry) -> Tally:
        self._tape.take()
        try:
            return self._broker.publish(message)
        except DeliveryFailed as failure:
            # Nothing was pushed: a lost connection means no more than that it was not tried.
            cause, kinds = failure.__cause__ or failure, self._broker.recoverable_errors
            if not self._tape.unrecorded and is_connection_error(cause, kinds):
                raise BrokerUnreachable(*failure.args) from cause
            raise
