"""JSON as data that can be kept and sent on, or a sentence about what it is not; it knows no entry.

The same limits hold for what was read from YAML.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

LONGEST = 2**20
"""Bytes of one document: every node reads all of them."""
DEEPEST = 64
"""Levels of lists and objects: far from where Python's own limits differ by release."""
TOO_LONG = f"is longer than {LONGEST} bytes; keep such data elsewhere, and say where it is"
TOO_DEEP = f"is nested more than {DEEPEST} levels deep; make it flatter"
TWICE = "is there twice; keep one of them"


class Object(dict[Any, Any]):
    """A JSON object, with the keys that were ``repeated`` in its text."""

    repeated: tuple[Hashable, ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[Hashable, Any]]) -> Object:
        """Return the object of its pairs, of which the last of a key counts."""
        pairs = list(pairs)
        made = cls(pairs)
        if len(made) < len(pairs):
            counted = Counter(key for key, _ in pairs)
            made.repeated = tuple(key for key, number in counted.items() if number > 1)
        return made


def decoded(text: str | bytes) -> str:
    """Return a text of bytes in UTF-8, without the mark that some editors put in front.

    Raises:
        ConfigurationError: They are not UTF-8.

    """
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"it is not UTF-8 (byte {error.start}); save it in that encoding"
            ) from None
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


def parsed(text: str | bytes) -> Any:
    """Return the data of a JSON text; its objects are ``Object``.

    Raises:
        ConfigurationError: It is not JSON; tells where.

    """
    try:
        return json.loads(
            decoded(text),
            object_pairs_hook=Object.of,
            parse_constant=_no_number,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"it is no JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ConfigurationError(f"it {TOO_DEEP}") from None
    except ConfigurationError:
        raise
    except ValueError:  # Python reads no integer of more than 4300 digits
        raise ConfigurationError(
            "it has a number of thousands of digits; write it as a text"
        ) from None


def check_sound(data: Any) -> None:
    """Refuse data that is too deep or too large, has a key twice, or text that is no UTF-8.

    It stops in time where aliases of YAML make much out of little.

    Raises:
        ConfigurationError: It is one of these.

    """
    left, heap = LONGEST, [([data], 0)]
    while heap:
        values, depth = heap.pop()
        left -= len(values)
        if values and depth > DEEPEST:
            raise ConfigurationError(f"it {TOO_DEEP}")
        for value in values:
            if isinstance(value, str):
                left -= len(value)
                if not value.isascii():
                    _check_text(value)
            elif isinstance(value, list):
                heap.append((value, depth + 1))
            elif isinstance(value, Mapping):
                _check_keys(value)
                heap.append(([*value.keys(), *value.values()], depth + 1))
        if left < 0:
            raise ConfigurationError(f"it {TOO_LONG}")


def type_of(value: object) -> str:
    """Return what a value is, in the words of JSON."""
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number"}
    names |= {str: "a text", list: "a list"}
    kind = "an object" if isinstance(value, Mapping) else None
    return kind or names.get(type(value)) or f"of the class {type(value).__qualname__}"


def _check_keys(value: Mapping[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise ConfigurationError(f"it has a key that is no text: {key!r}; write it in quotes")
    if isinstance(value, Object) and value.repeated:
        raise ConfigurationError(f"its key {shown(repr(value.repeated[0]))} {TWICE}")


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"it has a text that cannot be written as UTF-8: {shown(ascii(value))}; "
            "leave out what is half of a pair of surrogates"
        ) from None


def _no_number(word: str) -> NoReturn:
    raise ConfigurationError(f"it is no JSON: there is no number {word}; write null, or a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ConfigurationError(f"the number {shown(digits)} is too large; write a smaller one")
    return number
