"""The first half of the line, from a due tick to a grant in hand; it sends nothing."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.due import PAUSED_PAUSE
from celery_redlock_beat.ledger import MAY_MISS, MOST_PER_CALL, Memory, Registration, Verdict
from celery_redlock_beat.orphans import Orphans

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.hand import Hand
    from celery_redlock_beat.ledger import Answer, Ask, Claimed, Ledger
    from celery_redlock_beat.ticks import Micros


ATTEND_EVERY: Micros = MAY_MISS // 4


class Claims:
    """What this node asks of the ledger, and what it learns from the answers.

    ``marks`` are all that it was ever answered, also for entries that it has no more.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: LedgerClock,
        due: DueQueue,
        hand: Hand,
        lease: Micros,
        has_entry: Callable[[str], bool],
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.due = due
        self.hand = hand
        self.orphans = Orphans(lease, has_entry)
        self.unregistered: dict[str, Registration] = {}
        self.marks: dict[str, Micros] = {}
        self._unattended: deque[str] = deque()
        self._attend_at: Micros | None = None
        self._next_deadline: Micros | None = None

    def register(self) -> None:
        """Make known what is new here; before that, nothing of it is asked for."""
        while self.unregistered:
            chunk = list(self.unregistered.values())[:MOST_PER_CALL]
            for record in self.ledger.register(chunk):
                del self.unregistered[record.entry]
                self.marks[record.entry] = max(record.mark, self.marks.get(record.entry, 0))
                slot = self.due.get(record.entry)
                if slot:
                    slot.since = record.since
                    self.due.advance(record.entry, record.mark)

    def attend(self) -> None:
        """Tell now and then which entries this node has, so that they do not go missing."""
        now = self.clock.monotonic()
        if self._attend_at is None:
            self._attend_at = now + ATTEND_EVERY  # they have just been registered
        if now >= self._attend_at:
            self._attend_at = now + ATTEND_EVERY
            self._unattended = deque(slot.name for slot in self.due)
        chunk = list(islice(self._unattended, MOST_PER_CALL))
        if chunk:
            self.ledger.attend(chunk)
            for _ in chunk:
                self._unattended.popleft()

    def attend_soon(self) -> None:
        """Tell it anew with the next pass: the ledger was away, or it may have forgotten."""
        if self._attend_at is not None:
            self._attend_at = 0

    def claim(self, room: int, *, can_send: bool) -> bool:
        """Ask for at most about ``room`` ticks; return whether more may be waiting."""
        adopted, due = self._asks(room) if can_send and room > 0 else ([], [])
        asked = self.clock.monotonic()
        claimed = self.ledger.claim([*adopted, *due], self.orphans.cursor)
        self.orphans.learn(claimed, can_send=can_send)
        self._next_deadline = claimed.next_deadline
        for answer in claimed.answers:
            self._learn(answer, claimed)
            if answer.grant:
                # Counted from before the question: a slow answer makes no lease longer.
                self.hand.take(answer.grant, asked + answer.grant.deadline - claimed.now)
        return bool(due) or (not adopted and len(self.orphans) > 0)

    def next_look(self) -> Micros | None:
        """Return the ledger's instant at which something is due or a lease ends, if known."""
        instants = [self.due.next_look(), self._next_deadline]
        return min((instant for instant in instants if instant is not None), default=None)

    def memories(self) -> list[Memory]:
        """Return what this node remembers, to push when the server may have lost data."""
        known = {slot.name: slot for slot in self.due}
        return [
            Memory(name, mark, known[name].since, known[name].timetable.fingerprint)
            if name in known
            else Memory(name, mark)
            for name, mark in self.marks.items()
        ]

    def _asks(self, room: int) -> tuple[list[Ask], list[Ask]]:
        # Neither may starve the other: each gets one at least.
        due = self.due.asks(self.clock.now(), max(1, room - len(self.orphans)))
        return self.orphans.asks(max(1, room - len(due))), due

    def _learn(self, answer: Answer, claimed: Claimed) -> None:
        name, slot = answer.tick.entry, self.due.get(answer.tick.entry)
        if answer.verdict is Verdict.UNREGISTERED:
            if slot:
                self.unregistered[name] = Registration(name, slot.timetable.fingerprint)
            return
        self.marks[name] = max(answer.mark, self.marks.get(name, 0))
        if answer.verdict is Verdict.EARLY:
            self.due.defer(name, claimed.now + answer.wait)
        elif answer.verdict is Verdict.PAUSED:
            self.due.defer(name, claimed.now + PAUSED_PAUSE)
        else:
            self.due.advance(name, answer.mark)
