"""Many entries in one text of JSON or YAML, and those of ``beat_schedule``; it opens no file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from celery.beat import ScheduleEntry

from celery_redlock_beat.documents import json_text
from celery_redlock_beat.documents.entries import FORMAT, check_format, fields_of, written
from celery_redlock_beat.documents.json_text import TWICE, Object, type_of
from celery_redlock_beat.entry_checks import check_keys, check_name
from celery_redlock_beat.entry_names import canonical_name
from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.policies import with_policies
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Kind = Literal["json", "yaml"]
ENVELOPE = ("format", "entries")
EXAMPLE = "{'nightly': {'task': 'proj.add', 'schedule': '0 3 * * *'}}"


class Loaded(NamedTuple):
    """The canonical text of each good entry, and what is wrong with each bad one, by name."""

    documents: dict[str, str]
    problems: dict[str, str]


def dump(entries: Mapping[str, str | Mapping[str, Any]], kind: Kind) -> str:
    """Return many entries as one text: ``{"format": 1, "entries": {name: document}}``.

    ``entries`` are documents, or their JSON texts, by name, and come in that order. They are not
    checked: what was stored by another release must come out as it is.

    Raises:
        EntryError: One is no JSON.
        ConfigurationError: ``kind`` is unknown, or PyYAML is missing.

    """
    told = {name: _parsed_entry(name, each) for name, each in entries.items()}
    data = {"format": FORMAT, "entries": told}
    if kind == "json":
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    text: str = _reader(kind).written(data)
    return text


def load(text: str | bytes, kind: Kind) -> Loaded:
    """Return the entries of such a text, or of one of names and entries without the envelope.

    An entry that is bad, or whose name is there twice, is told by its name, and does not stop the
    others.

    Raises:
        ConfigurationError: The text as a whole cannot be read; ``kind`` is unknown, or PyYAML is
            missing.

    """
    entries = _entries_in(_reader(kind).parsed(text))
    loaded = _all_of(entries, lambda name, each: (name, written(name, fields_of(name, each))))
    for name in entries.repeated if isinstance(entries, Object) else ():
        loaded.documents.pop(str(name), None)
        loaded.problems[str(name)] = f"its name {TWICE}"
    return loaded


def from_beat_schedule(entries: Mapping[str, Any]) -> Loaded:
    """Return the documents of entries as they are in ``app.conf.beat_schedule``.

    Those that only code can have are told as problems. A name that Celery made of arguments is the
    one that the ledger knows.
    """
    return _all_of(entries, _from_code)


def _from_code(name: str, fields: Any) -> tuple[str, str]:
    if isinstance(fields, ScheduleEntry):
        return name, written(name, fields)
    name = canonical_name(name, fields)
    fields = with_policies(fields)
    check_keys(name, fields)
    return name, written(name, fields)


def _all_of(
    entries: Mapping[str, Any], written_as: Callable[[str, Any], tuple[str, str]]
) -> Loaded:
    loaded = Loaded({}, {})
    for name, each in entries.items():
        try:
            check_name(name)
            own, text = written_as(name, each)
        except EntryError as error:
            loaded.problems[str(name)] = error.problem
        except Exception as error:  # noqa: BLE001 - arguments and schedules may be user code
            loaded.problems[str(name)] = f"it cannot be read: {type(error).__name__}: {error}"
        else:
            loaded.documents[own] = text
    return loaded


def _parsed_entry(name: str, document: str | Mapping[str, Any]) -> Any:
    try:
        if isinstance(document, Mapping):
            document = json.dumps(dict(document))
        data = json_text.parsed(document)
        json_text.check_sound(data)
    except ConfigurationError as problem:
        raise EntryError(name, str(problem)) from None
    except (TypeError, ValueError, RecursionError) as problem:
        raise EntryError(name, f"it is no document: {problem}; write it as its fields") from None
    return data


def _reader(kind: str) -> ModuleType:
    """Return the module that reads and writes a kind of text."""
    if kind == "json":
        return json_text
    if kind != "yaml":
        way_out = hint(kind, ("json", "yaml"), "use 'json' or 'yaml'")
        raise ConfigurationError(f"there are no files of the kind {kind!r}; {way_out}")
    try:
        from celery_redlock_beat.documents import yaml_text  # noqa: PLC0415  of an extra of ours
    except ImportError:
        raise ConfigurationError(
            'YAML needs the package PyYAML; pip install "celery-redlock-beat[cli]", or use JSON'
        ) from None
    return yaml_text


def _entries_in(data: Any) -> Mapping[Any, Any]:
    """Return names and entries, with or without the envelope around them."""
    if data is None:
        raise ConfigurationError(f"there is nothing in it; write entries by name, as {EXAMPLE}")
    if not isinstance(data, Mapping):
        raise ConfigurationError(
            f"it must be an object of entries by name, as {EXAMPLE}, not {type_of(data)}"
        )
    if isinstance(data.get("task"), str):
        raise ConfigurationError(f"it is one entry without a name; give it one, as {EXAMPLE}")
    return _enveloped(data) if _is_envelope(data) else data


def _enveloped(data: Mapping[Any, Any]) -> Mapping[Any, Any]:
    for key in data:
        if key not in ENVELOPE:
            known = "beside 'format' there is only 'entries'"
            meant = hint(str(key), ENVELOPE, known)
            raise ConfigurationError(f"unknown key {shown(repr(key))} in it; {meant}")
    if isinstance(data, Object) and data.repeated:
        raise ConfigurationError(f"its key {data.repeated[0]!r} {TWICE}")
    check_format(data.get("format"))
    entries = data.get("entries")
    if not isinstance(entries, Mapping):
        raise ConfigurationError(
            f"its 'entries' must be an object of entries by name, not {type_of(entries)}"
        )
    return entries


def _is_envelope(data: Mapping[Any, Any]) -> bool:
    """Answer whether it is one, and not entries of which one has a name of the envelope's keys."""
    if "format" in data and not isinstance(data["format"], Mapping):
        return True
    entries = data.get("entries")
    is_entry = isinstance(entries, Mapping) and isinstance(entries.get("task"), str)
    return "entries" in data and not is_entry and data.keys() <= set(ENVELOPE)
