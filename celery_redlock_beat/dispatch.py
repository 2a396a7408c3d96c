"""The line, from a due tick to its settlement; it knows neither Redis nor Celery's scheduler.

now ──▶ due ticks ──▶ claims ──▶ messages ──▶ settlements
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.attempts import Attempts
from celery_redlock_beat.claims import Claims
from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.feed import Feed
from celery_redlock_beat.hand import Hand
from celery_redlock_beat.ledger import MOST_PER_CALL
from celery_redlock_beat.ledger.steering import Change, Kind
from celery_redlock_beat.recovery import Testifier
from celery_redlock_beat.telling import Teller
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.witness import Witness

if TYPE_CHECKING:
    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.delivery import Delivery
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.host import Host
    from celery_redlock_beat.ledger import Ledger
    from celery_redlock_beat.ticks import Micros

FIRST_CLAIM = 10
"""Ticks in a claim as long as it is not known how long a message takes."""
RETRY: Micros = SECOND // 10
"""How soon to look again whether the broker is back."""
MOMENT: Micros = 1000


class Dispatcher:
    """One node's work: claim what is due, send what was granted, settle what was sent."""

    def __init__(
        self,
        ledger: Ledger,
        delivery: Delivery,
        clock: LedgerClock,
        due: DueQueue,
        host: Host,
        *,
        namespace: str,
        lease: Micros,
    ) -> None:
        self.ledger = ledger
        self.delivery = delivery
        self.clock = clock
        self.due = due
        self.lease = lease
        self.hand = Hand()
        self.witness = Witness(loses_messages=delivery.shares_ledger)
        self.feed = Feed(ledger, self._learn, clock.monotonic)
        self.claims = Claims(
            ledger,
            clock,
            due,
            self.hand,
            self.witness,
            self.feed,
            lease,
            host,
        )
        self._take = host.take
        self.last_run = host.last_run
        self._may_send = host.may_send
        self._stepped = host.stepped
        self.teller = Teller(host.observe, host.entry_of, due, clock, namespace)
        self.testifier = Testifier(
            ledger, self.witness, due, self.hand, self.claims, self.teller.doubt
        )
        self.attempts = Attempts(self.claims, delivery, self.teller, host.entry_of, namespace)
        self.can_send = False
        self._stands_by = False

    def step(self, ends: Micros) -> bool:
        """Go along the line once, until a monotonic instant; return whether more is waiting.

        Raises:
            LedgerError: the ledger could not be asked, or must hear what this node remembers; what
                is held and unsettled is kept.
        """
        self.attempts.begin()
        self._stands_by = not self._may_send()
        if self._stands_by:
            return self._stand_by()
        if not self.claims.register(ends):
            return True
        self.claims.attend()
        # Before the claim: what was published here must not come back as an orphan.
        self.attempts.settle()
        self.can_send = self.clock.is_known and self.delivery.ready()
        self.attempts.expect_grants()
        more = self.claims.claim(self._room(), can_send=self.can_send)
        if self.claims.tell_again():
            raise LedgerRecovering("an entry's record was lost")
        news = self.feed.follow()
        self.claims.pauses.end_those_over()
        tried = self.attempts.try_all(ends)
        self.attempts.settle()
        self._stepped(self.witness.settled_by_entry)
        return more or tried or news

    def _stand_by(self) -> bool:
        """Ask for nothing, and keep up with the others: it is another scheduler's turn."""
        self.hand.give_back(self.ledger)
        self.can_send = True
        self.claims.claim(0, can_send=False)
        return self.feed.follow()

    def _learn(self, change: Change) -> None:
        if change.kind is Kind.PAUSE:
            self.claims.pauses.learn(change)
        else:
            self._take(change)

    def next_look(self) -> Micros:
        """Return how long nothing is going to be due, and no lease known to us ends."""
        if self._stands_by:
            return SECOND
        if not self.can_send:
            return RETRY
        now, instant = self.clock.now(), self.claims.next_look()
        return SECOND if instant is None else max(MOMENT, instant - now)

    def _room(self) -> int:
        # As many as can be sent within half a lease at the pace of the last ones.
        pace = self.attempts.pace
        affordable = max(1, self.lease // 2 // pace) if pace else FIRST_CLAIM
        return min(MOST_PER_CALL, affordable) - len(self.hand.held)
