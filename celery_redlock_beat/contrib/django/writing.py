"""What became of rows, written back in few statements; it reads no schedule.

``PeriodicTasks`` is touched only where a row is disabled, so that nobody reads all rows for a run.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import router, transaction
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from celery_redlock_beat.contrib.django.tables import about, end_transaction, rows_in
from celery_redlock_beat.ledger import wire

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 500
"""Rows per statement."""


@dataclass
class Owed:
    """What the tables do not say yet: last runs and how many, and which rows have run for good."""

    last: dict[str, dt.datetime] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    over: dict[str, dt.datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.last or self.over)

    def sent(self, name: str, at: dt.datetime, runs: int = 1) -> None:
        """Note a run at an instant."""
        self.last[name] = max(at, self.last.get(name, at))
        self.runs[name] = self.runs.get(name, 0) + runs

    def ended(self, name: str, saved: dt.datetime) -> None:
        """Note that a row has run for good, as it was saved at that time."""
        self.over[name] = max(saved, self.over.get(name, saved))

    def add(self, other: Owed) -> None:
        """Take over what another one has."""
        for name, at in other.last.items():
            self.sent(name, at, other.runs[name])
        for name, saved in other.over.items():
            self.ended(name, saved)


class Writer:
    """Write to the tables that ``model`` and ``changes`` return."""

    def __init__(self, model: Callable[[], Any], changes: Callable[[], Any]) -> None:
        self._model = model
        self._changes = changes

    def write(self, owed: Owed) -> None:
        """Write all of it, or nothing.

        Raises:
            DatabaseError: The database is away, or refuses.

        """
        model = self._model()
        alias = router.db_for_write(model)
        with transaction.atomic(using=alias):
            for names in wire.chunks(sorted(owed.last), MOST):
                self._write_runs(model, list(names), owed)
            for names in wire.chunks(sorted(owed.over), MOST):
                self._disable(model, list(names), owed)
        end_transaction(alias)

    def _write_runs(self, model: Any, names: list[str], owed: Owed) -> None:
        # A row that is disabled has no last run, as django-celery-beat wants it; one that is to run
        # once by now, and has a count, would seem to have done so.
        rows = rows_in(model).filter(name__in=names, enabled=True, one_off=False)
        # Nodes that wait for each other's rows would wait for ever: all lock them in one order.
        list(rows.order_by("pk").select_for_update().values_list("pk", flat=True))
        last = [When(name=name, then=Value(stored(owed.last[name]))) for name in names]
        runs = [When(name=name, then=Value(owed.runs[name])) for name in names]
        column = about(model).get_field("last_run_at")
        newest = Case(*last, default=F("last_run_at"), output_field=column)
        rows.update(
            last_run_at=Greatest(Coalesce(F("last_run_at"), newest), newest),
            total_run_count=F("total_run_count") + Case(*runs, default=Value(0)),
        )

    def _disable(self, model: Any, names: list[str], owed: Owed) -> None:
        """Disable rows that have run for good, unless somebody has saved them since."""
        as_known = reduce(or_, (Q(name=name, date_changed=owed.over[name]) for name in names))
        disabled = (
            rows_in(model)
            .filter(as_known, enabled=True)
            .update(
                enabled=False,
                total_run_count=0,
                last_run_at=None,
                date_changed=timezone.now(),
            )
        )
        if disabled:
            self._changes().update_changed()


def stored(moment: dt.datetime) -> dt.datetime:
    """Return an aware moment as the database keeps it: without ``USE_TZ``, naive and in UTC."""
    moment = moment.astimezone(dt.UTC)
    return moment if settings.USE_TZ else moment.replace(tzinfo=None)
