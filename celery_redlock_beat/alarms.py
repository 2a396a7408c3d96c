"""What is wrong with a record, told once per entry until it is well again; it mends nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, shown, to_datetime

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros

TOLERATED: Micros = 60 * SECOND
"""How far a mark may be ahead of the ledger's clock: clocks are set by a little now and then."""

logger = logging.getLogger(__name__)


class Alarms:
    """Complain of an entry's record when it goes bad, once; and of the next fault anew."""

    def __init__(self, marks_key: str) -> None:
        self._marks_key = marks_key
        self._told: dict[str, str] = {}

    def unreadable(self, entry: str) -> None:
        """Tell that the ledger cannot read what it holds of an entry."""
        self._tell(
            entry,
            "unreadable",
            "the ledger cannot read what it holds of it (field %r of the key %r, or its grants): "
            "nothing of it is sent until that is mended; 'celery redlock doctor' shows it, "
            "'celery redlock repair' sets it anew",
            f"e:{entry}",
            self._marks_key,
        )

    def forgotten(self, entry: str) -> None:
        """Tell that the ledger has lost what it held of an entry."""
        logger.error(
            "entry %s: the ledger had lost its record (field %r of the key %r); this node tells it "
            "what it remembers",
            shown(entry),
            f"e:{entry}",
            self._marks_key,
        )

    def look_at(self, entry: str, mark: Micros, now: Micros) -> None:
        """Tell of a mark that is ahead of the ledger's clock; else the entry is well."""
        if mark <= now + TOLERATED:
            self._told.pop(entry, None)
            return
        self._tell(
            entry,
            "ahead",
            "its mark is %d s ahead of the ledger's clock, which was set back since (field %r of "
            "the key %r): nothing of it is sent until %s; 'celery redlock repair' sets it back",
            (mark - now) // SECOND,
            f"e:{entry}",
            self._marks_key,
            to_datetime(mark).isoformat(timespec="seconds"),
        )

    def _tell(self, entry: str, fault: str, text: str, *args: object) -> None:
        if self._told.get(entry) != fault:
            self._told[entry] = fault
            logger.error("entry %s: %s", shown(entry), text % args)
