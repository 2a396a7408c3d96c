"""One node over time: passes of bounded length, outages, recoveries; it never raises."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING

from celery_redlock_beat.claims import registration_of
from celery_redlock_beat.errors import LedgerRecovering, LedgerUnavailable
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from celery_redlock_beat.dispatch import Dispatcher
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ticks import Micros

PASS: Micros = SECOND
"""How long one pass may work before Celery's loop gets its turn."""
MOST_BACK_OFF: Micros = SECOND

logger = logging.getLogger(__name__)


class Node:
    """Run the dispatcher against a ledger that may be away or may have lost its memory."""

    def __init__(
        self, dispatcher: Dispatcher, poll: Micros, on_first_contact: Callable[[], None]
    ) -> None:
        self.dispatcher = dispatcher
        self.poll = poll
        self._on_first_contact = on_first_contact
        self._monotonic = dispatcher.clock.monotonic
        self._away_since: Micros | None = None
        self._told: set[str] = set()
        self._failures = 0
        self._recovering = False
        self._met = False
        self._left = False
        self._recovered_at: Micros = -SECOND

    def put(self, slot: Slot) -> None:
        """Add an entry, or replace it; it is registered in the next pass.

        One that is disabled is registered too, so that it catches up nothing once it is not.
        """
        claims = self.dispatcher.claims
        # Known here, but not in the schedule until now: it was removed and comes back. Where it is
        # stored, the ledger knows that itself.
        is_back = slot.name in claims.witness.marks and slot.name not in claims.due
        again = is_back and slot.revision is None
        if slot.policy.enabled:
            claims.due.put(slot)
        else:
            claims.due.discard(slot.name)
        last_run = self.dispatcher.last_run(slot.name)
        claims.unregistered[slot.name] = registration_of(slot, again=again, last_run=last_run)

    def discard(self, name: str) -> None:
        """Stop sending an entry; its mark is remembered."""
        self.dispatcher.claims.due.discard(name)
        self.dispatcher.claims.unregistered.pop(name, None)

    def forget(self, name: str) -> None:
        """Stop sending a stored entry that was removed, and remember nothing of it."""
        self.discard(name)
        self.dispatcher.claims.witness.forget(name)

    def run(self) -> Micros:
        """Work for at most about a second; return how long to sleep, 0 if more is waiting."""
        ends = self._monotonic() + PASS
        wait: Micros = 0
        while not wait and self._monotonic() < ends:
            try:
                wait = self._step(ends)
            except LedgerRecovering:
                wait = self._recover()
            except LedgerUnavailable as exc:
                wait = self._away(exc)
        return wait

    def settled_by_now(self, entries: Collection[str]) -> dict[str, Micros]:
        """Return up to which instant all ticks of entries are settled, over a new connection.

        Raises:
            LedgerUnavailable: the ledger could not be asked.
        """
        looks = self.dispatcher.ledger.sibling().look(list(entries))
        return {look.entry: look.settled for look in looks if look.record}

    def problems(self) -> dict[str, str]:
        """Return what keeps this node from its work, by kind; without a text, it does not."""
        away = self._away_since is not None
        is_stuck = not (away or self._recovering or self.dispatcher.can_send)
        return {
            "ledger": "the ledger is away, nothing is sent until it is back" if away else "",
            "recovery": "the ledger must first hear what nodes remember" * self._recovering,
            "broker": "the broker is away, nothing is sent until it is back" * is_stuck,
        }

    def leave(self, last_words: str = "") -> None:
        """Give back what this node holds, over a connection of its own; quick, and idempotent."""
        dispatcher, tells = self.dispatcher, self._met and not self._left
        # At most once: a ledger that does not answer must not be waited for twice.
        self._left = True
        try:
            if dispatcher.hand:
                dispatcher.hand.give_back(dispatcher.ledger.sibling())
            if tells:
                dispatcher.ledger.sibling().depart(last_words)
        finally:
            dispatcher.delivery.close()

    def _step(self, ends: Micros) -> Micros:
        more = self.dispatcher.step(ends)
        self._answered()
        return 0 if more else min(self.poll, self.dispatcher.next_look())

    def _recover(self) -> Micros:
        if not self._recovering:
            self._recovering = True
            self.dispatcher.claims.attend_soon()
            logger.info("Telling the ledger what this node remembers before anything is sent.")
            # Exchanges and bindings may be gone as well: they are declared anew.
            self.dispatcher.delivery.reset()
        try:
            wait = self.dispatcher.testifier.testify()
        except LedgerUnavailable as exc:
            return self._away(exc)
        return min(self.poll, wait) or self._pace_recoveries()

    def _pace_recoveries(self) -> Micros:
        """Return how long to wait before the next step: a recovery after each step would spin."""
        now = self._monotonic()
        again = now - self._recovered_at < SECOND
        self._recovered_at = now
        return self._back_off() if again else 0

    def _away(self, exc: LedgerUnavailable) -> Micros:
        if self._away_since is None:
            self._away_since = self._monotonic()
            self.dispatcher.claims.attend_soon()
            logger.error("The ledger is away, nothing is sent until it is back: %s", exc)
        elif exc.advice not in self._told:
            logger.error("The ledger is still away, for another reason: %s", exc)
        else:
            logger.debug("The ledger is still away: %s", exc)
        self._told.add(exc.advice)
        return self._back_off()

    def _back_off(self) -> Micros:
        self._failures += 1
        longest = min(MOST_BACK_OFF, (SECOND // 10) << min(self._failures, 8))
        return random.randint(longest // 2, longest)  # noqa: S311 - jitter, not a secret

    def _answered(self) -> None:
        if self._recovering:
            self._recovering = False
            logger.info("The ledger has heard this node: ticks are claimed from now on.")
        if self._away_since is not None:
            seconds = (self._monotonic() - self._away_since) / SECOND
            logger.warning("The ledger is back after %.1f s.", seconds)
        self._away_since, self._failures = None, 0
        self._told.clear()
        if not self._met:
            self._met = True
            self._on_first_contact()
