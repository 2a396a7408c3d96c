"""What a node has in hand: grants, the one it tries, outcomes to settle; it decides nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Release, Settlement

if TYPE_CHECKING:
    from celery_redlock_beat.ledger import Grant, Ledger
    from celery_redlock_beat.ticks import Event, Micros, Tick

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Hand:
    """A node's grants and outcomes between the answers of the ledger.

    ``held`` grants are not tried yet; ``until`` is the monotonic instant up to which each may be.
    A grant that was tried without an answer is dropped: the ledger knows what became of it.
    """

    held: dict[Tick, Grant] = field(default_factory=dict)
    until: dict[Tick, Micros] = field(default_factory=dict)
    trying: Grant | None = None
    unsettled: dict[Tick, tuple[Settlement, Event]] = field(default_factory=dict)

    def take(self, grant: Grant, until: Micros) -> None:
        """Hold a grant until the monotonic instant at which its lease is surely alive no more."""
        self.held[grant.tick] = grant
        self.until[grant.tick] = until

    def drop(self, tick: Tick) -> None:
        """Hold a grant no longer."""
        self.held.pop(tick, None)
        self.until.pop(tick, None)

    def expired(self, now: Micros) -> list[Grant]:
        """Return the held grants whose lease is over at a monotonic instant."""
        return [grant for tick, grant in self.held.items() if self.until[tick] <= now]

    def conclude(self, settlement: Settlement, event: Event) -> None:
        """Keep an outcome until the ledger has written it down."""
        self.drop(settlement.grant.tick)
        self.unsettled[settlement.grant.tick] = settlement, event

    def outcomes(self) -> list[Settlement]:
        """Return the outcomes that the ledger has not confirmed yet."""
        return [settlement for settlement, _ in self.unsettled.values()]

    def settle(self, ledger: Ledger) -> list[tuple[Settlement, Event]]:
        """Have the ledger write the outcomes down; return those that stand, with their events."""
        settling = list(self.unsettled.values())
        if not settling:
            return []
        closings = ledger.settle(self.outcomes())
        self.unsettled.clear()
        standing = []
        for (settlement, event), closing in zip(settling, closings, strict=True):
            if closing.stands:
                standing.append((settlement, event))
            else:
                logger.warning("%s: the ledger knows its grant no more", event.tick)
        return standing

    def give_back(self, ledger: Ledger) -> None:
        """Settle and release all of it, so that nobody waits for a lease; then hold nothing."""
        published = self.outcomes()
        unsent = [*self.held.values(), *([self.trying] if self.trying else [])]
        self.held, self.until, self.trying, self.unsettled = {}, {}, None, {}
        if published:
            ledger.settle(published)
        if unsent:
            ledger.release(unsent, 0, Release.UNTRIED)

    def __bool__(self) -> bool:
        return bool(self.held or self.trying or self.unsettled)
