"""Write outcomes to the log, one line per tick that was settled; it decides nothing.

Each line is a text for people. What it says is also in the record, for a formatter that writes
fields: ``action``, ``entry``, ``tick``, ``task``, ``task_id``, ``reason``, ``lateness``,
``attempt``, ``passed_over``, ``node``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.observers.facts import action_of, facts_of, is_late, is_taken_over
from celery_redlock_beat.ticks import SECOND, Reason

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Event

logger = logging.getLogger(__name__)

# What a policy or an operator wanted is no news; what nobody wanted is.
LEVELS = {
    Reason.ERROR: logging.ERROR,
    Reason.ATTEMPTS: logging.ERROR,
    Reason.UNKNOWN_ENTRY: logging.WARNING,
    Reason.NOT_SENT: logging.WARNING,
    Reason.DATA_LOSS: logging.WARNING,
}


class OutcomeLog:
    """Log the outcome of each tick, with what was passed over and why.

    That an entry comes to no message is a warning once, and then no news.
    """

    def __init__(self) -> None:
        self._silent: set[str] = set()

    def __call__(self, event: Event, node: str) -> None:
        """Log one outcome of ``node``."""
        level = self._level(event)
        if not logger.isEnabledFor(level):
            return
        passed = ", ".join(f"{number} {reason}" for reason, number in event.passed_over.items())
        at_least = "" if event.passed_over_exact else "at least "
        facts = facts_of(event, node)
        logger.log(
            level,
            "%s (%s): %s %.3f s after its instant, id %s, attempt %d%s%s",
            event.tick,
            event.task or "unknown task",
            event.outcome.text,
            event.lateness / SECOND,
            event.task_id,
            event.attempt,
            f"; passed over: {at_least}{passed}" if passed else "",
            f"; {event.detail}" if event.detail else "",
            extra={**facts, "action": action_of(event), "tick": facts["tick"].isoformat()},
        )

    def _level(self, event: Event) -> int:
        entry, reason = event.tick.entry, event.outcome.reason
        if reason is Reason.NOT_SENT and entry in self._silent:
            return logging.INFO
        if reason is Reason.NOT_SENT:
            self._silent.add(entry)
        else:
            self._silent.discard(entry)
        if reason is None:
            return logging.WARNING if is_late(event) or is_taken_over(event) else logging.INFO
        return LEVELS.get(reason, logging.INFO)
