"""The second half of the line, from a grant in hand to its outcome; it claims nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.headers import message_for
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    DeliveryImpossible,
    LedgerError,
)
from celery_redlock_beat.lateness import NONE_PASSED_OVER
from celery_redlock_beat.ledger import Release, Settlement
from celery_redlock_beat.orphans import MOST_ATTEMPTS
from celery_redlock_beat.standing import Standing
from celery_redlock_beat.ticks import SECOND, SENT, Micros, Outcome, Reason, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.claims import Claims
    from celery_redlock_beat.delivery import Delivery
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.lateness import PassedOver, Slot
    from celery_redlock_beat.ledger import Grant
    from celery_redlock_beat.telling import Teller

BACK_OFF: Micros = SECOND // 2
MOST_BACK_OFF: Micros = 30 * SECOND

logger = logging.getLogger(__name__)


class Attempts:
    """Try what the claims have brought in hand: refuse it, send it, or give it back.

    ``pace`` is how long one takes, about.
    """

    def __init__(
        self,
        claims: Claims,
        delivery: Delivery,
        teller: Teller,
        entry_of: Callable[[str], RedlockEntry | None],
        namespace: str,
    ) -> None:
        self._ledger = claims.ledger
        self._clock = claims.clock
        self._due = claims.due
        self._hand = claims.hand
        self._witness = claims.witness
        self._orphans = claims.orphans
        self._delivery = delivery
        self._teller = teller
        self._entry_of = entry_of
        self._namespace = namespace
        self._standing = Standing(self._ledger, self._hand, self._clock.monotonic)
        self._unanswered = False
        self.pace: Micros = 0

    def begin(self) -> None:
        """Begin a step along the line: what is in hand now was held before it."""
        # A grant that was tried without an answer is dropped: the ledger knows what became of it.
        self._hand.trying = None
        self._unanswered = False

    def expect_grants(self) -> None:
        """Learn that the ledger is about to be asked for more."""
        self._standing.begin()

    def try_all(self, ends: Micros) -> bool:
        """Try what is held until a monotonic instant; return whether there was anything to try.

        Raises:
            LedgerError: the ledger could not be asked; what is held and unsettled is kept.
        """
        self._drop_what_is_not_for_us()
        granted = list(self._hand.held.values())
        for grant in granted:
            if self._clock.monotonic() >= ends:
                break
            # Or it was given back: this node is leaving, or nothing of its entry may be sent.
            if grant.tick in self._hand.held and self._may_try(grant):
                self._try(grant)
        return bool(granted)

    def _may_try(self, grant: Grant) -> bool:
        # What the ledger pushes, it looks at itself.
        return self._delivery.shares_ledger or self._standing.allows(grant)

    def _drop_what_is_not_for_us(self) -> None:
        """Release grants whose lease is over, or whose entry is gone here: they were not tried."""
        # Too late for a reason that lies with the broker or the ledger: a newer tick may win.
        self._release(self._hand.expired(self._clock.monotonic()), Release.UNREACHABLE)
        foreign = [
            grant
            for tick, grant in self._hand.held.items()
            if not (self._entry_of(tick.entry) or self._orphans.is_forlorn(tick))
        ]
        self._release(foreign, Release.UNTRIED)

    def _release(self, grants: Sequence[Grant], why: Release) -> None:
        for grant in grants:
            self._hand.drop(grant.tick)
        if grants:
            self._ledger.release(grants, 0, why)

    def _try(self, grant: Grant) -> None:
        started = self._clock.monotonic()
        try:
            self._finish(grant)
        except LedgerError:
            raise
        except Exception as exc:
            # A schedule or an entry is user code: it must not stop the others.
            logger.exception("%s failed", grant.tick)
            self._conclude(grant, skipped(Reason.ERROR), NONE_PASSED_OVER, repr(exc))
        self.pace = (self.pace + self._clock.monotonic() - started + 1) // 2

    def _finish(self, grant: Grant) -> None:
        entry, slot = self._entry_of(grant.tick.entry), self._due.get(grant.tick.entry)
        passed = NONE_PASSED_OVER
        if slot:
            passed = slot.passed_over(grant.previous, grant.tick.at)
        reason = self._refusal(grant, slot)
        if self._witness.has_published(grant.tick):
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
        if grant.waited and self._due.is_superseded(slot, grant.tick.at):
            return Reason.SUPERSEDED
        return slot.refusal(grant.tick.at, self._clock.now())

    def _deliver(
        self, grant: Grant, entry: RedlockEntry, slot: Slot | None, passed: PassedOver
    ) -> None:
        expires = slot.expires_at(grant.tick.at, self._clock.now()) if slot else None
        message = message_for(entry, grant, self._namespace, passed, expires)
        until = self._hand.until[grant.tick]
        if until <= self._clock.monotonic():
            return  # counting took too long; it is released with the next step
        self._hand.drop(grant.tick)
        self._hand.trying = grant
        try:
            delivered = self._delivery.deliver(grant, message, passed.counts)
        except BrokerUnreachable as exc:
            self._give_back(grant, BACK_OFF, Release.UNREACHABLE, exc)
        except DeliveryFailed as exc:
            back_off = min(BACK_OFF << grant.attempt, MOST_BACK_OFF)
            self._give_back(grant, back_off, Release.FAILED, exc)
        except DeliveryImpossible as exc:
            self._conclude(grant, skipped(Reason.ERROR), passed, str(exc))
        except LedgerError as exc:
            if exc.undone:
                self._hand.take(grant, until)  # it was not tried
                raise
            self._witness.tried(grant, passed.counts)
            self._bear(grant, exc)
        else:
            self._note(delivered, grant, passed)
            self._unanswered = False
        # Not in a finally: whoever leaves in the middle of this gives it back.
        self._hand.trying = None

    def _bear(self, grant: Grant, exc: LedgerError) -> None:
        # One message may be too much for the server, or for the timeout; two in a row, it is away.
        if self._unanswered:
            raise exc
        self._unanswered = True
        logger.info("%s: no answer, the ledger knows what became of it: %s", grant.tick, exc)

    def _note(self, delivered: Delivered, grant: Grant, passed: PassedOver) -> None:
        if delivered is Delivered.SETTLED:
            if self._delivery.shares_ledger:
                self._witness.pushed(grant, passed.counts)
            else:
                self._witness.settled(Settlement(grant, SENT, passed.counts))
            self._teller.tell(self._teller.event(grant, SENT, passed))
        elif delivered is Delivered.UNSENT:
            self._witness.settled(Settlement(grant, SENT, passed.counts))
        elif delivered is Delivered.PUBLISHED:
            self._witness.published(grant, passed.counts)
            self._conclude(grant, SENT, passed)
            self.settle()
        elif delivered is Delivered.NOTHING:
            self._conclude(grant, skipped(Reason.NOT_SENT), passed, "no message came of it")
        elif delivered is Delivered.PAUSED:
            # It counts as not tried, and is anybody's once the entry is resumed.
            self._ledger.release([grant], 0, Release.UNTRIED)
        else:
            logger.info("%s: nothing was sent here: %s", grant.tick, delivered)

    def _conclude(
        self, grant: Grant, outcome: Outcome, passed: PassedOver, detail: str = ""
    ) -> None:
        event = self._teller.event(grant, outcome, passed, detail)
        self._orphans.forget(grant.tick)
        self._hand.conclude(Settlement(grant, outcome, passed.counts, detail), event)

    def settle(self) -> None:
        """Have the ledger write down what is concluded, and tell what stands.

        Raises:
            LedgerError: the ledger could not be asked; all is kept.
        """
        for settlement, event in self._hand.settle(self._ledger):
            self._witness.settled(settlement)
            self._teller.tell(event)

    def _give_back(self, grant: Grant, back_off: Micros, why: Release, exc: Exception) -> None:
        # That the broker is away was told, once; there may be many ticks.
        level = logging.DEBUG if why is Release.UNREACHABLE else logging.WARNING
        logger.log(level, "%s: not sent, will be tried again: %s", grant.tick, exc)
        self._ledger.release([grant], back_off, why)
