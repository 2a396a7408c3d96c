"""Write the entries of ``beat_schedule`` into the tables, as far as they differ; it removes none.

Nodes that start at once do not collide: whoever is second looks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, router, transaction

from celery_redlock_beat.contrib.django.drafts import is_same
from celery_redlock_beat.contrib.django.rows import KINDS
from celery_redlock_beat.contrib.django.tables import about, end_transaction, rows_in
from celery_redlock_beat.contrib.django.writing import stored
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ledger import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from celery_redlock_beat.contrib.django.drafts import Draft

MOST = 500
TRIES = 5


class SettingUp:
    """Write drafts into the tables of the model that ``model`` returns.

    ``changes`` returns the one that tells of changes, which is locked meanwhile.
    """

    def __init__(self, model: Callable[[], Any], changes: Callable[[], Any]) -> None:
        self._model = model
        self._changes = changes

    def write(self, drafts: Sequence[Draft]) -> list[EntryError]:
        """Write what differs; return what is wrong with those that cannot be written.

        Raises:
            DatabaseError: The database is away, or has no such tables.

        """
        return [
            error
            for chunk in wire.chunks(list(drafts), MOST)
            for draft in self._differing(chunk)
            if (error := self._write(draft))
        ]

    def _differing(self, drafts: Sequence[Draft]) -> Iterator[Draft]:
        rows = rows_in(self._model()).filter(name__in=[each.name for each in drafts])
        present = {row.name: row for row in rows.select_related(*KINDS)}
        return (
            draft
            for draft in drafts
            if draft.name not in present or not is_same(draft, present[draft.name])
        )

    def _write(self, draft: Draft) -> EntryError | None:
        alias = router.db_for_write(self._model())
        problem: Exception | None = None
        for _ in range(TRIES):
            try:
                with transaction.atomic(using=alias):
                    self._put(draft)
                end_transaction(alias)
            except (IntegrityError, ValidationError) as exc:
                problem = exc  # another node was quicker, perhaps
                if not list(self._differing([draft])):
                    return None
            except (DataError, TypeError, ValueError) as exc:
                return EntryError(draft.name, f"it cannot be written to its row: {exc}")
            else:
                return None
        return EntryError(draft.name, f"it cannot be written to its row: {problem}")

    def _put(self, draft: Draft) -> None:
        model = self._model()
        # Nodes go one after the other from here: two of them would make two equal schedules.
        self._changes().update_changed()
        if not list(self._differing([draft])):
            return
        kinds = [kind for kind in KINDS if hasattr(model, kind)]
        own = about(model).get_field(draft.kind).related_model
        columns = _stored(draft.schedule)
        # Not get_or_create: only solar events are unique, and of others there may be several.
        found = own.objects.filter(**columns).order_by("pk").first()
        place = found or own.objects.create(**columns)
        defaults = {**dict.fromkeys(kinds), draft.kind: place, **draft.columns}
        rows_in(model).update_or_create(name=draft.name, defaults=defaults)


def _stored(columns: dict[str, Any]) -> dict[str, Any]:
    at = columns.get("clocked_time")
    return columns if at is None else {**columns, "clocked_time": stored(at)}
