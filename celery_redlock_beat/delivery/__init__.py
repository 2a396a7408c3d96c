"""How a granted tick becomes a message: the verb and its answers, as values; no I/O here.

A refusal is a value; what went wrong is raised, as a
:class:`~celery_redlock_beat.errors.DeliveryError`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery.beat import ScheduleEntry

    from celery_redlock_beat.ledger import Grant
    from celery_redlock_beat.ticks import Reason

Send = Callable[[Any, Any], None]
"""Given an entry and a producer: call Celery's own ``apply_entry``, and raise what it swallowed."""


class Delivered(StrEnum):
    """What became of a message. After PUBLISHED the caller settles; after SETTLED all is done."""

    SETTLED = "SETTLED"  # pushed and settled
    PUBLISHED = "PUBLISHED"  # the message is out, its tick is still open
    NOTHING = "NOTHING"  # no message came out: eager mode, no queue bound, an apply_async declined
    UNSENT = "UNSENT"  # settled as sent, and then not published: at most once
    LOST = "LOST"  # the grant is no longer ours: nothing was sent
    PAUSED = "PAUSED"  # the entry is paused: nothing was sent


class Delivery(Protocol):
    """One way to the broker. It connects lazily, and anew in every process.

    ``shares_ledger`` tells that its messages live in the ledger's own Redis, and are lost with it.
    """

    shares_ledger: bool

    def ready(self) -> bool:
        """Answer whether a message can be tried now; connect once, bounded, if there is need.

        False during the back-off after a failed attempt (at most 1 s), and while the broker
        blocks publishers. Call it on every pass: it also keeps an idle connection's heartbeat.
        """

    def deliver(
        self, grant: Grant, message: ScheduleEntry, passed: Mapping[Reason, int]
    ) -> Delivered:
        """Send the message of one granted tick.

        Raises a ``DeliveryError``, or a ``LedgerError`` where this delivery asks the ledger.
        """

    def reset(self) -> None:
        """Drop the connection, the producer, and what is remembered as declared at the broker."""

    def close(self) -> None:
        """Let go of the broker: idempotent, quick, safe in a signal handler amid a publish."""
