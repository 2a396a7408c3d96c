"""An app's stored entries for RedBeat's callers: each by its exact name; it decides no schedule."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from threading import RLock
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.contrib.redbeat.phases import is_plain_interval, period_of, with_phase
from celery_redlock_beat.control import Control, Origin, State
from celery_redlock_beat.control.describing import pause_of
from celery_redlock_beat.control.firing import Order
from celery_redlock_beat.control.known import is_stored
from celery_redlock_beat.control.selection import Found
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.entry_checks import check_name
from celery_redlock_beat.errors import ControlError, EntryError, EntryExists, NoSuchEntry
from celery_redlock_beat.ledger import Seed
from celery_redlock_beat.ticks import SECOND, shown, to_datetime
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from celery import Celery

    from celery_redlock_beat.ledger.steering import Definition, Look
    from celery_redlock_beat.ticks import Micros

    Fields = Mapping[str, Any]

NOTE = "through RedBeat's interface"
A_MOMENT = timedelta(seconds=10)
"""How long a pause lasts at most that is ended at once."""


class Keeper(Control):
    """Look at stored entries, store and remove them; one that is named is no pattern.

    All may raise as ``Control`` does. Threads take turns.
    """

    def __init__(self, app: Celery) -> None:
        super().__init__(app)
        self._turn = RLock()

    def found(self, name: str) -> Found | None:
        """Return the entry of exactly this name, from code or stored, or ``None``."""
        check_name(name)
        with self._turn:
            self._access.await_whole()
            self._catalogue.follow()
            (look,) = self._access.looks([name])
            known = self._catalogue.of(look)
            return Found(known, look, by_name=True) if known else None

    def keep(self, name: str, fields: Fields, last_run: Micros) -> None:
        """Store an entry, whether or not there is one of its name.

        A new one begins at its last run: what was due since is caught up as its policy says. An
        interval counts from there, and goes on so as long as its period stays.

        Raises:
            EntryExists: The code has an entry of this name.
            EntryError: It cannot be stored, or not as it is meant.
        """

        def fields_at(look: Look) -> Fields:
            before = _stored_fields(look)
            mark = look.record.mark if is_stored(look) and look.record else last_run
            return with_phase(fields, before, min(mark, look.now))

        self._rewrite(name, fields_at, last_run)

    def drop(self, name: str) -> None:
        """Remove a stored entry; one that is not there is removed already.

        Raises:
            NotStored: It is defined in code.
        """
        with self._turn:
            found = self.found(name)
            if found:
                self._storing.remove([found], None, NOTE)

    def rank(self, name: str) -> int | None:
        """Return how many entries are due before this one; ``None`` if it is not due at all."""
        with self._turn:
            due = [view for view in self.entries() if view.next and view.state is State.ACTIVE]
        names = [view.name for view in sorted(due, key=lambda view: (view.next, view.name))]
        return names.index(name) if name in names else None

    def reschedule(self, name: str, last_run: Micros | None) -> None:
        """Go on as if an entry had been sent at an instant, or now.

        Raises:
            NoSuchEntry: There is none.
            EntryPaused: It would be due at once, and is paused.
        """
        with self._turn:
            found = self._held_by_nobody(name)
            slot, now = found.known.slot, found.look.now
            at = now if last_run is None else last_run
            if at > now + SECOND:  # less is how far clocks differ
                self._count_from(found, at)
                if not pause_of(found.look):
                    self._holding.pause([found], NOTE, to_datetime(at))
            elif slot and slot.policy.enabled and _is_due(found, min(at, now)):
                self._fire(found)
                self._count_from(found, now)
            else:
                self._count_from(found, min(at, now))

    def _held_by_nobody(self, name: str) -> Found:
        """Return an entry to reschedule, which an earlier reschedule holds back no longer."""
        found = self.found(name)
        if found is None:
            raise NoSuchEntry(f"there is no entry {shown(name)!r} to reschedule: save it first")
        if found.known.is_bad:
            raise EntryError(name, found.known.problem)
        if found.look.pause and found.look.pause.note == NOTE:
            self._holding.resume([found], NOTE, catch_up=False)
            return self.found(name) or found
        return found

    def _fire(self, found: Found) -> None:
        order = Order(None, force=False, note=NOTE)
        self._gun.check(found, order)
        self._gun.fire(found, order)

    def _count_from(self, found: Found, at: Micros) -> None:
        """Have an entry owe nothing, and a stored interval be due a period after an instant."""
        entry = found.known.entry
        if found.known.origin is Origin.STORED and entry and is_plain_interval(entry.schedule):
            phase = at % period_of(entry.schedule) / SECOND
            if _stored_fields(found.look).get("phase") != phase:
                self._rewrite(found.name, lambda look: _shifted(look, phase), at)
                return
        if not pause_of(found.look):  # whose end passes over what is due meanwhile
            self._holding.pause([found], NOTE, A_MOMENT)
            paused = self.found(found.name)
            self._holding.resume([paused] if paused else [], NOTE, catch_up=False)

    def _rewrite(self, name: str, fields_at: Callable[[Look], Fields], last_run: Micros) -> None:
        def prepare(look: Look) -> Iterator[Definition]:
            if name in self._catalogue.code():
                raise EntryExists(
                    f"entry {shown(name)!r} is defined in code, which RedBeat would have put "
                    "in the place of what is saved: change it there, or save under another name"
                )
            fields = fields_at(look)
            if not fields:
                return
            text, made = self._storing.written(name, fields)
            if text.encode() == look.document:
                return
            definition = self._storing.definition(look, text, made, NOTE)
            if not is_stored(look):
                seed = Seed(max(0, min(last_run, look.now)))
                known = replace(definition.registration, seed=seed)
                definition = replace(definition, registration=known)
            yield definition

        with self._turn:
            self._access.await_whole()
            self._catalogue.follow()
            if self._access.carry_out([name], prepare, self._access.steering.store):
                raise ControlError(f"entry {shown(name)!r} changes all the time: save it again")


def keeper_of(app: Celery) -> Keeper:
    """Return the one keeper of an app in this process; a fork gets its own."""
    key = f"redlock_keeper_{os.getpid()}"
    keeper: Keeper | None = vars(app).get(key)
    if keeper is None:
        keeper = vars(app).setdefault(key, Keeper(app))
    return keeper


def _stored_fields(look: Look) -> dict[str, Any]:
    """Return the fields of a stored entry, empty where there is none, or none that can be read."""
    if not is_stored(look):
        return {}
    try:
        return documents.read(look.entry, look.document)
    except EntryError:
        return {}


def _shifted(look: Look, phase: float) -> Fields:
    """Return the fields of a stored entry with another phase, empty where it is gone meanwhile."""
    fields = _stored_fields(look)
    return {**fields, "phase": phase} if fields else {}


def _is_due(found: Found, last_run: Micros) -> bool:
    """Answer whether an entry that was sent last at an instant would be due by now."""
    known, slot = found.known, found.known.slot
    if known.entry and is_plain_interval(known.entry.schedule):
        return last_run + period_of(known.entry.schedule) <= found.look.now
    if slot is None or isinstance(slot.timetable, Opaque):
        return False
    following = slot.timetable.next_after(last_run)
    return following is not None and following <= found.look.now
