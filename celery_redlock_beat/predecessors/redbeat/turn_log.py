"""What the log says of the turns that RedBeat and this fleet take; it decides none."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, listed, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from celery_redlock_beat.errors import LedgerError
    from celery_redlock_beat.predecessors.redbeat.lock import Held
    from celery_redlock_beat.ticks import Micros

EVERY: Micros = 10 * SECOND
"""How often the seconds are counted while it is RedBeat's turn."""
MOST_NAMED = 5

logger = logging.getLogger(__name__)


class TurnLog:
    """Say whose turn it is, once, and how long it may last, now and then; ``lock`` is its key."""

    def __init__(self, lock: str) -> None:
        self._lock = lock
        self._ends: Micros = 0
        self._told_at: Micros | None = None
        self._told_away = self._told_behind = ""

    def hear(self, held: Held, now: Micros) -> None:
        """Learn who has the lock at a monotonic instant."""
        if self._told_away:
            self._told_away = self._told_behind = ""
            logger.warning("RedBeat's Redis is back.")
        if held.token:
            self._told_at = None
            return
        ends = now + held.left
        if self._told_at is None:
            logger.info(
                "RedBeat has its lock %s: nothing is sent until it gives that back%s.",
                *(self._lock, _end(held, ", or it ends, in")),
            )
        elif now < self._told_at + EVERY:
            return
        elif ends > self._ends + SECOND:
            logger.info("RedBeat is at work: it has extended its lock %s.", self._lock)
        else:
            logger.info(
                "RedBeat has not extended its lock %s%s.",
                *(self._lock, _end(held, ": it ends in")),
            )
        self._ends, self._told_at = ends, now

    def begin(self, theirs: Collection[str], ours: Collection[str]) -> None:
        """Tell that it is our turn, and which of RedBeat's entries nobody sends any more."""
        logger.info("This fleet has RedBeat's lock %s: it sends from now on.", self._lock)
        nobodys = sorted(map(shown, set(theirs) - set(ours)))
        if nobodys:
            logger.warning(
                "Of RedBeat's entries, %d are neither in code nor stored, and sent by nobody: %s. "
                "'celery redlock import-redbeat' stores them",
                *(len(nobodys), listed(nobodys, MOST_NAMED)),
            )

    def away(self, error: LedgerError) -> None:
        """Tell once that the server of RedBeat's lock cannot be asked."""
        if self._told_away != str(error):
            self._told_away = str(error)
            logger.error(
                "RedBeat's Redis is away, nothing is sent until it is back: %s (it is where "
                "redbeat_redis_url and redbeat_redis_options say, or else the broker)",
                getattr(error, "problem", error),
            )

    def is_behind(self, error: LedgerError) -> None:
        """Tell once that RedBeat's records lack what was sent last."""
        if self._told_behind != str(error):
            self._told_behind = str(error)
            logger.error(
                "RedBeat's records lack what was sent last, and are written again with the next "
                "pass: %s",
                error,
            )

    def gave_back(self) -> None:
        """Tell that RedBeat may have its turn."""
        logger.info("The last node leaves: RedBeat's lock %s is given back.", self._lock)

    def cannot_give_back(self, error: LedgerError, span: Micros) -> None:
        """Tell that RedBeat has to wait."""
        logger.warning(
            "RedBeat's lock %s ends by itself in at most %d s, since it cannot be given back: %s",
            *(self._lock, span // SECOND, error),
        )


def _end(held: Held, ends_in: str) -> str:
    if held.left < 0:
        return ", and it has no end: delete it if no RedBeat runs"
    return f"{ends_in} {held.left // SECOND} s"
