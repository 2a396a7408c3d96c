"""What this node knows of stored entries and pauses, and how it keeps up; it applies none of it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import LedgerDisorder
from celery_redlock_beat.ledger.steering import Change, Kind
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.ledger import Claimed, Ledger
    from celery_redlock_beat.ticks import Micros

    Key = tuple[Kind, str]

MOST_GONE = 10_000
"""How much of what is gone is remembered, as in the ledger."""
MOST_BYTES = 256 * 1024
MOST_PUSHED = 500
DISORDER_PAUSE: Micros = SECOND // 2

logger = logging.getLogger(__name__)


class Feed:
    """Follow the changes that the ledger tells of, by revision, and vouch for them after a loss.

    ``take`` is called with each change. Nothing is asked for as long as the claims tell that there
    is nothing new: so an idle node pays the same for any number of entries.
    """

    def __init__(
        self, ledger: Ledger, take: Callable[[Change], None], monotonic: Callable[[], Micros]
    ) -> None:
        self._ledger = ledger
        self._take = take
        self._monotonic = monotonic
        self._there: dict[Key, Change] = {}
        self._gone: OrderedDict[Key, Change] = OrderedDict()
        self._upto = 0
        self._is_behind = False
        self._unseen: set[Key] | None = None
        self._not_before: Micros = 0
        self._told_disorder = ""

    def hear(self, claimed: Claimed) -> None:
        """Learn from the answer to a claim whether there is something new."""
        self._is_behind |= claimed.revision > self._upto or claimed.stirred

    def doubt(self) -> None:
        """Learn that something here is other than in the ledger: if it is no news, begin anew."""
        if not self._is_behind:
            self.begin_anew()

    def begin_anew(self) -> None:
        """Have all told again: a recovery may have brought back what has a revision of long ago."""
        self._upto = 0
        self._is_behind = True

    def follow(self) -> bool:
        """Take one part of what is new; return whether something came, or more is to come.

        Raises:
            LedgerError: the ledger could not be asked.
        """
        if not self._is_behind or self._monotonic() < self._not_before:
            return False
        begins_anew = self._upto == 0
        try:
            told = self._ledger.changes(self._upto, going_on=self._unseen is not None)
        except LedgerDisorder as exc:
            self._put_off(exc)
            return False
        self._told_disorder = ""
        if begins_anew or (told.whole and self._unseen is None):
            self._unseen = set(self._there)
        for change in told.changes:
            self._learn(change)
        self._upto, self._is_behind = told.upto, told.more
        if not told.more:
            self._drop_what_was_not_told()
        return told.more or bool(told.changes)

    def what_came_after(self, revision: int) -> Iterator[list[Change]]:
        """Yield what a copy up to this revision lacks, ascending, in parts for one call each."""
        part: list[Change] = []
        size = 0
        known = (*self._there.values(), *self._gone.values())
        later = [change for change in known if change.revision > revision]
        for change in sorted(later, key=lambda each: each.revision):
            part.append(change)
            size += len(change.text or b"")
            if size > MOST_BYTES or len(part) >= MOST_PUSHED:
                yield part
                part, size = [], 0
        if part:
            yield part

    def stored(self, name: str) -> Change | None:
        """Return the present text of a stored entry, if there is one."""
        return self._there.get((Kind.ENTRY, name))

    def _learn(self, change: Change) -> None:
        key = change.kind, change.name
        if self._unseen is not None:
            self._unseen.discard(key)
        if self._there.get(key) == change:
            return
        self._gone.pop(key, None)
        if change.text is None:
            self._there.pop(key, None)
            self._gone[key] = change
            if len(self._gone) > MOST_GONE:
                self._gone.popitem(last=False)
        else:
            self._there[key] = change
        self._take(change)

    def _drop_what_was_not_told(self) -> None:
        unseen, self._unseen = self._unseen or set(), None
        for kind, name in unseen:
            self._learn(Change(kind, name, self._there[kind, name].revision, None))

    def _put_off(self, exc: LedgerDisorder) -> None:
        self._not_before = self._monotonic() + DISORDER_PAUSE
        if self._told_disorder != str(exc):
            self._told_disorder = str(exc)
            logger.error(
                "Changes of stored entries and pauses are not followed, all else goes on: %s", exc
            )
