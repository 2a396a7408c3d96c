"""Names that are the same in every process, for entries that have none; it knows no entry."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from kombu.utils.functional import reprcall

from celery_redlock_beat.errors import EntryError

TIMES = (date, datetime, time, timedelta)
STABLE_TYPES = (str, bytes, int, float, complex, Decimal, UUID, Enum, *TIMES)


def canonical_name(name: str, fields: Any) -> str:
    """Return a name that is the same in every process, for entries that Celery named by ``repr``.

    ``add_periodic_task`` without a name takes the signature's repr. Sets are ordered anew in
    every process, objects and functions show their address: the first are sorted here, the
    second raise ``EntryError``, since every node would send its own copy.
    """
    if not isinstance(fields, Mapping):
        return name
    task, args, kwargs = fields.get("task"), fields.get("args") or (), fields.get("kwargs") or {}
    if not isinstance(args, (list, tuple)) or not isinstance(kwargs, Mapping):
        return name  # no signature looks like this: what is wrong with it is told later
    if name != reprcall(task, args, kwargs):
        return name
    for value in [*args, *kwargs.values()]:
        if not _is_stable(value):
            problem = (
                f"it has no name, and {value!r} among its arguments looks different in every "
                "process; name it: add_periodic_task(..., name='...')"
            )
            raise EntryError(name, problem)
    if not any(_holds_set(value) for value in [*args, *kwargs.values()]):
        return name
    parts = [_canonical(value) for value in args]
    parts += [f"{key}={_canonical(value)}" for key, value in kwargs.items()]
    return f"{task}({', '.join(parts)})"


def _children(value: Any) -> list[Any] | None:
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, AbstractSet)):
        return list(value)
    return None


def _is_stable(value: Any) -> bool:
    children = _children(value)
    if children is not None:
        return all(_is_stable(child) for child in children)
    return value is None or isinstance(value, STABLE_TYPES)


def _holds_set(value: Any) -> bool:
    children = _children(value) or ()
    return isinstance(value, AbstractSet) or any(_holds_set(child) for child in children)


def _canonical(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_canonical(key)}: {_canonical(item)}" for key, item in value.items())
        return "{" + ", ".join(sorted(pairs)) + "}"
    if isinstance(value, AbstractSet):
        return "{" + ", ".join(sorted(_canonical(item) for item in value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_canonical(item) for item in value) + "]"
    return repr(value)
