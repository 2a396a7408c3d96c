"""An entry as canonical JSON text, and back; it stores none, and makes no timetable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, tzinfo
from types import SimpleNamespace
from typing import Any

from celery.beat import ScheduleEntry

from celery_redlock_beat.documents import arguments, schedules, spans
from celery_redlock_beat.documents.json_text import (
    LONGEST,
    TOO_LONG,
    check_sound,
    parsed,
    type_of,
)
from celery_redlock_beat.entry_checks import (
    check_complete,
    check_entry,
    check_fields,
    check_name,
)
from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.policies import PARSERS, Policies, hint_for, said_by
from celery_redlock_beat.setting_values import checked, parse_flag
from celery_redlock_beat.ticks import shown

FORMAT = 1
KEYS = ("format", "task", "schedule", "args", "kwargs", "options", "relative", *PARSERS)
"""The keys of a document, in the order in which they are written."""


def written(name: str, fields: Mapping[str, Any] | ScheduleEntry) -> str:
    """Return the canonical JSON text of an entry, given as in ``beat_schedule`` or as an entry.

    Entries that say the same have the same text, on one line, with all letters as they are. Only
    what was said is written: no ``None``, and no empty ``args``. Durations are seconds, ``start``
    and ``end`` ISO 8601 texts, zones IANA names, tags sorted. The arguments keep to what comes back
    from JSON (see ``arguments``). The name is no part of it.

    Raises:
        EntryError: It cannot be an entry, or has what only code can have; names the key.

    """
    check_name(name)
    try:
        said = _said_by(fields) if isinstance(fields, ScheduleEntry) else fields
        check_fields(name, said)
        document = _document(said)
        fields_of(name, document)
    except EntryError:
        raise
    except ConfigurationError as problem:
        raise EntryError(name, str(problem)) from None
    text = _text(document)
    if len(text.encode()) > LONGEST:
        raise EntryError(name, f"it {TOO_LONG}")
    return text


def read(name: str, text: str | bytes) -> dict[str, Any]:
    """Return the fields of an entry, as ``RedlockEntry(name=…, app=…, **fields)`` takes them.

    They are checked as those of ``beat_schedule`` are before there is a timetable: what depends on
    the app, and whether the schedule ever fires, is found when the entry is taken in.

    Raises:
        EntryError: The text is no document of an entry; names the entry, the field, the way out.

    """
    check_name(name)
    try:
        if len(text) > LONGEST:
            raise ConfigurationError(f"it {TOO_LONG}")  # noqa: TRY301 - told as the rest is
        document = parsed(text)
    except ConfigurationError as problem:
        raise EntryError(name, str(problem)) from None
    return fields_of(name, document)


def fields_of(name: str, document: Any) -> dict[str, Any]:
    """Return the fields of an entry of its document, as data of JSON or YAML.

    Raises:
        EntryError: As ``read``.

    """
    try:
        check_sound(document)
        said = _said_in(document)
        check_complete(name, said.get)
        fields = {**said, "schedule": schedules.read(said["schedule"]), **arguments.call_of(said)}
        if "relative" in said:
            _flag("relative", said["relative"])
        Policies.of({key: value for key, value in fields.items() if key in PARSERS})
    except EntryError:
        raise
    except ConfigurationError as problem:
        raise EntryError(name, str(problem)) from None
    nothing = dict.fromkeys(arguments.KEYS)
    check_entry(name, SimpleNamespace(**{**nothing, **fields}))
    return fields


def _said_in(document: Any) -> dict[str, Any]:
    """Return what a document says, without its format."""
    if not isinstance(document, Mapping):
        kind = type_of(document)
        raise ConfigurationError(f"it must be an object with 'task' and 'schedule', not {kind}")
    check_format(document.get("format"))
    for key in document:
        if key == "name":
            raise ConfigurationError(
                "'name' is no key of a document, which is kept under its name; leave it out"
            )
        if key not in KEYS:
            raise ConfigurationError(f"unknown key {shown(repr(key))}; {hint_for(key, KEYS)}")
    return {k: value for k, value in document.items() if k != "format" and value is not None}


def check_format(told: object) -> None:
    """Refuse a format that this release does not know; ``None`` is not said, and the first.

    Raises:
        ConfigurationError: It is another one.

    """
    if told is not None and (type(told) is not int or told != FORMAT):
        raise ConfigurationError(
            f"its format is {shown(repr(told))}, and this release knows format {FORMAT} only; "
            f"upgrade celery-redlock-beat here, or write it in format {FORMAT}"
        )


def _flag(key: str, value: object) -> bool:
    flag: bool = checked(key, value, parse_flag, ConfigurationError)
    return flag


def _said_by(entry: ScheduleEntry) -> dict[str, Any]:
    """Return what an entry says as fields."""
    if type(entry) is not ScheduleEntry and "is_plain" not in vars(type(entry)):
        raise ConfigurationError(
            f"its class {type(entry).__qualname__} is code, which only the schedule of the app "
            "itself can have; write it as a dict with 'task' and 'schedule'"
        )
    own = {key: getattr(entry, key) for key in ("task", "schedule", *arguments.KEYS)}
    return {**own, **said_by(entry)}


def _document(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of an entry's fields, its keys in order."""
    document = {"format": FORMAT, "task": said["task"]}
    document["schedule"] = schedules.written(said["schedule"])
    for key in arguments.KEYS:
        if said.get(key):
            document[key] = arguments.written_call(key, said[key])
    if said.get("relative") is not None and _flag("relative", said["relative"]):
        document["relative"] = True
    for key in PARSERS:
        if said.get(key) is not None:
            document[key] = _written_policy(key, said[key])
    return document


def _written_policy(key: str, value: Any) -> Any:
    value = checked(key, value, PARSERS[key], ConfigurationError)
    if isinstance(value, tzinfo):
        return schedules.zone_name(value)
    if isinstance(value, datetime):
        if value.fold and value.utcoffset() is None:
            raise ConfigurationError(
                f"{key} = {value.isoformat()!r} has fold=1, which its text does not show; give it "
                "the offset of its zone"
            )
        return value.isoformat()
    if isinstance(value, tuple):
        return list(value)
    return spans.number(value) if isinstance(value, float) else value


def _text(document: Mapping[str, Any]) -> str:
    # The objects in a call have no order of their own; a schedule begins with its kind.
    parts = (
        f"{json.dumps(key)}: "
        + json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=key in arguments.KEYS)
        for key, value in document.items()
    )
    return f"{{{', '.join(parts)}}}"
