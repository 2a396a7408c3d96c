"""An entry of the schedule: Celery's ScheduleEntry with our policies; it knows no time."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from celery.beat import ScheduleEntry
from kombu.utils.functional import reprcall

from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.ticks import CATCH_UP
from celery_redlock_beat.timetables import check_spec, cron

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery import Celery

STOCK_KEYS = frozenset({"task", "schedule", "args", "kwargs", "options", "relative"})
POLICY_KEYS = frozenset({"catch_up"})
STATE_KEYS = frozenset({"name", "app", "last_run_at", "total_run_count"})
# What Celery itself takes in an entry's options. Tasks and brokers may take more.
OPTIONS = frozenset(
    re.findall(
        r"\w+",
        """
        add_to_parent chain chord compression confirm_timeout content_encoding content_type
        countdown declare delivery_mode eta exchange exchange_type expires group_id headers
        ignore_result immediate link link_error mandatory priority queue reply_to retries retry
        retry_policy routing_key serializer shadow soft_time_limit task_id time_limit timeout
        """,
    )
)
LIKENESS = 0.8  # to take an option for another one that is misspelt
TIMES = (date, datetime, time, timedelta)
STABLE_TYPES = (str, bytes, int, float, complex, Decimal, UUID, Enum, *TIMES)


class RedlockEntry(ScheduleEntry):  # type: ignore[misc]
    """A periodic task, as in ``beat_schedule``; a string as its schedule is a cron string.

    ``catch_up`` is ``"latest"``, ``"all"``, ``"none"``, or ``None`` for the setting's value.
    ``last_run_at`` and ``total_run_count`` are kept for subclasses and plugins; what was sent is
    decided by the ledger alone.
    """

    catch_up: str | None = None

    def __init__(  # noqa: PLR0917, PLR0913 - Celery's own signature, extended
        self,
        name: str | None = None,
        task: str | None = None,
        last_run_at: datetime | None = None,
        total_run_count: int | None = None,
        schedule: Any = None,
        args: Any = (),
        kwargs: Any = None,
        options: Any = None,
        relative: bool = False,  # noqa: FBT001, FBT002 - Celery's own signature
        app: Celery | None = None,
        catch_up: str | None = None,
    ) -> None:
        if isinstance(schedule, str):
            schedule = cron(schedule)
        elif schedule is not None:
            check_spec(schedule)  # Celery sets an attribute on whatever it is
        if catch_up is not None and catch_up not in CATCH_UP:
            known = ", ".join(repr(value) for value in CATCH_UP)
            msg = f"catch_up = {catch_up!r} is not one of {known}"
            raise ConfigurationError(msg)
        super().__init__(
            name, task, last_run_at, total_run_count, schedule, args, kwargs, options, relative, app
        )
        self.catch_up = catch_up

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as Celery does, with the policies as state."""
        maker, values = super().__reduce__()[:2]
        return maker, values, {"catch_up": self.catch_up}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the policies back."""
        self.__dict__.update(state)

    def update(self, other: ScheduleEntry) -> None:
        """Take over the definition of another entry, policies included."""
        super().update(other)
        self.catch_up = getattr(other, "catch_up", None)

    def editable_fields_equal(self, other: ScheduleEntry) -> bool:
        """Compare the definitions, policies included."""
        same_policies = self.catch_up == getattr(other, "catch_up", None)
        return same_policies and bool(super().editable_fields_equal(other))


def check_fields(name: str, fields: Any) -> None:
    """Refuse an entry of ``beat_schedule`` that misses a key or has one nobody knows."""
    check_keys(name, fields)
    check_complete(name, fields.get)


def check_keys(name: str, fields: Any) -> None:
    """Refuse fields that are no mapping, or that have a key nobody knows."""
    if not isinstance(fields, Mapping):
        raise EntryError(name, f"it must be a mapping with 'task' and 'schedule', not {fields!r}")
    known = STOCK_KEYS | POLICY_KEYS
    for key in fields:
        if key not in known | STATE_KEYS:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
            raise EntryError(name, f"unknown key {key!r}; {hint}")


def check_entry(name: Any, entry: Any) -> None:
    """Refuse an entry that could not be sent, or not as it is meant."""
    check_name(name)
    check_complete(name, lambda key: getattr(entry, key))
    _check_task(name, entry.task)
    args, kwargs, options = entry.args, entry.kwargs, entry.options
    if args and not isinstance(args, (list, tuple)):
        raise EntryError(name, _wrong("args", "a list or a tuple", "['one', 2]", args))
    for key, value in (("kwargs", kwargs), ("options", options)):
        if value and not isinstance(value, Mapping):
            raise EntryError(name, _wrong(key, "a dict", "{'key': 'value'}", value))
        strange = [each for each in value or () if not isinstance(each, str)]
        if strange:
            raise EntryError(name, f"{key!r} has a key that is no text: {strange[0]!r}; quote it")
    headers = (options or {}).get("headers")
    if headers and not isinstance(headers, Mapping):
        raise EntryError(name, _wrong("headers", "a dict", "{'key': 'value'}", headers))


def doubts_about(entry: Any) -> list[str]:
    """Return what an entry says that is allowed, and hardly meant."""
    options = entry.options or {}
    doubts = []
    if options.get("task_id"):
        doubts.append(
            "its options fix the 'task_id', so that all its messages have one id, and their "
            "results overwrite each other; leave it out, and each tick has its own"
        )
    for key in options.keys() - OPTIONS:
        near = difflib.get_close_matches(key, OPTIONS, n=1, cutoff=LIKENESS)
        if near:
            doubts.append(f"Celery itself knows no option {key!r}; did you mean {near[0]!r}?")
    return sorted(doubts)


def check_name(name: Any) -> None:
    """Refuse a name that cannot be kept in the ledger, or found in a log."""
    if not isinstance(name, str):
        raise EntryError(name, "its name must be a text; write it in quotes")
    if not name:
        raise EntryError(name, "its name is empty; give it one")
    if not is_storable(name):
        raise EntryError(name, "its name cannot be written as UTF-8; give it another one")


def is_storable(text: Any) -> bool:
    """Answer whether it is a text that can be kept in Redis."""
    try:
        return isinstance(text, str) and text.encode() is not None
    except UnicodeEncodeError:
        return False


def _check_task(name: str, task: Any) -> None:
    if isinstance(task, str) and task:
        return
    own = getattr(task, "name", None)
    hint = f"write {own!r}" if isinstance(own, str) else "write one such as 'proj.add'"
    raise EntryError(name, f"its 'task' must be the name of a task, not {task!r}; {hint}")


def _wrong(key: str, wanted: str, example: str, value: Any) -> str:
    kind = type(value).__name__
    return f"its {key!r} must be {wanted}, as in {example}, and is of type {kind}"


def check_complete(name: str, value_of: Callable[[str], Any]) -> None:
    """Refuse what says not what to send, or not when."""
    for key in ("task", "schedule"):
        if value_of(key) is None:
            raise EntryError(name, f"it has no {key!r}; add that key")


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
