"""Rows read so that one which cannot be read keeps none from the others; it judges no values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, InterfaceError

from celery_redlock_beat.errors import EntryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def rows_of(
    models: Callable[[], Iterable[Any]], queryset: Callable[[], Any]
) -> tuple[list[Any], list[EntryError]]:
    """Return all rows, and what is wrong with those that Django itself cannot read.

    A zone that does not exist, for one, fails the whole query. Then halves are read, and halves of
    those: that costs some queries, as long as there is such a row.

    Raises:
        DatabaseError: The database is away, or has no such tables.
        InterfaceError: The same.

    """
    try:
        return list(models()), []
    except (DatabaseError, InterfaceError):
        raise
    except Exception:  # noqa: BLE001 - whatever a value makes of it; the row is named below
        bad: list[EntryError] = []
        keys = list(queryset().values_list("pk", "name"))
        return _apart(queryset(), keys, bad), bad


def _apart(queryset: Any, keys: Sequence[tuple[Any, str]], bad: list[EntryError]) -> list[Any]:
    if not keys:
        return []
    try:
        return list(queryset.filter(pk__in=[key for key, _ in keys]))
    except (DatabaseError, InterfaceError):
        raise
    except Exception as exc:  # noqa: BLE001 - as above
        if len(keys) == 1:
            told = "; ".join(getattr(exc, "messages", None) or [str(exc) or repr(exc)])
            bad.append(EntryError(keys[0][1], f"its row cannot be read: {told}"))
            return []
        middle = len(keys) // 2
        halves = (keys[:middle], keys[middle:])
        return [row for half in halves for row in _apart(queryset, half, bad)]
