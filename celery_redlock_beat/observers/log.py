"""Write outcomes to the log, one line per tick that was settled; it decides nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, Reason

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Event

logger = logging.getLogger(__name__)

LEVELS = {
    None: logging.INFO,
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

    def __call__(self, event: Event) -> None:
        """Log one outcome."""
        passed = ", ".join(f"{number} {reason}" for reason, number in event.passed_over.items())
        at_least = "" if event.passed_over_exact else "at least "
        logger.log(
            self._level(event),
            "%s (%s): %s %.3f s after its instant, id %s, attempt %d%s%s",
            event.tick,
            event.task or "unknown task",
            event.outcome.text,
            event.lateness / SECOND,
            event.task_id,
            event.attempt,
            f"; passed over: {at_least}{passed}" if passed else "",
            f"; {event.detail}" if event.detail else "",
        )

    def _level(self, event: Event) -> int:
        level = LEVELS.get(event.outcome.reason, logging.INFO)
        if event.outcome.reason is not Reason.NOT_SENT:
            self._silent.discard(event.tick.entry)
            return level
        if event.tick.entry in self._silent:
            return logging.INFO
        self._silent.add(event.tick.entry)
        return level
