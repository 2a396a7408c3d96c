"""The line, from a due tick to its settlement; it knows neither Redis nor Celery's scheduler.

now ──▶ due ticks ──▶ claims ──▶ messages ──▶ settlements
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.headers import message_for
from celery_redlock_beat.due import PAUSED_PAUSE
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    DeliveryImpossible,
    LedgerError,
)
from celery_redlock_beat.ledger import (
    MOST_PER_CALL,
    Ask,
    Closing,
    Grant,
    Memory,
    Registration,
    Release,
    Settlement,
    Verdict,
)
from celery_redlock_beat.ticks import SECOND, SENT, Event, Outcome, Reason, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.delivery import Delivery
    from celery_redlock_beat.due import DueQueue, Slot
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.ledger import Answer, Claimed, Ledger, Orphan
    from celery_redlock_beat.ticks import Micros, Tick

MOST_ATTEMPTS = 5
ORPHAN_LEASES = 10
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
        entry_of: Callable[[str], RedlockEntry | None],
        *,
        namespace: str,
        lease: Micros,
        observe: Callable[[Event], None],
    ) -> None:
        self.ledger = ledger
        self.delivery = delivery
        self.clock = clock
        self.due = due
        self.entry_of = entry_of
        self.namespace = namespace
        self.lease = lease
        self.observe = observe
        self.unregistered: dict[str, Registration] = {}
        self.held: dict[Tick, Grant] = {}
        self.trying: dict[Tick, Grant] = {}
        self.unsettled: dict[Tick, tuple[Settlement, Event]] = {}
        self.marks: dict[str, Micros] = {}
        self._orphans: list[Orphan] = []
        self._cursor = 0
        self._next_deadline: Micros | None = None
        self._pace: Micros = 0
        self._can_send = False

    def step(self) -> bool:
        """Go along the line once, for a bounded number of ticks; return whether more is waiting.

        Raises:
            LedgerError: the ledger could not be asked; what is held and unsettled is kept.
        """
        # A grant that was tried without an answer is dropped: the ledger knows what became of it.
        self.trying.clear()
        self._register()
        self._settle()
        self._can_send = self.clock.is_known and self.delivery.ready()
        adopted, due = self._asks() if self._can_send else ([], [])
        self._learn(self.ledger.claim(adopted + due, self._cursor))
        granted = list(self.held.values())
        for grant in granted:
            self._try_to_finish(grant)
        self._settle()
        found_orphans = self._can_send and not adopted and bool(self._orphans)
        return found_orphans or bool(granted or due)

    def next_look(self) -> Micros:
        """Return how long nothing is going to be due, and no lease known to us ends."""
        if not self._can_send:
            return RETRY
        now = self.clock.now()
        instants = [self.due.next_look(), self._next_deadline]
        soonest = min((at for at in instants if at is not None), default=now + SECOND)
        return max(MOMENT, soonest - now)

    def memories(self) -> list[Memory]:
        """Return what this node remembers, to push when the server may have lost data."""
        known = {slot.name: slot for slot in self.due}
        return [
            Memory(name, mark, known[name].since, known[name].timetable.fingerprint)
            if name in known
            else Memory(name, mark)
            for name, mark in self.marks.items()
        ]

    def leave(self, ledger: Ledger) -> None:
        """Give back over ``ledger``, a connection of its own, all that others would wait for."""
        published = [settlement for settlement, _ in self.unsettled.values()]
        unsent = [*self.held.values(), *self.trying.values()]
        self.held, self.trying, self.unsettled = {}, {}, {}
        if published:
            ledger.settle(published)
        if unsent:
            ledger.release(unsent, 0, Release.UNTRIED)

    def _register(self) -> None:
        while self.unregistered:
            chunk = list(self.unregistered.values())[:MOST_PER_CALL]
            for record in self.ledger.register(chunk):
                del self.unregistered[record.entry]
                self.marks[record.entry] = max(record.mark, self.marks.get(record.entry, 0))
                slot = self.due.get(record.entry)
                if slot:
                    slot.since = record.since
                    self.due.advance(record.entry, record.mark)

    def _asks(self) -> tuple[list[Ask], list[Ask]]:
        most = self._most()
        adopted = [Ask(orphan.tick, orphan.tick.at) for orphan in self._orphans[:most]]
        return adopted, self.due.asks(self.clock.now(), most - len(adopted))

    def _most(self) -> int:
        # As many as can be sent within half a lease at the pace of the last ones.
        affordable = self.lease // 2 // self._pace if self._pace else MOST_PER_CALL
        return max(1, min(MOST_PER_CALL, affordable) - len(self.held))

    def _can_finish(self, orphan: Orphan) -> bool:
        if self.entry_of(orphan.tick.entry):
            return True
        return self.clock.now() - orphan.free_since > ORPHAN_LEASES * self.lease

    def _learn(self, claimed: Claimed) -> None:
        self._orphans = [orphan for orphan in claimed.orphans if self._can_finish(orphan)]
        self._cursor = claimed.cursor
        self._next_deadline = claimed.next_deadline
        for answer in claimed.answers:
            self._learn_one(answer, claimed.now)

    def _learn_one(self, answer: Answer, now: Micros) -> None:
        name, slot = answer.tick.entry, self.due.get(answer.tick.entry)
        if answer.verdict is Verdict.UNREGISTERED:
            if slot:
                self.unregistered[name] = Registration(name, slot.timetable.fingerprint)
            return
        self.marks[name] = max(answer.mark, self.marks.get(name, 0))
        if answer.verdict is Verdict.EARLY:
            self.due.defer(name, now + answer.wait)
        elif answer.verdict is Verdict.PAUSED:
            self.due.defer(name, now + PAUSED_PAUSE)
        else:
            self.due.advance(name, answer.mark)
        if answer.grant:
            self.held[answer.tick] = answer.grant

    def _try_to_finish(self, grant: Grant) -> None:
        if grant.tick not in self.held:
            return  # given back meanwhile: this node is leaving
        try:
            self._finish(grant)
        except LedgerError:
            raise
        except Exception as exc:
            # A schedule or an entry is user code: it must not stop the others.
            logger.exception("%s failed", grant.tick)
            self._conclude(grant, skipped(Reason.ERROR), {}, repr(exc))

    def _finish(self, grant: Grant) -> None:
        started = self.clock.now()
        if started >= grant.deadline:
            # Whoever comes next adopts it; that may well be us.
            del self.held[grant.tick]
            return
        entry, slot = self.entry_of(grant.tick.entry), self.due.get(grant.tick.entry)
        passed = slot.passed_over(grant.previous, grant.tick.at) if slot else {}
        reason = self._refusal(grant, entry, slot)
        if reason:
            self._conclude(grant, skipped(reason), passed)
        elif entry:
            self._deliver(grant, entry, passed)
            self._pace = (self._pace + self.clock.now() - started) // 2

    def _refusal(
        self, grant: Grant, entry: RedlockEntry | None, slot: Slot | None
    ) -> Reason | None:
        if entry is None or slot is None:
            return Reason.UNKNOWN_ENTRY
        if grant.attempt > MOST_ATTEMPTS:
            return Reason.ATTEMPTS
        if grant.waited and self.due.is_superseded(slot, grant.tick.at):
            return Reason.SUPERSEDED
        return slot.refusal(grant.tick.at, self.clock.now())

    def _deliver(self, grant: Grant, entry: RedlockEntry, passed: Mapping[Reason, int]) -> None:
        message = message_for(entry, grant, self.namespace, sum(passed.values()))
        self.trying[grant.tick] = self.held.pop(grant.tick)
        try:
            delivered = self.delivery.deliver(grant, message, passed)
        except BrokerUnreachable as exc:
            self._give_back(grant, BACK_OFF, Release.UNREACHABLE, exc)
        except DeliveryFailed as exc:
            back_off = min(BACK_OFF << grant.attempt, MOST_BACK_OFF)
            self._give_back(grant, back_off, Release.FAILED, exc)
        except DeliveryImpossible as exc:
            self._conclude(grant, skipped(Reason.ERROR), passed, str(exc))
        else:
            self._note(delivered, grant, passed)
        # Not in a finally: whoever leaves in the middle of this gives it back.
        self.trying.clear()

    def _note(self, delivered: Delivered, grant: Grant, passed: Mapping[Reason, int]) -> None:
        if delivered is Delivered.SETTLED:
            self._tell(self._event(grant, SENT, passed))
        elif delivered is Delivered.PUBLISHED:
            self._conclude(grant, SENT, passed)
            self._settle()
        elif delivered is Delivered.NOTHING:
            self._conclude(grant, skipped(Reason.NOT_SENT), passed, "no message came of it")

    def _conclude(
        self, grant: Grant, outcome: Outcome, passed: Mapping[Reason, int], detail: str = ""
    ) -> None:
        self.held.pop(grant.tick, None)
        event = self._event(grant, outcome, passed, detail)
        self.unsettled[grant.tick] = Settlement(grant, outcome, passed), event

    def _settle(self) -> None:
        if not self.unsettled:
            return
        settling = list(self.unsettled.values())
        closings = self.ledger.settle([settlement for settlement, _ in settling])
        for (settlement, event), closing in zip(settling, closings, strict=True):
            self._closed(settlement, event, closing)

    def _closed(self, settlement: Settlement, event: Event, closing: Closing) -> None:
        del self.unsettled[settlement.grant.tick]
        if closing.stands:
            self._tell(event)
        else:
            logger.warning("%s: another node took it over before it was settled", event.tick)

    def _tell(self, event: Event) -> None:
        try:
            self.observe(event)
        except Exception:
            logger.exception("%s: an observer failed", event.tick)

    def _give_back(self, grant: Grant, back_off: Micros, why: Release, exc: Exception) -> None:
        logger.warning("%s: not sent, will be tried again: %s", grant.tick, exc)
        self.ledger.release([grant], back_off, why)

    def _event(
        self, grant: Grant, outcome: Outcome, passed: Mapping[Reason, int], detail: str = ""
    ) -> Event:
        entry = self.entry_of(grant.tick.entry)
        return Event(
            tick=grant.tick,
            outcome=outcome,
            task=entry.task if entry else "",
            task_id=grant.tick.task_id(self.namespace),
            attempt=grant.attempt,
            lateness=self.clock.now() - grant.tick.at,
            passed_over=passed,
            detail=detail,
        )
