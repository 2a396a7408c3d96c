"""The signals that beat sends for the outcome of each tick; it sends none by itself.

They work as Celery's own do, and are connected where beat imports the module, as the app's is::

    from celery_redlock_beat.signals import tick_skipped

    @tick_skipped.connect
    def on_skipped(sender, reason, **kwargs):
        ...

``sender`` is the name of the entry. A receiver takes the arguments that it wants, and ``**kwargs``:

================  ============================================================================
``event``         the whole :class:`~celery_redlock_beat.ticks.Event`
``entry``         the name of the entry, as ``sender``
``tick``          the instant of the schedule, an aware datetime in UTC
``task``          the name of the task; empty where no entry of that name is known any more
``task_id``       the id that its message carries
``reason``        why it was not sent, as in :class:`~celery_redlock_beat.ticks.Reason`, or ""
``lateness``      seconds from when it was due, jitter included, to its outcome
``attempt``       1, or more if an earlier attempt did not end; 0 in doubt
``passed_over``   how many earlier ticks were skipped with it, by reason
``node``          the name of this node
================  ============================================================================
"""

from __future__ import annotations

from celery.utils.dispatch import Signal

__all__ = ["tick_in_doubt", "tick_late", "tick_sent", "tick_skipped", "tick_taken_over"]

ARGUMENTS = {
    "event",
    "entry",
    "tick",
    "task",
    "task_id",
    "reason",
    "lateness",
    "attempt",
    "passed_over",
    "node",
}

tick_sent = Signal(name="tick_sent", providing_args=ARGUMENTS)
"""A tick was sent, in time or late, at whatever attempt."""

tick_late = Signal(name="tick_late", providing_args=ARGUMENTS)
"""A tick was sent more than ten seconds after it was due; ``tick_sent`` comes before it."""

tick_taken_over = Signal(name="tick_taken_over", providing_args=ARGUMENTS)
"""A tick was sent after an earlier attempt, here or elsewhere, did not end; after ``tick_sent``."""

tick_skipped = Signal(name="tick_skipped", providing_args=ARGUMENTS)
"""A tick was not sent, for a reason. Those that it passed over get no signal of their own."""

tick_in_doubt = Signal(name="tick_in_doubt", providing_args=ARGUMENTS)
"""A tick was sent or not: the ledger lost what it knew of it, and no node remembers."""
