"""Add stored entries, change them, and remove them, as long as they are what was seen.

It touches no entry from code, and stores nothing that beat would leave out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.claims import registration_of
from celery_redlock_beat.control.checks import check_keys, check_text
from celery_redlock_beat.control.known import data_of, is_stored
from celery_redlock_beat.control.views import Origin
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.documents import schedules
from celery_redlock_beat.errors import (
    ConfigurationError,
    ControlError,
    EntryChanged,
    EntryError,
    EntryExists,
    NoSuchEntry,
    NotStored,
)
from celery_redlock_beat.ledger.steering import Definition, Removal
from celery_redlock_beat.remainder import remainder
from celery_redlock_beat.ticks import Reason, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue, Known
    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.host import LastRun
    from celery_redlock_beat.ledger.steering import Look

logger = logging.getLogger(__name__)


class Storing:
    """Write stored entries."""

    def __init__(self, access: Access, catalogue: Catalogue) -> None:
        self._access = access
        self._catalogue = catalogue

    def add(self, name: str, fields: Mapping[str, Any], note: str) -> None:
        """Store a new entry.

        Raises:
            EntryExists: There is one of this name.
            EntryError: It could not be sent, or not as it is meant.
        """
        check_text("note", note)
        self._catalogue.follow()
        text, made = self.written(name, fields)

        def prepare(look: Look) -> Iterator[Definition]:
            if name in self._catalogue.code():
                raise EntryExists(
                    f"entry {shown(name)!r} is defined in code: choose another name, or change it "
                    "there"
                )
            if is_stored(look):
                raise EntryExists(
                    f"entry {shown(name)!r} is stored already, with revision {look.revision}: "
                    "update or replace it, or choose another name"
                )
            yield self.definition(look, text, made, note)

        self._store([name], prepare)

    def change(
        self, names: Sequence[str], changes: Mapping[str, Any], revision: int | None, note: str
    ) -> None:
        """Change fields of stored entries; ``None`` takes one out.

        Raises:
            NoSuchEntry: It is not there.
            NotStored: It is defined in code.
            EntryChanged: It has another revision than that.
            EntryError: It could not be sent so, or not as it is meant.
        """
        for name in names:
            check_keys(name, changes)

        def fields_of(look: Look) -> Mapping[str, Any]:
            fields = documents.read(look.entry, look.document)
            return {key: value for key, value in {**fields, **changes}.items() if value is not None}

        self._rewrite(names, fields_of, revision, note)

    def replace(
        self, name: str, document: Mapping[str, Any] | str, revision: int | None, note: str
    ) -> None:
        """Store another document for an entry; raises as ``change``."""
        self._catalogue.follow()
        fields = fields_in(name, document)
        self._rewrite([name], lambda _: fields, revision, note)

    def remove(self, found: Sequence[Found], revision: int | None, note: str) -> list[str]:
        """Remove stored entries; return the names of those that are gone by this.

        Raises:
            NotStored: It is defined in code, or all that were found are.
            EntryChanged: It has another revision than that.
        """
        check_text("note", note)
        names = [each.name for each in stored_ones(found)]
        removed: list[str] = []

        def prepare(look: Look) -> Iterator[Removal]:
            _check_revision(look, revision, None)
            if is_stored(look):
                yield self._removal(look, note)

        def ask(rows: list[Removal]) -> list[Any]:
            answers = self._access.steering.remove(rows)
            removed.extend(each.entry for each in answers if each.done)
            return answers

        self._give_up(self._access.carry_out(names, prepare, ask))
        return removed

    def _rewrite(
        self,
        names: Sequence[str],
        fields_of: Callable[[Look], Mapping[str, Any]],
        revision: int | None,
        note: str,
    ) -> None:
        check_text("note", note)

        def prepare(look: Look) -> Iterator[Definition]:
            if look.entry in self._catalogue.code():
                raise _in_code(look.entry)
            if not is_stored(look):
                _check_revision(look, revision, None)
                raise NoSuchEntry(f"there is no stored entry {shown(look.entry)!r}: add it")
            text, made = self.written(look.entry, fields_of(look))
            _check_revision(look, revision, text)
            if text.encode() != look.document:
                yield self.definition(look, text, made, note)

        self._store(names, prepare)

    def _store(self, names: Sequence[str], prepare: Callable[[Look], Iterator[Definition]]) -> None:
        self._give_up(self._access.carry_out(names, prepare, self._access.steering.store))

    def _give_up(self, names: Sequence[str]) -> None:
        if names:
            raise ControlError(
                f"entry {shown(names[0])!r} was changed again and again while it was to be: try "
                "again, and see celery redlock doctor if it stays so"
            )

    def _removal(self, look: Look, note: str) -> Removal:
        known = self._catalogue.of(look)
        if known and known.origin is Origin.CODE:
            return Removal(look.entry, look.revision, None, note, hidden=True)
        slot = known.slot if known else None
        ended = remainder(look, slot, Reason.REMOVED, look.now, held=True)
        return Removal(look.entry, look.revision, ended, note)

    def written(self, name: str, fields: Mapping[str, Any]) -> tuple[str, Known]:
        """Return the document of an entry, and what nodes make of it."""
        schedule = fields.get("schedule")
        try:
            if isinstance(schedule, dict):
                fields = {**fields, "schedule": schedules.read(schedule)}
            text = documents.written(name, fields)
        except EntryError:
            raise
        except ConfigurationError as exc:
            raise EntryError(name, str(exc)) from None
        return text, self._catalogue.made(name, documents.read(name, text))

    def definition(
        self, look: Look, text: str, made: Known, note: str, last_run: LastRun | None = None
    ) -> Definition:
        """Return an entry to store; what is due of another timetable is counted.

        ``last_run`` tells when another scheduler sent it last.
        """
        assert made.slot  # noqa: S101 - it was made
        if look.record:
            made.slot.go_on(look.record.fingerprint)
        known, ended = registration_of(made.slot, last_run=last_run), None
        if is_stored(look) and look.record and look.record.fingerprint != made.slot.fingerprint:
            before = self._catalogue.stored(look)
            slot = before.slot if before else None
            ended = remainder(look, slot, Reason.BEFORE_REGISTRATION, look.now, held=True)
        return Definition(text, known, look.revision, ended, note)


def fields_in(name: str, document: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return the fields of a document, given as data or as JSON.

    Raises:
        EntryError: It is none.
    """
    if isinstance(document, str):
        return documents.read(name, document)
    return documents.fields_of(name, document)


def stored_ones(found: Sequence[Found]) -> list[Found]:
    """Return the stored ones of those that were found.

    Raises:
        NotStored: One that was named is defined in code, or all of them are.
    """
    stored = [each for each in found if is_stored(each.look)]
    named = [each for each in found if each.by_name and not is_stored(each.look)]
    if named or (found and not stored):
        raise _in_code((named or list(found))[0].name)
    return stored


def changeable(found: Sequence[Found]) -> list[Found]:
    """Return those that can be rewritten: stored ones, but bad ones only if they were named.

    Raises:
        NotStored: One that was named is defined in code, or all of them are.
    """
    ours = [each for each in found if each.known.origin is Origin.STORED]
    code = [each for each in found if each.known.origin is Origin.CODE]
    named = [each for each in code if each.by_name]
    if named or (code and not ours):
        raise _in_code((named or code)[0].name)
    for each in ours:
        if each.known.is_bad and not each.by_name:
            logger.warning("entry %s is not changed: %s", shown(each.name), each.known.problem)
    return [each for each in ours if each.by_name or not each.known.is_bad]


def _in_code(name: str) -> NotStored:
    return NotStored(
        f"entry {shown(name)!r} is defined in code, and only stored entries can be changed so: "
        "edit it in code, or pause it"
    )


def _check_revision(look: Look, revision: int | None, ours: str | None) -> None:
    if revision is not None and look.revision != revision:
        document = data_of(ours.encode()) if ours else {}
        raise EntryChanged(look.entry, revision, look.revision, document, data_of(look.document))
