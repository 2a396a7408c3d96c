"""Send Celery's kind of signal for each outcome; what receivers do is theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.observers.facts import action_of, facts_of, is_late, is_taken_over
from celery_redlock_beat.signals import (
    tick_in_doubt,
    tick_late,
    tick_sent,
    tick_skipped,
    tick_taken_over,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery.utils.dispatch import Signal

    from celery_redlock_beat.ticks import Event

ALWAYS = {"sent": tick_sent, "skipped": tick_skipped, "in_doubt": tick_in_doubt}


class Receivers:
    """Send the signals of an outcome, in this process, one receiver after the other.

    One that raises is logged by Celery and stops nobody. One that is slow holds up this node: once
    the leases of the ticks that it still holds are over, others take them over.
    """

    def __call__(self, event: Event, node: str) -> None:
        """Send the signals of one outcome of ``node``."""
        heard = [signal for signal in _signals_of(event) if signal.receivers]
        if heard:
            facts = facts_of(event, node)
            for signal in heard:
                signal.send(sender=event.tick.entry, event=event, **facts)


def _signals_of(event: Event) -> Iterator[Signal]:
    yield ALWAYS[action_of(event)]
    if is_late(event):
        yield tick_late
    if is_taken_over(event):
        yield tick_taken_over
