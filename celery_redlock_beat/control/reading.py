"""What operators can ask; it changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.control import explaining, fleet
from celery_redlock_beat.control.access import Access, moment
from celery_redlock_beat.control.checks import choice_of, instant_of
from celery_redlock_beat.control.condition import health_of
from celery_redlock_beat.control.describing import Describer
from celery_redlock_beat.control.known import Catalogue, data_of, is_stored
from celery_redlock_beat.control.records import Records, searched
from celery_redlock_beat.control.selection import Finder, Selection
from celery_redlock_beat.control.upcoming import to_come
from celery_redlock_beat.control.views import Origin, State, Why
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.errors import EntryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from celery import Celery

    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.control.views import (
        EntryView,
        Health,
        HistoryRecord,
        NodeView,
        Upcoming,
    )


class Questions:
    """Ask how entries, ticks and nodes are.

    Names may be shell patterns; a ``tag`` and a ``task``, which may be a pattern too, narrow what
    is meant; without any, all entries are. Each method may raise ``LedgerUnavailable``, and
    ``ConfigurationError`` where beat itself would not start, or the ledger is ``memory://``.
    """

    def __init__(self, app: Celery, *, who: str | None = None) -> None:
        self._access = Access(app, who)
        self._catalogue = Catalogue(app)
        self._finder = Finder(self._access, self._catalogue)
        self._describer = Describer(app, self._access.settings.namespace)
        self._records = Records(self._access, self._catalogue, self._finder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections; it can be asked again, and then connects anew."""
        self._access.close()

    def entries(
        self,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        state: State | str | None = None,
        origin: Origin | str | None = None,
    ) -> list[EntryView]:
        """Return entries by name, those of a state and of an origin.

        Raises:
            NoSuchEntry: One of the names matches none, or nothing matches all that was said.
            ControlError: There is no such state or origin.
        """
        whence = choice_of(Origin, "origin", origin)
        wanted = choice_of(State, "state", state)
        found = self._finder.find(Selection(names, tag, task, everything=True))
        views = self._views([each for each in found if whence in {None, each.known.origin}])
        return [view for view in views if wanted in {None, view.state}]

    def get(self, name: str) -> EntryView:
        """Return the entry of this name.

        Raises:
            NoSuchEntry: There is none.
        """
        return self._views([self._finder.get(name)])[0]

    def upcoming(
        self,
        number: int = 10,
        *names: str,
        tag: str | None = None,
        task: str | None = None,
        begin: datetime | None = None,
    ) -> list[Upcoming]:
        """Return so many ticks in the order they are due, from an instant on, or from now.

        What was claimed is not to come. Schedules that alone know what is due are left out, as are
        disabled and bad entries.

        Raises:
            NoSuchEntry: As ``entries``.
        """
        found = self._finder.find(Selection(names, tag, task, everything=True))
        return to_come(found, number, None if begin is None else instant_of(begin, "begin"))

    def history(
        self, *names: str, number: int = 20, tag: str | None = None, task: str | None = None
    ) -> list[HistoryRecord]:
        """Return so many records, the newest first, also of entries that are gone.

        Raises:
            NoSuchEntry: There is neither such an entry nor a record of one.
        """
        return self._records.newest(Selection(names, tag, task), number)

    def why(self, name: str, at: datetime) -> Why:
        """Return why a tick is what it is.

        Raises:
            NoSuchEntry: There is neither such an entry nor a record of one.
            ControlError: The instant has no offset from UTC.
        """
        self._catalogue.follow()
        tick = instant_of(at)
        (look,) = self._access.looks([name])
        known = self._catalogue.of(look)
        newest = self._records.newest_of(name) if known is None else None
        if known is None and newest is None:
            raise self._finder.no_such(name)
        case = explaining.Case(
            at=tick,
            look=look,
            known=known,
            newest=newest,
            row=searched(self._access.history(), name, tick),
            begins=self._access.history_begins(),
            nodes=sum(node.alive for node in self.nodes()),
            records=bool(self._access.settings.history),
        )
        found = explaining.because(case)
        (record,) = self._records.told([found.row]) if found.row else [None]
        return Why(name, moment(tick), found.answer, found.text, record)

    def nodes(self) -> list[NodeView]:
        """Return the nodes of the last day, the live ones first."""
        condition = self._access.registry.condition()
        return fleet.views(fleet.beats_of(condition), condition.now)

    def health(self) -> Health:
        """Return whether the fleet does its work; a ledger that is away is told as a problem."""
        return health_of(self._access)

    def totals(self) -> dict[str, int]:
        """Return how often each outcome came about since the ledger began."""
        return self._access.registry.totals()

    def export(
        self, *names: str, tag: str | None = None, task: str | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return the documents of stored entries by name, also of bad ones that are documents.

        Raises:
            NoSuchEntry: As ``entries``.
        """
        self._access.await_whole()
        found = self._finder.find(Selection(names, tag, task, everything=True))
        told = {each.name: data_of(each.look.document) for each in found if is_stored(each.look)}
        return {name: document for name, document in told.items() if document}

    def export_code(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """Return the documents of entries from code, and why others have none, by name."""
        self._catalogue.follow()
        exported: dict[str, dict[str, Any]] = {}
        problems: dict[str, str] = {}
        for name, known in sorted(self._catalogue.code().items()):
            if known.entry is None or known.is_bad:
                problems[name] = known.problem
                continue
            try:
                exported[name] = data_of(documents.written(name, known.entry).encode())
            except EntryError as exc:
                problems[name] = exc.problem
        return exported, problems

    def _views(self, found: Sequence[Found]) -> list[EntryView]:
        return [self._describer.view(each.known, each.look) for each in found]
