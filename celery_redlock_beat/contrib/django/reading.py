"""What the tables say by now, as changes since the last look; it writes nothing.

Each look asks a constant number of questions, however many rows there are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from celery_redlock_beat.contrib.django.apart import rows_of
from celery_redlock_beat.contrib.django.begins import begins, enabled_since
from celery_redlock_beat.contrib.django.rows import (
    KINDS,
    document_of,
    fields_of,
    runs_once,
    schedule_of,
)
from celery_redlock_beat.contrib.django.tables import about
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ticks import Micros, to_micros
from celery_redlock_beat.timetables import once

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from celery import Celery

    from celery_redlock_beat.entries import RedlockEntry

VOLATILE = {"last_run_at", "total_run_count", "date_changed"}
"""Columns that change by themselves; only where a row runs once do they tell when."""

logger = logging.getLogger(__name__)


class Row(NamedTuple):
    """An entry and what else its row says: when it runs, if it runs once, and when it was saved."""

    entry: RedlockEntry
    at: Micros | None
    saved: dt.datetime | None


@dataclass(frozen=True)
class News:
    """What changed: rows that are new or others, those that are gone or bad, and why.

    ``begins`` has, for every row, from when on it counts where the ledger does not know it.
    ``spent`` are rows that run once and did so before, ``again`` those that were disabled until
    now.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    faults: list[EntryError] = field(default_factory=list)
    begins: dict[str, dt.datetime] = field(default_factory=dict)
    spent: list[tuple[str, dt.datetime]] = field(default_factory=list)
    again: set[str] = field(default_factory=set)


class Reader:
    """Read the rows, and tell those that differ from the last time.

    ``models`` returns the rows that are enabled, as the scheduler's ``enabled_models`` does,
    ``queryset`` a query for them, and ``disabled`` the names of the others; ``make`` makes an entry
    of a name and fields.
    """

    def __init__(
        self,
        app: Celery,
        models: Callable[[], Iterable[Any]],
        queryset: Callable[[], Any],
        disabled: Callable[[], Iterable[str]],
        make: Callable[[str, dict[str, Any]], RedlockEntry],
    ) -> None:
        self._app = app
        self._models = models
        self._queryset = queryset
        self._disabled = disabled
        self._make = make
        self._signs: dict[str, tuple[Any, ...]] = {}
        self._rows: dict[str, Row] = {}
        self._off: set[str] = set()

    def read(self) -> News:
        """Read all rows; return what changed since the last time.

        Raises:
            DatabaseError: The database is away, or has no such tables.

        """
        # Asked before: one that is enabled meanwhile is in both, and none is enabled unseen.
        off = set(self._disabled())
        models, unreadable = rows_of(self._models, self._queryset)
        seen: dict[str, tuple[Any, ...]] = {each.entry: (each.problem,) for each in unreadable}
        news = News(faults=[each for each in unreadable if self._is_new(each.entry, seen)])
        news.gone.update(each.entry for each in news.faults)
        for model in models:
            name = model.name
            seen[name] = signs_of(model)
            if self._is_new(name, seen):
                self._rows.pop(name, None)
                self._take(model, news)
        news.again.update((self._off | off) & news.rows.keys())
        news.begins.update(self._beginnings(models, news.again))
        news.gone.update(self._signs.keys() - seen.keys())
        for name in news.gone:
            self._rows.pop(name, None)
        self._signs, self._off = seen, off
        return news

    def _is_new(self, name: str, seen: Mapping[str, tuple[Any, ...]]) -> bool:
        return seen[name] != self._signs.get(name)

    def _beginnings(
        self, models: Iterable[Any], again: Collection[str]
    ) -> Iterator[tuple[str, dt.datetime]]:
        for model in models:
            row = self._rows.get(model.name)
            begun = begins(model, row.at if row else None)
            if begun is None and model.name not in again:
                begun = enabled_since(model)
            if begun is not None:
                yield model.name, begun

    def _take(self, model: Any, news: News) -> None:
        try:
            if model.one_off and model.total_run_count:
                news.spent.append((model.name, model.date_changed))
                news.gone.add(model.name)
                return
            row = self._row(model)
        except EntryError as exc:
            news.faults.append(exc)
        except (DatabaseError, InterfaceError):
            raise
        except Exception as exc:  # noqa: BLE001 - one bad row does not stop the others
            news.faults.append(EntryError(model.name, str(exc)))
        else:
            self._rows[model.name] = news.rows[model.name] = row
            return
        news.gone.add(model.name)

    def _row(self, model: Any) -> Row:
        zones = getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True)
        fields = fields_of(model, document_of(model, self._app, zones=zones))
        entry = self._make(model.name, fields)
        if not runs_once(model):
            return Row(entry, None, None)
        at = fields["schedule"].at if isinstance(fields["schedule"], once) else None
        return Row(entry, None if at is None else to_micros(at), model.date_changed)


def signs_of(model: Any) -> tuple[Any, ...]:
    """Return all that a row and its schedule say, to be compared."""
    passed_over = () if runs_once(model) else VOLATILE
    parts = [model, *(each for kind in KINDS if (each := schedule_of(model, kind)) is not None)]
    return tuple(value for part in parts for value in _values(part, passed_over))


def _values(part: Any, passed_over: Iterable[str]) -> Iterator[Any]:
    for column in about(part).concrete_fields:
        if column.attname not in passed_over:
            yield part.__dict__.get(column.attname)
