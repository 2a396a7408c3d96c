"""Open ticks without an owner: which of them this node can finish; it asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.ledger import Claimed, Orphan
    from celery_redlock_beat.ticks import Micros, Tick

MOST_ATTEMPTS = 5
"""Grants of one tick that may be tried; the next one settles it."""
FORLORN_AFTER = 10
"""Leases for which nodes that have the entry could have finished it, and did not."""


class Orphans:
    """The orphans of the last answer, and the cursor from which the ledger tells the next ones."""

    def __init__(self, lease: Micros, has_entry: Callable[[str], bool]) -> None:
        self._lease = lease
        self._has_entry = has_entry
        self._found: list[Orphan] = []
        self._forlorn: set[Tick] = set()
        self._working_since: Micros = 0
        self._last_answer: Micros = 0
        self.cursor = 0

    def __len__(self) -> int:
        return len(self._found)

    def learn(self, claimed: Claimed, *, can_send: bool) -> None:
        """Keep those of an answer that this node can finish, while it can send at all."""
        self._watch(claimed.now, can_send=can_send)
        self.cursor = claimed.cursor
        # One that is ahead of the clock, which was set back, is nobody's yet.
        due = [orphan for orphan in claimed.orphans if orphan.tick.at <= claimed.now]
        known = [orphan for orphan in due if self._has_entry(orphan.tick.entry)]
        overdue = [orphan for orphan in due if self._is_forlorn(orphan, claimed.now)]
        self._forlorn |= {orphan.tick for orphan in overdue}
        self._found = [*known, *overdue] if can_send else []

    def asks(self, most: int) -> list[Ask]:
        """Return the asks for at most ``most`` of them."""
        return [Ask(orphan.tick, orphan.tick.at) for orphan in self._found[:most]]

    def is_forlorn(self, tick: Tick) -> bool:
        """Whether nobody who has its entry took this tick for so long that anyone may settle it."""
        return tick in self._forlorn

    def forget(self, tick: Tick) -> None:
        """Forget a tick that was settled."""
        self._forlorn.discard(tick)

    def _watch(self, now: Micros, *, can_send: bool) -> None:
        # While the broker or the ledger is away, nobody could finish anything: that counts not.
        if not can_send or now - self._last_answer > self._lease:
            self._working_since = now
        self._last_answer = now

    def _is_forlorn(self, orphan: Orphan, now: Micros) -> bool:
        if self._has_entry(orphan.tick.entry):
            return False
        if orphan.attempt >= MOST_ATTEMPTS:
            return True
        free_since = max(orphan.free_since, self._working_since)
        return now - free_since > FORLORN_AFTER * self._lease
