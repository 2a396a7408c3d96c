"""What an entry may say: errors are raised, doubts are answered; it changes no entry."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.policies import PARSERS, hint_for, is_option

if TYPE_CHECKING:
    from collections.abc import Callable

STOCK_KEYS = frozenset({"task", "schedule", "args", "kwargs", "options", "relative"})
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


def check_fields(name: str, fields: Any) -> None:
    """Refuse an entry of ``beat_schedule`` that misses a key or has one nobody knows."""
    check_keys(name, fields)
    check_complete(name, fields.get)


def check_keys(name: str, fields: Any) -> None:
    """Refuse fields that are no mapping, or that have a key nobody knows."""
    if not isinstance(fields, Mapping):
        raise EntryError(name, f"it must be a mapping with 'task' and 'schedule', not {fields!r}")
    known = STOCK_KEYS | PARSERS.keys()
    for key in fields:
        if key not in known | STATE_KEYS:
            raise EntryError(name, f"unknown key {key!r}; {hint_for(key, known)}")


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


def check_complete(name: str, value_of: Callable[[str], Any]) -> None:
    """Refuse what says not what to send, or not when."""
    for key in ("task", "schedule"):
        if value_of(key) is None:
            raise EntryError(name, f"it has no {key!r}; add that key")


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


def doubts_about(entry: Any) -> list[str]:
    """Return what an entry says that is allowed, and hardly meant."""
    options = entry.options or {}
    doubts = []
    if options.get("task_id"):
        doubts.append(
            "its options fix the 'task_id', so that all its messages have one id, and their "
            "results overwrite each other; leave it out, and each tick has its own"
        )
    for key, value in options.items():
        if key in PARSERS and not is_option(key, value):
            doubts.append(f"{key!r} is a key of the entry itself: move it out of its 'options'")
        elif key not in OPTIONS:
            near = difflib.get_close_matches(key, OPTIONS | PARSERS.keys(), n=1, cutoff=LIKENESS)
            doubts += [f"Celery knows no option {key!r}; did you mean {each!r}?" for each in near]
    return sorted(doubts)


def _check_task(name: str, task: Any) -> None:
    if isinstance(task, str) and task:
        return
    own = getattr(task, "name", None)
    hint = f"write {own!r}" if isinstance(own, str) else "write one such as 'proj.add'"
    raise EntryError(name, f"its 'task' must be the name of a task, not {task!r}; {hint}")


def _wrong(key: str, wanted: str, example: str, value: Any) -> str:
    kind = type(value).__name__
    return f"its {key!r} must be {wanted}, as in {example}, and is of type {kind}"
