"""What a task is called with, as JSON in Celery's own convention; it calls nothing.

Kombu writes datetimes, dates, times, Decimals, UUIDs and bytes as objects of ``__type__`` and
``__value__``, and does so alike in its releases 5.5 to 5.7. These and all of JSON come back as they
were, but for tuples, which come back as lists: so they do from any message in JSON. Sets,
timedeltas, numbers that are none and keys that are no text do not come back, and are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kombu.utils import json as celery_json

from celery_redlock_beat.documents.json_text import DEEPEST, TOO_DEEP, type_of
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import shown

KEYS = ("args", "kwargs", "options")
LARGEST = 10**4000
"""Python reads no more than 4300 digits."""
TYPE, VALUE = "__type__", "__value__"


def call_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments and the options of a task, of what a document says.

    Raises:
        ConfigurationError: One is of another type, or cannot be read; names it.

    """
    call: dict[str, Any] = {}
    for key in KEYS:
        value = said.get(key)
        if value is None:
            continue
        if key == "args":
            if not isinstance(value, list):
                raise _wrong(key, "a list, as [1, 2]", value)
            call[key] = [read(f"{key}[{at}]", each) for at, each in enumerate(value)]
        elif isinstance(value, Mapping):
            call[key] = {at: read(f"{key}[{at!r}]", each) for at, each in value.items()}
        else:
            raise _wrong(key, "an object, as {'key': 'value'}", value)
    return call


def written_call(key: str, value: Any) -> Any:
    """Return the plain JSON data of an entry's ``args``, ``kwargs`` or ``options``.

    Raises:
        ConfigurationError: A part of it would not come back as it is; names it.

    """
    if isinstance(value, list | tuple):
        return [written(f"{key}[{at}]", each) for at, each in enumerate(value)]
    if isinstance(value, Mapping):
        check_keys(key, value)
        return {at: written(f"{key}[{at!r}]", each) for at, each in value.items()}
    return value  # what is wrong with it is told when the document is read


def written(where: str, value: Any, depth: int = 0) -> Any:
    """Return the plain JSON data of an argument; ``where`` names it in errors.

    Raises:
        ConfigurationError: A part of it would not come back as it is.

    """
    if depth > DEEPEST:
        raise ConfigurationError(f"{where} {TOO_DEEP}")
    if isinstance(value, dict):
        check_keys(where, value)
        return {str(key): written(where, each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [written(where, each, depth + 1) for each in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        _check_number(where, value)
        return value
    return _written_by_kombu(where, value)


def read(where: str, data: Any) -> Any:
    """Return the argument of plain JSON data; ``where`` names it in errors.

    Raises:
        ConfigurationError: It has a ``__type__`` that is unknown, or does not fit its value.

    """
    if isinstance(data, list):
        return [read(where, each) for each in data]
    if not isinstance(data, Mapping):
        return data
    value = {key: read(where, each) for key, each in data.items()}
    if value.keys() != {TYPE, VALUE}:
        return value
    try:
        return celery_json.object_hook(value)
    except (ValueError, TypeError, AttributeError, ArithmeticError):
        raise ConfigurationError(
            f"{where} has an object of the {TYPE} {shown(repr(data[TYPE]))} that Celery cannot "
            f"read: known are {', '.join(sorted(_known_types()))}, each with a {VALUE} that fits"
        ) from None


def check_keys(where: str, value: Mapping[Any, Any]) -> None:
    """Refuse keys that would not come back; ``where`` names what has them.

    Raises:
        ConfigurationError: One is no text, or they are those of Celery's own objects.

    """
    for key in value:
        if not isinstance(key, str):
            raise ConfigurationError(
                f"{where} has a key that is no text, {shown(repr(key))}: JSON would make it one; "
                "write it in quotes"
            )
    if value.keys() == {TYPE, VALUE}:
        raise ConfigurationError(
            f"{where} has an object of {TYPE} and {VALUE}, which Celery takes for one of its own; "
            "rename one of the two keys"
        )


def _wrong(key: str, wanted: str, value: object) -> ConfigurationError:
    return ConfigurationError(f"its {key!r} must be {wanted}, and is {type_of(value)}")


def _known_types() -> set[str]:
    samples = getattr(celery_json, "_decoders", {})  # there is no public list of them
    return set(samples)


def _check_number(where: str, value: float) -> None:
    if value != value or abs(value) == math.inf:  # noqa: PLR0124
        raise ConfigurationError(f"{where} has {value!r}, which is no number in JSON; use None")
    if abs(value) > LARGEST:
        raise ConfigurationError(f"{where} has a number of thousands of digits; make it a text")


def _written_by_kombu(where: str, value: Any) -> Any:
    try:
        text = celery_json.dumps(value)
        survives = _is_same(celery_json.loads(text), value)
    except Exception:  # noqa: BLE001 - the class of the value may be anybody's, and do anything
        survives = False
    if not survives:
        raise ConfigurationError(
            f"{where} has a value of the class {type(value).__qualname__}, which does not come "
            "back from JSON as it is, so that only the schedule of the app itself can have it; "
            "use text, numbers, lists, dicts, datetimes, Decimals, UUIDs or bytes"
        )
    return json.loads(text)


def _is_same(back: Any, value: Any) -> bool:
    if isinstance(back, datetime) and isinstance(value, datetime) and back.tzinfo:
        # Where clocks change, Python holds datetimes of two zones for different.
        back, value = back.astimezone(UTC), value.astimezone(UTC)
    return bool(back == value)
