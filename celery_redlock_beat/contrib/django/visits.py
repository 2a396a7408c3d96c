"""One visit to the database: write what is owed, look whether rows changed, read them if so.

It runs in the thread of the errands and knows no node; what fails is answered, not raised.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import (
    DatabaseError,
    InterfaceError,
    close_old_connections,
    connections,
    router,
)

from celery_redlock_beat.contrib.django.tables import end_transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.contrib.django.drafts import Draft
    from celery_redlock_beat.contrib.django.reading import News, Reader
    from celery_redlock_beat.contrib.django.setting_up import SettingUp
    from celery_redlock_beat.contrib.django.writing import Owed, Writer
    from celery_redlock_beat.errors import EntryError

READ_ALL_EVERY = 300.0
"""Seconds after which all rows are read, also where nobody said that they changed."""
AWAY = (DatabaseError, InterfaceError)


@dataclass
class Visit:
    """What came of a visit: ``news`` if rows were read, what is still owed, and what failed."""

    news: News | None = None
    owed: Owed | None = None
    faults: list[EntryError] = field(default_factory=list)
    unread: Exception | None = None
    unwritten: Exception | None = None


class Visits:
    """Visit the tables; ``changes`` returns the model that tells when rows changed."""

    def __init__(
        self, reader: Reader, writer: Writer, setting_up: SettingUp, changes: Callable[[], Any]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._setting_up = setting_up
        self._changes = changes
        self._drafts: Sequence[Draft] = ()
        self._last_change: Any = None
        self._read_at: float | None = None

    def begin(self, drafts: Sequence[Draft]) -> Visit:
        """Visit for the first time: write these rows, if they differ."""
        self._drafts = drafts
        return self.visit(None)

    def visit(self, owed: Owed | None) -> Visit:
        """Visit; never raises an error of the database's."""
        came = Visit()
        if owed:
            came.unwritten = self._try(lambda: self._writer.write(owed))
            came.owed = owed if came.unwritten else None
        came.unread = self._try(lambda: self._look(came))
        return came

    def flush(self, owed: Owed) -> Visit:
        """Write what is owed, and look at nothing."""
        unwritten = self._try(lambda: self._writer.write(owed))
        return Visit(owed=owed if unwritten else None, unwritten=unwritten)

    def leave(self) -> None:
        """Close the connections of this thread."""
        connections.close_all()

    def _try(self, do: Callable[[], None]) -> Exception | None:
        """Do it, and once more on a new connection: the server may have closed the old one."""
        try:
            do()
        except AWAY:
            self.leave()
            try:
                do()
            except Exception as exc:  # noqa: BLE001 - it is answered
                self.leave()
                return exc
        except Exception as exc:  # noqa: BLE001 - models and queries may be the user's own
            return exc
        return None

    def _look(self, came: Visit) -> None:
        now = time.monotonic()
        due = self._read_at is None or now - self._read_at >= READ_ALL_EVERY
        if due:
            close_old_connections()
        if self._drafts:
            came.faults = self._setting_up.write(self._drafts)
            self._drafts = ()
        changes = self._changes()
        end_transaction(router.db_for_read(changes))
        # Asked before the rows are read: what changes meanwhile is seen with the next visit.
        last_change = changes.last_change()
        if due or last_change != self._last_change:
            came.news = self._reader.read()
            self._read_at, self._last_change = now, last_change
