"""What a node remembers of the ledger, to vouch for it after a loss of data; it asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import IN_DOUBT, SECOND, SENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from celery_redlock_beat.hand import Hand
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger import Answer, Claimed, Grant
    from celery_redlock_beat.ticks import Micros, Reason, Tick

REMEMBERED: Micros = 3600 * SECOND
"""How long it is of use to know that a tick was settled: what is older is never in doubt."""
MAY_LACK: Micros = 5 * SECOND
"""How much a copy of the data may lack of what the lost one had: replicas lag, disks are late."""


class Witness:
    """What this node was answered, and what it did, as far as a ledger may come to lack it.

    What is neither open nor above its mark is settled. So with each answer that names all open
    ticks a node knows for every entry up to where it is settled; what it settles itself until the
    next such answer, it keeps tick by tick. ``loses_messages`` tells that the messages live in the
    ledger's Redis: then nobody can vouch that the last ones have arrived.
    """

    def __init__(self, *, loses_messages: bool) -> None:
        self.marks: dict[str, Micros] = {}
        self.runs: dict[str, int] = {}
        self._loses_messages = loses_messages
        self._settled: dict[Tick, Settlement] = {}
        self._tried: dict[Tick, Settlement] = {}
        self._published: dict[Tick, Settlement] = {}
        self._open: dict[str, dict[Micros, Micros]] | None = None
        self._closed: dict[str, Micros] = {}
        self._told_at: Micros = 0

    def hear(self, claimed: Claimed) -> None:
        """Learn marks from the answers to a claim, and what is settled by now."""
        if claimed.open is None:
            self._keep_what_is_closed()
        for answer in claimed.answers:
            self._hear_answer(answer)
        if claimed.open is not None:
            self._hear_open(claimed.open)
        self._told_at = claimed.now

    def hear_mark(self, entry: str, mark: Micros, runs: int = 0) -> None:
        """Learn a mark and its runs from an answer that does not tell which ticks are open."""
        self._keep_what_is_closed()
        self._raise(entry, mark, runs)

    def obey(self, entry: str, mark: Micros) -> None:
        """Believe an operator, who set a mark: the one thing that can lower it."""
        self.marks[entry] = mark
        self._closed.pop(entry, None)

    def forget(self, entry: str) -> None:
        """Vouch no longer for an entry that was removed, and that the ledger has forgotten."""
        for known in (self.marks, self.runs, self._closed):
            known.pop(entry, None)

    def settled(self, settlement: Settlement) -> None:
        """Remember an outcome that the ledger has written down."""
        tick = settlement.grant.tick
        self._tried.pop(tick, None)
        self._published.pop(tick, None)
        self._settled[tick] = settlement

    def pushed(self, grant: Grant, passed: Mapping[Reason, int]) -> None:
        """Remember a message that was pushed and settled in one step: they are lost together."""
        self.settled(Settlement(grant, IN_DOUBT, passed))

    def published(self, grant: Grant, passed: Mapping[Reason, int]) -> None:
        """Remember a message that is out, until its tick is known to be settled."""
        self._published[grant.tick] = Settlement(grant, SENT, passed)

    def has_published(self, tick: Tick) -> bool:
        """Whether this node knows that a tick's message is out: it must not publish it again."""
        return tick in self._published

    def tried(self, grant: Grant, passed: Mapping[Reason, int]) -> None:
        """Remember a try without an answer: the ledger may know what became of it, or nobody."""
        self._tried[grant.tick] = Settlement(grant, IN_DOUBT, passed)

    def closed(self, entry: str) -> Micros:
        """Return an instant up to which all ticks of an entry are settled."""
        if self._open is None:
            return self._closed.get(entry, 0)
        # What an open tick has passed over is settled only with it.
        return min([self.marks.get(entry, 0), *self._open.get(entry, {}).values()])

    def settled_by_entry(self) -> dict[str, Micros]:
        """Return up to which instant all ticks of each entry are settled, as far as is known."""
        return {entry: self.closed(entry) for entry in self.marks}

    def testimony(self, slots: Iterable[Slot], hand: Hand) -> Testimony:
        """Return all that this node vouches for, of entries that it has and of others."""
        known = {slot.name: slot for slot in slots}
        recent = self._told_at - REMEMBERED
        known_here = {each.grant.tick for each in hand.outcomes()}
        published = [each for tick, each in self._published.items() if tick not in known_here]
        settled = [*self._settled.values(), *self._tried.values(), *published]
        return Testimony(
            [self._memory(entry, known.get(entry)) for entry in self.marks],
            [*hand.outcomes(), *(each for each in settled if each.grant.tick.at > recent)],
            list(hand.held.values()),
        )

    def _memory(self, entry: str, slot: Slot | None) -> Memory:
        mark, closed = self.marks[entry], self.closed(entry)
        sure = min(closed, self._told_at - MAY_LACK) if self._loses_messages else closed
        since, fingerprint = (slot.since, slot.fingerprint) if slot else (0, "")
        still_open = tuple(self._open.get(entry, ())) if self._open is not None else ()
        closed = mark if still_open else closed
        runs = self.runs.get(entry, 0)
        return Memory(entry, mark, since, fingerprint, closed, max(0, sure), still_open, runs)

    def _hear_answer(self, answer: Answer) -> None:
        entry = answer.tick.entry
        if answer.verdict in (Verdict.UNREGISTERED, Verdict.UNREADABLE, Verdict.CHANGED):
            return
        self._raise(entry, answer.mark, answer.runs)
        if answer.grant:  # it is open: whatever was tried before did not arrive
            self._tried.pop(answer.tick, None)

    def _hear_open(self, ticks: Mapping[Tick, Micros]) -> None:
        self._open = {}
        for tick, previous in ticks.items():
            self._open.setdefault(tick.entry, {})[tick.at] = previous
        self._closed = {}
        self._settled = {}
        self._tried, self._published = (
            {tick: each for tick, each in some.items() if tick in ticks}
            for some in (self._tried, self._published)
        )

    def _keep_what_is_closed(self) -> None:
        """Keep what was known before marks are heard that it does not hold for."""
        if self._open is not None:
            self._closed = {entry: self.closed(entry) for entry in self.marks}
            self._open = None
        oldest = self._told_at - REMEMBERED
        self._settled = {tick: each for tick, each in self._settled.items() if tick.at > oldest}

    def _raise(self, entry: str, mark: Micros, runs: int) -> None:
        # They belong together: so many runs there may be up to this mark.
        if mark >= self.marks.get(entry, 0):
            self.marks[entry], self.runs[entry] = mark, runs
