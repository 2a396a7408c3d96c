"""The history as operators are told it, and what of it is meant; it reads no key."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.known import data_of
from celery_redlock_beat.control.reasons import ENDINGS, OUTCOMES
from celery_redlock_beat.control.views import HistoryRecord
from celery_redlock_beat.delivery.headers import task_id_of
from celery_redlock_beat.entry_checks import is_storable
from celery_redlock_beat.ticks import SECOND, Micros, Tick

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue
    from celery_redlock_beat.control.selection import Finder, Selection
    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.store.history import HistoryRow

WITH_AN_ID = ("sent", "skipped", "in_doubt")
TOLD_AS_JSON = ("paused", "fired")
CLOCK_SET_BACK: Micros = 3600 * SECOND
"""How long before its tick a record may seem to be written."""


class Records:
    """Tell the history; each method may raise ``LedgerUnavailable``."""

    def __init__(self, access: Access, catalogue: Catalogue, finder: Finder) -> None:
        self._access = access
        self._catalogue = catalogue
        self._finder = finder

    def newest(self, selection: Selection, number: int) -> list[HistoryRecord]:
        """Return so many records, the newest first, also of entries that are gone.

        Raises:
            NoSuchEntry: There is neither such an entry nor a record of one.
        """
        rows = list(islice(self._meant(selection), max(number, 0)))
        if not rows and number > 0:
            for name in selection.names:
                self._finder.find(type(selection)((name,)))  # or else it says what may be meant
        return self.told(rows)

    def newest_of(self, name: str) -> HistoryRow | None:
        """Return the newest record of an entry of exactly this name, if there is one."""
        return next((row for row in self._access.history() if row.entry == name), None)

    def told(self, rows: list[HistoryRow]) -> list[HistoryRecord]:
        """Return rows as operators are told them."""
        names = [name for name in dict.fromkeys(row.entry for row in rows) if is_storable(name)]
        known = {look.entry: self._catalogue.of(look) for look in self._access.looks(names)}
        entries = {name: each.entry for name, each in known.items() if each}
        return [_record(row, entries, self._access.settings.namespace) for row in rows]

    def _meant(self, selection: Selection) -> Iterator[HistoryRow]:
        if selection.tag is None and selection.task is None:
            yield from (row for row in self._access.history() if _is_named(row, selection))
            return
        meant = {each.name for each in self._finder.find(selection)}
        yield from (row for row in self._access.history() if row.entry in meant)


def concerns(row: HistoryRow, entry: str, at: Micros) -> bool:
    """Answer whether a record tells what became of a tick: its own, or one that passed it over."""
    if row.entry != entry or row.outcome == "to_be_skipped":
        return False
    if row.outcome.partition(":")[0] in OUTCOMES and row.tick == at:
        return True
    last = row.tick if row.outcome in ENDINGS else row.tick - 1
    return bool(row.passed) and row.previous < at <= last


def searched(rows: Iterator[HistoryRow], entry: str, at: Micros) -> HistoryRow | None:
    """Return the newest record that concerns a tick; what was written before it cannot."""
    for row in rows:
        if row.at < at - CLOCK_SET_BACK:
            return None
        if concerns(row, entry, at):
            return row
    return None


def _is_named(row: HistoryRow, selection: Selection) -> bool:
    if not selection.names or row.entry in selection.names:
        return True
    return any(fnmatchcase(row.entry, name) for name in selection.names)


def _record(
    row: HistoryRow, entries: Mapping[str, RedlockEntry | None], namespace: str
) -> HistoryRecord:
    action, _, reason = row.outcome.partition(":")
    told = data_of(row.detail.encode()) if action in TOLD_AS_JSON else {}
    task_id = str(told.get("task_id", ""))
    if action in WITH_AN_ID:
        task_id = task_id_of(entries.get(row.entry), Tick(row.entry, row.tick), namespace)
    return HistoryRecord(
        id=row.id,
        at=moment(row.at),
        entry=row.entry,
        action=action,
        reason=reason,
        tick=moment(row.tick),
        node=row.node,
        fence=row.fence,
        attempt=row.attempt,
        previous=moment(row.previous),
        lateness=row.late / SECOND if action in WITH_AN_ID else 0.0,
        task_id=task_id,
        passed=row.passed,
        detail=str(told.get("note", "")) if told else row.detail,
    )
