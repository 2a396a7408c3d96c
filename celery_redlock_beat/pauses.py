"""Which entries this node does not ask for because they are paused, and pauses that are over.

It pauses nothing: the ledger refuses what is paused, whoever asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.due import PAUSED_PAUSE
from celery_redlock_beat.ledger import wire
from celery_redlock_beat.ledger.steering import Change, Resumption
from celery_redlock_beat.remainder import remainder
from celery_redlock_beat.ticks import Reason

if TYPE_CHECKING:
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.ledger import Ledger, Pause
    from celery_redlock_beat.ledger.steering import Look
    from celery_redlock_beat.ticks import Micros

ITS_TIME = "its time was over"


class Pauses:
    """The pauses that this node has heard of, applied to its due queue."""

    def __init__(self, ledger: Ledger, due: DueQueue) -> None:
        self._ledger = ledger
        self._due = due
        self._known: dict[str, Pause] = {}
        self._over: dict[str, None] = {}

    def learn(self, change: Change) -> None:
        """Take a change of the feed."""
        name = change.name
        if change.text is None:
            self._known.pop(name, None)
            self._due.take_up(name)
        else:
            self._known[name] = wire.pause(name, wire.text(change.text))
            self.apply(name)

    def apply(self, name: str) -> None:
        """Hold an entry back, if it is paused, up to where its pause ends."""
        pause = self._known.get(name)
        if pause:
            self._due.hold(name, pause.until)

    def hold(self, pause: Pause, now: Micros) -> None:
        """Hold back an entry that the ledger has refused; if its pause is over, end that soon."""
        if pause.is_over(now):
            self._over[pause.entry] = None
        else:
            until = now + PAUSED_PAUSE
            self._due.defer(pause.entry, until if pause.until is None else min(until, pause.until))

    def end_those_over(self) -> None:
        """Resume entries whose pauses were to end by now; what was due meanwhile is counted.

        Raises:
            LedgerError: the ledger could not be asked.
        """
        names, self._over = list(self._over), {}
        looks = self._ledger.look(names) if names else []
        ending = [each for look in looks for each in self._ends(look)]
        if ending:
            self._ledger.resume(ending)
        for name in names:  # whoever has resumed it, or not: it is asked for again
            self._due.take_up(name)

    def _ends(self, look: Look) -> list[Resumption]:
        slot, pause = self._due.get(look.entry), look.pause
        if slot is None or pause is None or pause.until is None or not pause.is_over(look.now):
            return []
        ended = remainder(look, slot, Reason.PAUSED, pause.until, held=False)
        return [Resumption(look.entry, pause.revision, ended, ITS_TIME)]
