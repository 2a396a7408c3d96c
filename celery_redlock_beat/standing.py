"""Whether what is in hand may still be sent, where the ledger does not push it; it sends nothing.

A message that the ledger pushes itself is not pushed once its entry is paused or removed. Any other
broker takes what it is given: so this node looks in between, and of what it was granted together no
entry gets two messages without a look. So one at most is under way when a pause has returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Release
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.hand import Hand
    from celery_redlock_beat.ledger import Grant, Ledger
    from celery_redlock_beat.ticks import Micros

LOOKED: Micros = SECOND // 10
"""How long a look holds for entries that were sent nothing since."""


class Standing:
    """Look now and then whether grants in hand are in force, and give back those that are not."""

    def __init__(self, ledger: Ledger, hand: Hand, monotonic: Callable[[], Micros]) -> None:
        self._ledger = ledger
        self._hand = hand
        self._monotonic = monotonic
        self._looked_at: Micros | None = None
        self._tried: set[str] = set()

    def begin(self) -> None:
        """Learn that more is about to be asked for; that tells nothing of what is in hand."""
        self._tried.clear()
        self._looked_at = None if self._hand.held else self._monotonic()

    def allows(self, grant: Grant) -> bool:
        """Return whether a grant may be tried now.

        Raises:
            LedgerError: the ledger could not be asked; all is kept.
        """
        known = self._looked_at is not None and self._monotonic() - self._looked_at <= LOOKED
        if not known or grant.tick.entry in self._tried:
            self._look()
        self._tried.add(grant.tick.entry)
        return grant.tick in self._hand.held

    def _look(self) -> None:
        self._tried.clear()
        self._looked_at = self._monotonic()
        held = list(self._hand.held.values())
        looks = self._ledger.look(list(dict.fromkeys(grant.tick.entry for grant in held)))
        in_force = {
            (each.tick, each.fence) for look in looks if not look.pause for each in look.open
        }
        fallen = [grant for grant in held if (grant.tick, grant.fence) not in in_force]
        if fallen:
            # First, and only then dropped: a ledger that has lost its data must hear of them.
            self._ledger.release(fallen, 0, Release.UNTRIED)
        for grant in fallen:
            self._hand.drop(grant.tick)
