"""What observers are told of ticks; it settles none, and no observer stops the line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.delivery.headers import task_id_of
from celery_redlock_beat.lateness import NONE_PASSED_OVER
from celery_redlock_beat.ledger import Grant
from celery_redlock_beat.ticks import IN_DOUBT, Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.lateness import PassedOver
    from celery_redlock_beat.ticks import Outcome, Tick

logger = logging.getLogger(__name__)


class Teller:
    """Make an event of an outcome, and tell it."""

    def __init__(
        self,
        observe: Callable[[Event], None],
        entry_of: Callable[[str], RedlockEntry | None],
        due: DueQueue,
        clock: LedgerClock,
        namespace: str,
    ) -> None:
        self.observe = observe
        self._entry_of = entry_of
        self._due = due
        self._clock = clock
        self._namespace = namespace

    def event(self, grant: Grant, outcome: Outcome, passed: PassedOver, detail: str = "") -> Event:
        """Return what there is to tell of a grant, as of now."""
        entry, slot = self._entry_of(grant.tick.entry), self._due.get(grant.tick.entry)
        due_at = slot.due_at(grant.tick.at) if slot else grant.tick.at
        return Event(
            tick=grant.tick,
            outcome=outcome,
            task=entry.task if entry else "",
            task_id=task_id_of(entry, grant.tick, self._namespace),
            attempt=grant.attempt,
            lateness=self._clock.now() - due_at,
            passed_over=passed.counts,
            passed_over_exact=passed.exact,
            detail=detail,
        )

    def tell(self, event: Event) -> None:
        """Tell one event."""
        try:
            self.observe(event)
        except Exception:
            logger.exception("%s: an observer failed", event.tick)

    def doubt(self, tick: Tick) -> None:
        """Tell of a tick of which nobody knows what became of it."""
        unknown = Grant(tick, fence=0, attempt=0, previous=tick.at, deadline=0)
        why = "the ledger has lost what it knew of it"
        self.tell(self.event(unknown, IN_DOUBT, NONE_PASSED_OVER, why))
