"""Write outcomes to the log, one line per tick that was settled; it keeps nothing."""

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
}


def write(event: Event) -> None:
    """Log the outcome of a tick, with what was passed over and why."""
    passed = ", ".join(f"{number} {reason}" for reason, number in event.passed_over.items())
    logger.log(
        LEVELS.get(event.outcome.reason, logging.INFO),
        "%s (%s): %s %.3f s after its instant, id %s, attempt %d%s%s",
        event.tick,
        event.task or "unknown task",
        event.outcome.text,
        event.lateness / SECOND,
        event.task_id,
        event.attempt,
        f"; passed over: {passed}" if passed else "",
        f"; {event.detail}" if event.detail else "",
    )
