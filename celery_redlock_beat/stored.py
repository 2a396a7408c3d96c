"""The entries that are kept in the ledger, as this node has them; it fetches none.

One that cannot be read, or that the code has as well, is left out and told, and nothing is deleted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.documents.entries import read
from celery_redlock_beat.entry_checks import check_fields
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ledger.wire_steering import document_of
from celery_redlock_beat.roster import Roster
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery import Celery

    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger.steering import Change
    from celery_redlock_beat.settings import Settings

IN_CODE = (
    "it is stored, and the code has an entry of this name, which is the one that runs: remove one "
    "of them"
)

logger = logging.getLogger(__name__)


class StoredEntries:
    """Make entries of the changes that the ledger tells of, and put them into the queue.

    ``make`` is given a name and fields; ``has_code`` tells whether the code has an entry of a name;
    ``forget`` is called for one that was removed.
    """

    def __init__(
        self,
        app: Celery,
        settings: Settings,
        make: Callable[[str, Any], RedlockEntry],
        has_code: Callable[[str], bool],
        put: Callable[[Slot], None],
        discard: Callable[[str], None],
        forget: Callable[[str], None],
    ) -> None:
        self._make = make
        self._has_code = has_code
        self._forget = forget
        self.roster = Roster(app, settings, put, discard)
        self.roster.starting = False  # a bad one never ends beat
        self._hidden: dict[str, Change] = {}

    def take(self, change: Change) -> None:
        """Take in one change."""
        name = change.name
        self._hidden.pop(name, None)
        if change.text is None:
            self.roster.take(name, None)
            self.roster.faults.pop(name, None)
            if not self._has_code(name):
                self._forget(name)
            logger.debug("entry %s: it was removed", shown(name))
        elif self._has_code(name):
            self._hide(change)
        else:
            self.roster.take(name, self._entry(name, change.text), change.revision)
            logger.debug("entry %s: it is stored, revision %d", shown(name), change.revision)

    def make_way(self, name: str, known: Callable[[str], Change | None]) -> None:
        """Leave an entry to the code, which has one of its name from now on."""
        change = known(name)
        if change and name not in self._hidden:
            self._hide(change)

    def come_back(self, name: str) -> None:
        """Take an entry in again whose name the code has no longer."""
        change = self._hidden.get(name)
        if change:
            self.take(change)

    def _hide(self, change: Change) -> None:
        self.roster.take(change.name, None)
        self._hidden[change.name] = change
        self.roster.fault(EntryError(change.name, IN_CODE))

    def _entry(self, name: str, text: bytes) -> RedlockEntry | None:
        try:
            fields = read(name, document_of(text))
            check_fields(name, fields)
            return self._make(name, fields)
        except EntryError as exc:
            self.roster.fault(exc)
        except Exception as exc:  # noqa: BLE001 - one bad entry does not stop the others
            self.roster.fault(EntryError(name, str(exc)))
        return None
