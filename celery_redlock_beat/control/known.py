"""The entries that operators can name, from code and stored, as nodes take them; it sends none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.control.views import Origin
from celery_redlock_beat.diagnostics.schedules.hearing import heard
from celery_redlock_beat.diagnostics.schedules.loading import scheduler_of
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.roster import slot_of
from celery_redlock_beat.stored import IN_CODE
from celery_redlock_beat.timetables import Opaque, app_zone, timetable_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery

    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger.steering import Look
    from celery_redlock_beat.scheduler import RedlockScheduler


@dataclass(frozen=True, slots=True)
class Known:
    """An entry: without ``entry`` and ``slot`` it is a bad one, and ``problem`` says why.

    ``document`` is that of a stored one, as far as it can be read.
    """

    name: str
    origin: Origin
    entry: RedlockEntry | None = None
    slot: Slot | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether no node can send it."""
        return self.slot is None

    @property
    def task(self) -> str:
        """The name of its task, empty if that cannot be told."""
        return str(self.entry.task if self.entry else self.document.get("task") or "")

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        told = getattr(self.entry, "tags", None) if self.entry else self.document.get("tags")
        return tuple(sorted(map(str, told))) if isinstance(told, list | tuple | set) else ()

    @property
    def description(self) -> str:
        """What it is for."""
        told = getattr(self.entry, "description", "") if self.entry else ""
        return str(told or self.document.get("description") or "")


class Catalogue:
    """Tell what an entry is; the app's schedule is loaded when it is first needed.

    What was changed in code since is taken in by ``follow``, once for each deed and question. Each
    method may raise ``ConfigurationError`` where beat itself would not start.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._lock = RLock()
        self._scheduler: RedlockScheduler | None = None
        self._configured: Any = None
        self._code: dict[str, Known] = {}
        self._stored: dict[str, tuple[bytes, Known]] = {}

    def follow(self) -> None:
        """Take in what was added to the app's schedule, changed and taken out of it."""
        scheduler = self.scheduler()
        with self._lock:
            if scheduler.reads_elsewhere or self._configured != self._app.conf.beat_schedule:
                with heard():
                    scheduler.setup_schedule()
                    scheduler.roster.compare(scheduler.schedule)
                self._take_code(scheduler)

    def scheduler(self) -> RedlockScheduler:
        """Return the app's scheduler with its schedule; it is never run."""
        with self._lock:
            if self._scheduler is None:
                with heard():
                    scheduler = scheduler_of(self._app)
                app_zone(self._app)  # without it, each entry would seem to be a bad one
                self._scheduler = scheduler
                self._take_code(self._scheduler)
            return self._scheduler

    def code(self) -> Mapping[str, Known]:
        """Return the entries from code by name."""
        self.scheduler()
        return self._code

    def of(self, look: Look) -> Known | None:
        """Return the entry that was looked at, or ``None`` where there is none."""
        known = self.code().get(look.entry)
        if known is None:
            return self.stored(look)
        if known.slot and look.record:
            known.slot.go_on(look.record.fingerprint)
        if is_stored(look) and not known.problem:
            return Known(known.name, known.origin, known.entry, known.slot, problem=IN_CODE)
        return known

    def stored(self, look: Look) -> Known | None:
        """Return the stored entry that was looked at, whatever the code has, or ``None``."""
        if not is_stored(look):
            self._stored.pop(look.entry, None)
            return None
        text, known = self._stored.get(look.entry, (b"", None))
        if known is None or text != look.document:
            known = self._read(look.entry, look.document)
            self._stored[look.entry] = look.document, known
        if known.slot and look.record:
            known.slot.go_on(look.record.fingerprint)
        return known

    def made(self, name: str, fields: Mapping[str, Any]) -> Known:
        """Return the stored entry that nodes would make of fields.

        Raises:
            EntryError: It could not be sent, or not as it is meant.
        """
        scheduler = self.scheduler()
        try:
            entry = scheduler.Entry(**{**fields, "name": name, "app": self._app})
            slot, _, _ = slot_of(
                name,
                entry,
                scheduler.roster.settings,
                lambda terms: timetable_for(entry.schedule, self._app, terms),
            )
        except EntryError:
            raise
        except Exception as exc:  # whatever it is, beat would leave the entry out
            raise EntryError(name, str(exc)) from exc
        if isinstance(slot.timetable, Opaque):
            raise EntryError(
                name,
                f"only the class {type(entry.schedule).__qualname__} knows when it is due, and "
                "only the schedule of the app itself can have that",
            )
        return Known(name, Origin.STORED, entry, slot)

    def _read(self, name: str, text: bytes) -> Known:
        document = data_of(text)
        try:
            made = self.made(name, documents.read(name, text))
        except EntryError as exc:
            return Known(name, Origin.STORED, document=document, problem=exc.problem)
        return Known(name, Origin.STORED, made.entry, made.slot, document)

    def _take_code(self, scheduler: RedlockScheduler) -> None:
        configured = self._app.conf.beat_schedule
        self._configured = dict(configured)
        good = {
            slot.name: Known(slot.name, Origin.CODE, scheduler.schedule.get(slot.name), slot)
            for slot in scheduler.roster.slots()
        }
        bad = {
            str(name): Known(str(name), Origin.CODE, problem=problem)
            for name, problem in scheduler.roster.faults.items()
        }
        self._code = {**good, **bad}


def is_stored(look: Look) -> bool:
    """Whether the entry is stored, also where somebody wrote it by hand."""
    return bool(look.revision or look.document)


def data_of(text: bytes) -> dict[str, Any]:
    """Return a document as data, empty where it is none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
