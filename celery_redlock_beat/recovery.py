"""A node's part in a recovery: it tells what it remembers, and obeys what it is answered."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import ESSENTIAL
from celery_redlock_beat.ticks import to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.claims import Claims
    from celery_redlock_beat.due import DueQueue
    from celery_redlock_beat.hand import Hand
    from celery_redlock_beat.ledger import Ledger
    from celery_redlock_beat.ledger.testimony import Recovery
    from celery_redlock_beat.ticks import Micros, Tick
    from celery_redlock_beat.witness import Witness

logger = logging.getLogger(__name__)


class Testifier:
    """Tell the ledger what this node remembers, and whoever observes what nobody vouched for."""

    def __init__(
        self,
        ledger: Ledger,
        witness: Witness,
        due: DueQueue,
        hand: Hand,
        claims: Claims,
        doubt: Callable[[Tick], None],
    ) -> None:
        self._ledger = ledger
        self._witness = witness
        self._due = due
        self._hand = hand
        self._claims = claims
        self._doubt = doubt
        self._refused: set[str] = set()

    def testify(self) -> Micros:
        """Push once, and resolve what is in doubt; return how long the recovery goes on.

        Raises:
            LedgerUnavailable: the ledger could not be asked.
        """
        # A grant that was tried without an answer is dropped: the ledger knows what became of it.
        self._hand.trying = None
        recovery = self._push()
        while recovery.doubts:
            ticks = {
                each: self._due.between(each.entry, each.floor, each.mark)
                for each in recovery.doubts
            }
            self._tell(self._ledger.resolve(ticks))
            recovery = self._push()
        if not recovery.wait:
            self._claims.feed.begin_anew()
            self._claims.ask_for_phases()
        return recovery.wait

    def _push(self) -> Recovery:
        recovery = self._ledger.recover(self._witness.testimony(self._due, self._hand))
        for changes in self._claims.feed.what_came_after(recovery.revision):
            self._ledger.restore(changes)
        self._report(recovery)
        for entry, mark in recovery.repaired.items():
            self._claims.obey(entry, mark)
        for tick in recovery.not_in_force:
            self._hand.drop(tick)
        self._tell(recovery.in_doubt)
        return recovery

    def _tell(self, ticks: Sequence[Tick]) -> None:
        for tick in ticks:
            self._doubt(tick)

    def _report(self, recovery: Recovery) -> None:
        """Log what the ledger has lost, what it refused, and what an operator set."""
        if self._witness.marks and len(recovery.lost) == len(ESSENTIAL):
            logger.error("The ledger was empty: its server was flushed, or has lost its data.")
        elif len(recovery.lost) == len(ESSENTIAL):
            logger.warning(
                "The ledger is empty, and this node remembers nothing of it. If this is not its "
                "first start, then what was sent last, what was paused and which entries were "
                "stored is unknown, unless another node tells: 'celery redlock import' brings "
                "stored entries back."
            )
        elif len(recovery.lost) < len(ESSENTIAL):
            for key in recovery.lost:
                logger.error(
                    "The ledger had lost its key %r: it was deleted or evicted. Nodes have told it "
                    "what they remember.",
                    self._ledger.marks_key.removesuffix("marks") + key,
                )
        for entry in sorted(set(recovery.refused) - self._refused):
            logger.error("%r: its mark is over an hour ahead of the ledger's clock: refused", entry)
        self._refused = set(recovery.refused)
        for entry, mark in recovery.repaired.items():
            logger.warning("%r: an operator set its mark to %s", entry, to_datetime(mark))
