"""Add stored entries, change them and remove them, for operators; it does no other deed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.control.checks import check_keys
from celery_redlock_beat.control.importing import Importing
from celery_redlock_beat.control.reading import Questions
from celery_redlock_beat.control.seeding import Seeding
from celery_redlock_beat.control.selection import Selection, gone
from celery_redlock_beat.control.storing import Storing, changeable
from celery_redlock_beat.errors import ControlError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.control.views import EntryView, Imported, Seeded


class Edits(Questions):
    """Change what is stored, as long as it is what was seen."""

    def __init__(self, app: Celery, *, who: str | None = None) -> None:
        super().__init__(app, who=who)
        self._storing = Storing(self._access, self._catalogue)
        self._importing = Importing(self._access, self._catalogue, self._storing)
        self._seeding = Seeding(self._access, self._catalogue)

    def add(
        self,
        name: str,
        *,
        task: str,
        schedule: Any,
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        relative: bool = False,
        note: str = "",
        **policies: Any,
    ) -> EntryView:
        """Store a new entry; nodes send it from its first tick on.

        ``schedule`` is as in ``beat_schedule``, or the ``{"kind": …}`` of a document.

        Raises:
            EntryExists: There is one of this name, stored or in code.
            EntryError: It could not be sent, or not as it is meant.
        """
        call = {"args": args, "kwargs": kwargs, "options": options, "relative": relative}
        fields = {"task": task, "schedule": schedule, **call, **policies}
        check_keys(name, fields)
        said = {key: value for key, value in fields.items() if value is not None}
        self._storing.add(name, said, note)
        return self.get(name)

    def update(
        self, name: str, *, revision: int | None = None, note: str = "", **changes: Any
    ) -> EntryView:
        """Change fields of a stored entry; ``None`` takes one out.

        With a ``revision``, only if that is the present one. What is due of a schedule that is
        changed is not sent any more.

        Raises:
            NotStored: It is defined in code.
            EntryChanged: It has another revision.
            EntryError: It could not be sent so, or not as it is meant.
        """
        self._access.await_whole()
        self._finder.get(name)
        self._storing.change([name], changes, revision, note)
        return self.get(name)

    def replace(
        self,
        name: str,
        definition: Mapping[str, Any] | str,
        *,
        revision: int | None = None,
        note: str = "",
    ) -> EntryView:
        """Store another document, as data or as JSON, for a stored entry; raises as ``update``."""
        self._storing.replace(name, definition, revision, note)
        return self.get(name)

    def remove(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        all: bool = False,  # noqa: A002 - as operators say it
        revision: int | None = None,
        note: str = "",
    ) -> list[str]:
        """Remove stored entries, with their pauses; return the names of those removed by this.

        When it has returned, nothing of them is enqueued any more.

        Raises:
            NotStored: One that was named is defined in code, or all that were found are.
            EntryChanged: It has another revision than that.
        """
        found = self._find(Selection(names, tag, task, all))
        if revision is not None and len(found) > 1:
            raise ControlError("a revision is that of one entry: name one")
        return self._storing.remove(found, revision, note)

    def enable(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        all: bool = False,  # noqa: A002 - as operators say it
        note: str = "",
    ) -> list[EntryView]:
        """Enable stored entries; nothing of before is caught up. Raises as ``update``."""
        return self._change(Selection(names, tag, task, all), note, enabled=None)

    def disable(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        all: bool = False,  # noqa: A002 - as operators say it
        note: str = "",
    ) -> list[EntryView]:
        """Disable stored entries; what is due is not sent any more. Raises as ``update``."""
        return self._change(Selection(names, tag, task, all), note, enabled=False)

    def import_(
        self,
        documents: Mapping[str, Mapping[str, Any] | str],
        *,
        replace: bool = False,
        note: str = "",
        last_runs: Mapping[str, datetime] | None = None,
    ) -> list[Imported]:
        """Store documents, as data or as JSON, by name; one that is refused stops no other.

        ``replace`` changes entries that are stored otherwise. ``last_runs`` are the aware instants
        at which another scheduler sent them last: what it did up to then is not sent again, and
        what was due since is caught up.
        """
        done = self._importing.import_(documents, note, last_runs or {}, replace=replace)
        stored = {each.name for each in done if each.done != "refused"}
        runs = {name: at for name, at in (last_runs or {}).items() if name in stored}
        if runs:  # the other scheduler may have sent since they were stored first
            self._seeding.seed(runs, note, again=True, dry_run=False)
        return done

    def seed(
        self,
        last_runs: Mapping[str, datetime],
        *,
        again: bool = False,
        note: str = "",
        dry_run: bool = False,
    ) -> list[Seeded]:
        """Let entries, from code or stored, begin where another scheduler stopped.

        ``last_runs`` are the aware instants at which it sent them last, by name: nothing up to then
        is sent again, and what was due since is caught up as their policies say. An interval that
        says no phase goes on with that of its last run. It is refused, entry by entry, once a tick
        was claimed, or while a node lives that has begun to count; with ``again``, an entry that
        the other scheduler has sent since is taken all the same. ``dry_run`` only tells.

        Raises:
            ControlError: A last run has no offset from UTC.
        """
        return self._seeding.seed(last_runs, note, again=again, dry_run=dry_run)

    def last_runs(self) -> dict[str, datetime]:
        """Return, by name, up to when each entry from code was dealt with, in UTC.

        It is what another scheduler has to take for its last runs, so that it repeats nothing and
        goes on. An entry that no node has begun to count is left out.
        """
        return self._seeding.last_runs()

    def _change(self, selection: Selection, note: str, **changes: Any) -> list[EntryView]:
        found = changeable(self._find(selection))
        self._storing.change([each.name for each in found], changes, None, note)
        return self._again(found)

    def _find(self, selection: Selection, *, also_gone: bool = False) -> list[Found]:
        selection.check()
        self._access.await_whole()
        return self._finder.find(selection, also_gone=also_gone)

    def _again(self, found: list[Found], *, also_gone: bool = False) -> list[EntryView]:
        looks = self._access.looks([each.name for each in found])
        told = (
            (self._catalogue.of(look) or (gone(look) if also_gone else None), look)
            for look in looks
        )
        return [self._describer.view(known, look) for known, look in told if known]
