"""The first half of the line, from a due tick to a grant in hand; it sends nothing."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.alarms import TOLERATED, Alarms
from celery_redlock_beat.ledger import (
    MAY_MISS,
    MOST_PER_CALL,
    Pause,
    Registration,
    Seed,
    Verdict,
)
from celery_redlock_beat.orphans import Orphans
from celery_redlock_beat.pauses import Pauses
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.feed import Feed
    from celery_redlock_beat.hand import Hand
    from celery_redlock_beat.host import Host, LastRun
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger import Answer, Ask, Claimed, Ledger, Record
    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.witness import Witness


ATTEND_EVERY: Micros = MAY_MISS // 4
UNREADABLE_PAUSE: Micros = 30 * SECOND
CHANGED_PAUSE: Micros = SECOND
"""How long at most an entry waits for news of its change; those take it up at once."""
SHORTEST_WAIT: Micros = SECOND // 10
LONGEST_WAIT: Micros = SECOND


class Claims:
    """What this node asks of the ledger, and what it learns from the answers."""

    def __init__(
        self,
        ledger: Ledger,
        clock: LedgerClock,
        due: DueQueue,
        hand: Hand,
        witness: Witness,
        feed: Feed,
        lease: Micros,
        host: Host,
    ) -> None:
        self.ledger = ledger
        self.clock = clock
        self.due = due
        self.hand = hand
        self.witness = witness
        self.feed = feed
        self.pauses = Pauses(ledger, due)
        self._tell = host.tell
        self._seeded = host.seeded
        self.alarms = Alarms(ledger.marks_key)
        self.orphans = Orphans(lease, lambda name: host.entry_of(name) is not None)
        self.unregistered: dict[str, Registration] = {}
        self.forgotten: set[str] = set()
        self._told_again: set[str] = set()
        self._unattended: deque[str] = deque()
        self._attend_at: Micros | None = None
        self._next_deadline: Micros | None = None
        self._told: Micros = 0

    def register(self, ends: Micros) -> bool:
        """Make known what is new here, until a monotonic instant; return whether that is all.

        Before that, nothing of it is asked for.
        """
        while self.unregistered and self.clock.monotonic() < ends:
            chunk = list(self.unregistered.values())[:MOST_PER_CALL]
            for asked, record in zip(chunk, self.ledger.register(chunk), strict=True):
                del self.unregistered[asked.entry]
                if record is None:
                    continue  # it is unreadable, or was changed meanwhile: the claim says so
                if asked.seed:
                    self._seeded(record.entry, _is_taken(asked.seed, record))
                self.witness.hear_mark(record.entry, record.mark, record.runs)
                self.alarms.look_at(record.entry, record.mark, self.clock.now())
                slot = self.due.get(record.entry)
                if slot:
                    self.due.go_on(record.entry, record.fingerprint)
                    slot.since = record.since
                    self.due.advance(record.entry, record.mark)
                    self.pauses.apply(record.entry)
        return not self.unregistered

    def attend(self) -> None:
        """Tell now and then which entries this node has, so that they do not go missing."""
        now = self.clock.monotonic()
        if self._attend_at is None:
            self._attend_at = now + ATTEND_EVERY  # they have just been registered
        if now >= self._attend_at and not self._unattended:
            self._attend_at = now + ATTEND_EVERY
            # What is stored goes missing only when it is removed.
            self._unattended = deque(slot.name for slot in self.due if slot.revision is None)
        chunk = list(islice(self._unattended, MOST_PER_CALL))
        if chunk:
            self.ledger.attend(chunk)
            for _ in chunk:
                self._unattended.popleft()

    def ask_for_phases(self) -> None:
        """Be told anew which intervals go on with what phase: a recovery may have lost some."""
        for slot in self.due:
            if slot.goes_on:
                self.unregistered.setdefault(slot.name, registration_of(slot))

    def attend_soon(self) -> None:
        """Tell it anew with the next pass: the ledger was away, or it may have forgotten."""
        if self._attend_at is not None:
            self._attend_at = 0

    def claim(self, room: int, *, can_send: bool) -> bool:
        """Ask for at most about ``room`` ticks; return whether more may be waiting."""
        adopted, due = self._asks(room) if can_send and room > 0 else ([], [])
        asked = self.clock.monotonic()
        claimed = self.ledger.claim([*adopted, *due], self.orphans.cursor, self._tell())
        self.orphans.learn(claimed, can_send=can_send)
        self.witness.hear(claimed)
        self.feed.hear(claimed)
        self._watch_clock(claimed.now)
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

    def tell_again(self) -> bool:
        """Whether the ledger has forgotten an entry that this node must tell it of, once."""
        self._told_again, self.forgotten = self.forgotten, set()
        return bool(self._told_again)

    def obey(self, entry: str, mark: Micros) -> None:
        """Take an entry's mark from an operator, who may have set it back."""
        self.witness.obey(entry, mark)
        self.due.rewind(entry, mark)

    def _asks(self, room: int) -> tuple[list[Ask], list[Ask]]:
        # Neither may starve the other: each gets one at least.
        due = self.due.asks(self.clock.now(), max(1, room - len(self.orphans)))
        orphans = self.orphans.asks(max(1, room - len(due)))
        return [self._on_its_terms(ask) for ask in orphans], due

    def _on_its_terms(self, orphan: Ask) -> Ask:
        slot = self.due.get(orphan.tick.entry)
        if slot is None:
            return orphan
        due_at = min(slot.due_at(orphan.tick.at), self.clock.now())  # it was due: it is open
        limit = slot.policy.max_runs
        return replace(orphan, due_at=due_at, limit=limit, revision=slot.revision)

    def _watch_clock(self, now: Micros) -> None:
        """Look at all marks where the server's clock was set back: they may be ahead of it now."""
        if now < self._told - TOLERATED:
            for entry, mark in self.witness.marks.items():
                self.alarms.look_at(entry, mark, now)
        self._told = now

    def _learn(self, answer: Answer, claimed: Claimed) -> None:
        name, slot = answer.tick.entry, self.due.get(answer.tick.entry)
        if answer.verdict is Verdict.UNREGISTERED:
            if name in self.witness.marks and name not in self._told_again:
                self.forgotten.add(name)
                self.alarms.forgotten(name)
            elif slot:
                self.unregistered[name] = registration_of(slot)
            return
        if answer.verdict is Verdict.UNREADABLE:
            self.alarms.unreadable(name)
            self.due.defer(name, claimed.now + UNREADABLE_PAUSE)
        elif answer.verdict is Verdict.EARLY:
            self.due.defer(name, claimed.now + answer.wait)
        elif answer.verdict is Verdict.CHANGED:
            self.feed.doubt()
            self.due.defer(name, claimed.now + CHANGED_PAUSE)
        elif answer.verdict is Verdict.PAUSED:
            self.pauses.hold(answer.pause or Pause(name, 0), claimed.now)
        elif answer.verdict is Verdict.FINISHED:
            self.due.finish(name)
        else:
            self.due.advance(name, answer.mark)
            if answer.verdict is Verdict.HELD and answer.mark < answer.tick.at:
                # An earlier tick stands in the way of this one; it may be settled at any moment.
                wait = max(SHORTEST_WAIT, min(answer.wait, LONGEST_WAIT))
                self.due.defer(name, claimed.now + wait)


def registration_of(
    slot: Slot, *, again: bool = False, last_run: LastRun | None = None
) -> Registration:
    """Return what makes a slot's entry known to the ledger; ``again``: it was removed meanwhile.

    ``last_run`` tells when another scheduler sent it last.
    """
    starts = slot.policy.run_on_start and slot.policy.enabled
    return Registration(
        slot.name,
        slot.own_fingerprint,
        again=again,
        run_on_start=starts,
        once=slot.is_once,
        revision=slot.revision,
        takes_phase=slot.takes_phase,
        seed=_seed_of(slot, last_run) if last_run else None,
    )


def _seed_of(slot: Slot, last_run: LastRun) -> Seed:
    phase = last_run.at % slot.period if slot.takes_phase and slot.period else None
    return Seed(last_run.at, phase, last_run.again)


def _is_taken(seed: Seed, record: Record) -> bool | None:
    """Return whether an entry begins at its seed, or ``None`` where it has gone on from there."""
    # One that is ahead of the ledger's clock is taken for now.
    begins = record.since == min(seed.at, max(record.since, record.mark))
    if not begins:
        return False
    return True if record.mark == record.since else None
