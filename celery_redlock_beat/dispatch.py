"""The line, from a due tick to its settlement; it knows neither Redis nor Celery's scheduler.

now ──▶ due ticks ──▶ claims ──▶ messages ──▶ settlements
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.claims import Claims
from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.headers import message_for
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    DeliveryImpossible,
    LedgerError,
    LedgerRecovering,
)
from celery_redlock_beat.feed import Feed
from celery_redlock_beat.hand import Hand
from celery_redlock_beat.lateness import NONE_PASSED_OVER
from celery_redlock_beat.ledger import MOST_PER_CALL, Grant, Release, Settlement
from celery_redlock_beat.ledger.steering import Change, Kind
from celery_redlock_beat.orphans import MOST_ATTEMPTS
from celery_redlock_beat.recovery import Testifier
from celery_redlock_beat.standing import Standing
from celery_redlock_beat.telling import Teller
from celery_redlock_beat.ticks import SECOND, SENT, Outcome, Reason, skipped
from celery_redlock_beat.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.delivery import Delivery
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.host import Host
    from celery_redlock_beat.lateness import PassedOver, Slot
    from celery_redlock_beat.ledger import Ledger
    from celery_redlock_beat.ticks import Micros

FIRST_CLAIM = 10
"""Ticks in a claim as long as it is not known how long a message takes."""
RETRY: Micros = SECOND // 10
"""How soon to look again whether the broker is back."""
MOMENT: Micros = 1000
BACK_OFF: Micros = SECOND // 2
MOST_BACK_OFF: Micros = 30 * SECOND

logger = logging.getLogger(__name__)


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
        self.entry_of = host.entry_of
        self.namespace = namespace
        self.lease = lease
        self.hand = Hand()
        self.standing = Standing(ledger, self.hand, clock.monotonic)
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
            lambda name: host.entry_of(name) is not None,
            host.tell,
        )
        self._take = host.take
        self.teller = Teller(host.observe, host.entry_of, due, clock, namespace)
        self.testifier = Testifier(
            ledger, self.witness, due, self.hand, self.claims, self.teller.doubt
        )
        self._pace: Micros = 0
        self.can_send = False
        self._unanswered = False

    def step(self, ends: Micros) -> bool:
        """Go along the line once, until a monotonic instant; return whether more is waiting.

        Raises:
            LedgerError: the ledger could not be asked, or must hear what this node remembers; what
                is held and unsettled is kept.
        """
        # A grant that was tried without an answer is dropped: the ledger knows what became of it.
        self.hand.trying = None
        self._unanswered = False
        if not self.claims.register(ends):
            return True
        self.claims.attend()
        # Before the claim: what was published here must not come back as an orphan.
        self._settle()
        self.can_send = self.clock.is_known and self.delivery.ready()
        self.standing.begin()
        more = self.claims.claim(self._room(), can_send=self.can_send)
        if self.claims.tell_again():
            raise LedgerRecovering("an entry's record was lost")
        news = self.feed.follow()
        self.claims.pauses.end_those_over()
        tried = self._try_all(ends)
        self._settle()
        return more or tried or news

    def _learn(self, change: Change) -> None:
        if change.kind is Kind.PAUSE:
            self.claims.pauses.learn(change)
        else:
            self._take(change)

    def next_look(self) -> Micros:
        """Return how long nothing is going to be due, and no lease known to us ends."""
        if not self.can_send:
            return RETRY
        now, instant = self.clock.now(), self.claims.next_look()
        return SECOND if instant is None else max(MOMENT, instant - now)

    def _room(self) -> int:
        # As many as can be sent within half a lease at the pace of the last ones.
        affordable = max(1, self.lease // 2 // self._pace) if self._pace else FIRST_CLAIM
        return min(MOST_PER_CALL, affordable) - len(self.hand.held)

    def _try_all(self, ends: Micros) -> bool:
        """Try what is held until ``ends``; return whether there was anything to try."""
        self._drop_what_is_not_for_us()
        granted = list(self.hand.held.values())
        for grant in granted:
            if self.clock.monotonic() >= ends:
                break
            # Or it was given back: this node is leaving, or nothing of its entry may be sent.
            if grant.tick in self.hand.held and self._may_try(grant):
                self._try(grant)
        return bool(granted)

    def _may_try(self, grant: Grant) -> bool:
        # What the ledger pushes, it looks at itself.
        return self.delivery.shares_ledger or self.standing.allows(grant)

    def _drop_what_is_not_for_us(self) -> None:
        """Release grants whose lease is over, or whose entry is gone here: they were not tried."""
        # Too late for a reason that lies with the broker or the ledger: a newer tick may win.
        self._release(self.hand.expired(self.clock.monotonic()), Release.UNREACHABLE)
        foreign = [
            grant
            for tick, grant in self.hand.held.items()
            if not (self.entry_of(tick.entry) or self.claims.orphans.is_forlorn(tick))
        ]
        self._release(foreign, Release.UNTRIED)

    def _release(self, grants: Sequence[Grant], why: Release) -> None:
        for grant in grants:
            self.hand.drop(grant.tick)
        if grants:
            self.ledger.release(grants, 0, why)

    def _try(self, grant: Grant) -> None:
        started = self.clock.monotonic()
        try:
            self._finish(grant)
        except LedgerError:
            raise
        except Exception as exc:
            # A schedule or an entry is user code: it must not stop the others.
            logger.exception("%s failed", grant.tick)
            self._conclude(grant, skipped(Reason.ERROR), NONE_PASSED_OVER, repr(exc))
        self._pace = (self._pace + self.clock.monotonic() - started + 1) // 2

    def _finish(self, grant: Grant) -> None:
        entry, slot = self.entry_of(grant.tick.entry), self.due.get(grant.tick.entry)
        passed = NONE_PASSED_OVER
        if slot:
            passed = slot.passed_over(grant.previous, grant.tick.at)
        reason = self._refusal(grant, slot)
        if self.witness.has_published(grant.tick):
            # It was slow, and lost the grant before it could settle: the message is out.
            self._conclude(grant, SENT, passed)
        elif reason:
            self._conclude(grant, skipped(reason), passed)
        elif entry:
            self._deliver(grant, entry, slot, passed)

    def _refusal(self, grant: Grant, slot: Slot | None) -> Reason | None:
        if grant.attempt > MOST_ATTEMPTS:
            return Reason.ATTEMPTS
        if grant.unwanted:
            return Reason.OPERATOR
        if slot is None:
            return Reason.UNKNOWN_ENTRY
        if grant.waited and self.due.is_superseded(slot, grant.tick.at):
            return Reason.SUPERSEDED
        return slot.refusal(grant.tick.at, self.clock.now())

    def _deliver(
        self, grant: Grant, entry: RedlockEntry, slot: Slot | None, passed: PassedOver
    ) -> None:
        expires = slot.expires_at(grant.tick.at, self.clock.now()) if slot else None
        message = message_for(entry, grant, self.namespace, passed, expires)
        until = self.hand.until[grant.tick]
        if until <= self.clock.monotonic():
            return  # counting took too long; it is released with the next step
        self.hand.drop(grant.tick)
        self.hand.trying = grant
        try:
            delivered = self.delivery.deliver(grant, message, passed.counts)
        except BrokerUnreachable as exc:
            self._give_back(grant, BACK_OFF, Release.UNREACHABLE, exc)
        except DeliveryFailed as exc:
            back_off = min(BACK_OFF << grant.attempt, MOST_BACK_OFF)
            self._give_back(grant, back_off, Release.FAILED, exc)
        except DeliveryImpossible as exc:
            self._conclude(grant, skipped(Reason.ERROR), passed, str(exc))
        except LedgerError as exc:
            if exc.undone:
                self.hand.take(grant, until)  # it was not tried
                raise
            self.witness.tried(grant, passed.counts)
            self._bear(grant, exc)
        else:
            self._note(delivered, grant, passed)
            self._unanswered = False
        # Not in a finally: whoever leaves in the middle of this gives it back.
        self.hand.trying = None

    def _bear(self, grant: Grant, exc: LedgerError) -> None:
        # One message may be too much for the server, or for the timeout; two in a row, it is away.
        if self._unanswered:
            raise exc
        self._unanswered = True
        logger.info("%s: no answer, the ledger knows what became of it: %s", grant.tick, exc)

    def _note(self, delivered: Delivered, grant: Grant, passed: PassedOver) -> None:
        if delivered is Delivered.SETTLED:
            if self.delivery.shares_ledger:
                self.witness.pushed(grant, passed.counts)
            else:
                self.witness.settled(Settlement(grant, SENT, passed.counts))
            self.teller.tell(self.teller.event(grant, SENT, passed))
        elif delivered is Delivered.UNSENT:
            self.witness.settled(Settlement(grant, SENT, passed.counts))
        elif delivered is Delivered.PUBLISHED:
            self.witness.published(grant, passed.counts)
            self._conclude(grant, SENT, passed)
            self._settle()
        elif delivered is Delivered.NOTHING:
            self._conclude(grant, skipped(Reason.NOT_SENT), passed, "no message came of it")
        elif delivered is Delivered.PAUSED:
            # It counts as not tried, and is anybody's once the entry is resumed.
            self.ledger.release([grant], 0, Release.UNTRIED)
        else:
            logger.info("%s: nothing was sent here: %s", grant.tick, delivered)

    def _conclude(
        self, grant: Grant, outcome: Outcome, passed: PassedOver, detail: str = ""
    ) -> None:
        event = self.teller.event(grant, outcome, passed, detail)
        self.claims.orphans.forget(grant.tick)
        self.hand.conclude(Settlement(grant, outcome, passed.counts, detail), event)

    def _settle(self) -> None:
        for settlement, event in self.hand.settle(self.ledger):
            self.witness.settled(settlement)
            self.teller.tell(event)

    def _give_back(self, grant: Grant, back_off: Micros, why: Release, exc: Exception) -> None:
        # That the broker is away was told, once; there may be many ticks.
        level = logging.DEBUG if why is Release.UNREACHABLE else logging.WARNING
        logger.log(level, "%s: not sent, will be tried again: %s", grant.tick, exc)
        self.ledger.release([grant], back_off, why)
