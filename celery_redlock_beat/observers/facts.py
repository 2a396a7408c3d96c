"""What there is to tell of an outcome, by name, for every observer alike; it tells nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Event, Micros

LATE: Micros = 10 * SECOND
"""How late a tick may be sent, jitter aside, before that is worth a warning."""


def action_of(event: Event) -> str:
    """Return what became of the tick in one word: ``sent``, ``skipped`` or ``in_doubt``."""
    return event.outcome.text.partition(":")[0]


def is_late(event: Event) -> bool:
    """Whether the tick was sent, and later than it should have been."""
    return event.outcome.reason is None and event.lateness > LATE


def is_taken_over(event: Event) -> bool:
    """Whether the tick was sent after an earlier attempt, here or elsewhere, did not end."""
    return event.outcome.reason is None and event.attempt > 1


def facts_of(event: Event, node: str) -> dict[str, Any]:
    """Return what signals and log records carry of an event.

    ``tick`` is an aware datetime in UTC, ``lateness`` is in seconds; reasons are plain texts.
    """
    return {
        "entry": event.tick.entry,
        "tick": event.tick.instant,
        "task": event.task,
        "task_id": event.task_id,
        "reason": "" if event.outcome.reason is None else event.outcome.reason.value,
        "lateness": event.lateness / SECOND,
        "attempt": event.attempt,
        "passed_over": {reason.value: number for reason, number in event.passed_over.items()},
        "node": node,
    }
