"""What a setting's value may be, and how it is shown; which settings there are is not known here.

A parser takes any object. It returns the value to use, or raises ``ValueError`` with what is wrong.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import ConfigurationError, SettingError
from celery_redlock_beat.hints import hint

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 10 * 365.25 * 86400  # ten years: more is a wrong unit
SHORTEST_POLL = 0.01  # a pass asks Redis: more often would spin
MOST_KEPT = 10_000_000  # some gigabytes of Redis: more is a slip


def checked(
    key: str,
    value: object,
    parse: Callable[[object], Any],
    error: type[ConfigurationError] = SettingError,
) -> Any:
    """Return a value as its parser takes it; raise an error that names its key."""
    try:
        return parse(value)
    except ValueError as problem:
        raise error(f"{key} = {_shown(value, secret=parse is parse_url)} {problem}") from None


def parse_url(value: object) -> str | None:
    """Take a URL of any scheme, or none."""
    if value is None or (isinstance(value, str) and re.fullmatch(r"[\w+.-]+://\S*", value)):
        return value
    raise ValueError("is no URL: write one such as 'redis://host:6379/0', or leave it out")


def parse_namespace(value: object) -> str | None:
    """Take a text that can be a part of a key, or none."""
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ValueError("is no name: write a text such as 'shop', or leave it out")
    if any(each in "{}" or each.isspace() or not each.isprintable() for each in value):
        raise ValueError(
            "may not contain braces, spaces or control characters: write one such as 'shop'"
        )
    return value


def parse_seconds(value: object) -> float:
    """Take seconds as a number, or a timedelta, of no more than ten years."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no duration: give seconds as a number, or a timedelta")  # noqa: TRY004
    if not 0 <= value <= LONGEST:
        raise ValueError("is out of range: give a duration between 0 and ten years")
    return float(value)


def parse_some_seconds(value: object) -> float:
    """Take a duration of more than 0 seconds."""
    if not (seconds := parse_seconds(value)):
        raise ValueError("is no time at all: give a duration of more than 0 seconds")
    return seconds


def parse_poll(value: object) -> float:
    """Take a duration that does not make the loop spin."""
    if (seconds := parse_some_seconds(value)) < SHORTEST_POLL:
        raise ValueError(f"keeps a processor busy: give at least {SHORTEST_POLL:g} seconds")
    return seconds


def parse_shift(value: object) -> float:
    """Take seconds as a number, or a timedelta, forward or back, of no more than ten years."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no duration: give seconds as a number, or a timedelta")  # noqa: TRY004
    if not -LONGEST <= value <= LONGEST:
        raise ValueError("is out of range: give a duration of at most ten years, forward or back")
    return float(value)


def parse_count(value: object) -> int:
    """Take a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is no number of times: give a whole number, as 3")  # noqa: TRY004
    if value < 1:
        raise ValueError("is too few: give a whole number of at least 1")
    return value


def parse_kept(value: object) -> int:
    """Take a whole number of things to keep, 0 for none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is no whole number: write one such as 10000, or 0 to keep none")  # noqa: TRY004
    if not 0 <= value <= MOST_KEPT:
        raise ValueError(f"is out of range: write 0 to keep none, or at most {MOST_KEPT}")
    return value


def parse_path(value: object) -> str | None:
    """Take the path of a file, as a text or a ``Path``, or none; ``~`` is someone's home.

    Whether the file can be there is not looked at: a build reads the settings as well.
    """
    if value is None:
        return None
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str) or not path or not path.isprintable():
        raise ValueError("is no path: write one such as '/var/lib/celery/file', or leave it out")
    if path.endswith(os.sep):
        raise ValueError("names a folder: write the path of a file in it")
    home = os.path.expanduser(path)  # noqa: PTH111 - a path's own raises where there is no home
    if home.startswith("~"):
        raise ValueError("begins at a home that is not known here: write the whole path")
    return home


def parse_instant(value: object) -> datetime:
    """Take a datetime, or its ISO 8601 text, with or without an offset."""
    if isinstance(value, str) and len(value) > len("2026-12-31"):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, datetime):
        return value
    raise ValueError(
        "is no instant: give a datetime, or a text such as '2026-12-31T18:00' or "
        "'2026-12-31T18:00+01:00', with the time of day"
    )


def parse_text(value: object) -> str:
    """Take any text."""
    if isinstance(value, str):
        return value
    raise ValueError("is no text: write one in quotes")


def parse_tags(value: object) -> tuple[str, ...]:
    """Take a list of texts."""
    if isinstance(value, list | tuple | set | frozenset) and all(
        isinstance(each, str) and each for each in value
    ):
        return tuple(sorted(set(value)))
    raise ValueError("is no list of texts: write one such as ['billing', 'nightly']")


def parse_flag(value: object) -> bool:
    """Take True or False, and nothing that only looks like one of them."""
    if isinstance(value, bool):
        return value
    raise ValueError("is neither True nor False: write one of them, without quotes")


def optional(parse: Callable[[object], Any]) -> Callable[[object], Any]:
    """Return the parser that also takes ``None``."""
    return lambda value: None if value is None else parse(value)


def one_of(*allowed: str) -> Callable[[object], str]:
    """Return the parser that takes one of these texts."""

    def parse(value: object) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        otherwise = f"write one of {', '.join(map(repr, allowed))}"
        raise ValueError(f"is not understood: {hint(str(value).lower(), allowed, otherwise)}")

    return parse


def mask(url: str) -> str:
    """Return a URL, or Sentinel's list of them, without its passwords.

    A password may hold any separator unescaped, so what might belong to one is hidden with it.
    """
    if "://" not in url:
        return "***"
    return "".join(_mask_one(part) for part in re.split(r"(?<=[;,])(?=\s*[\w+.-]+://)", url))


def _mask_one(url: str) -> str:
    scheme, _, rest = url.partition("://")
    secret, at, place = rest.rpartition("@")
    user, colon, _ = secret.partition(":")
    shown = f"{user}:***" if colon else "***"
    place = re.sub(r"(?i)([?&][^=&]*(?:pass|secret|token)[^=&]*=)[^&;,]*", r"\1***", place)
    return f"{scheme}://{shown if at else ''}{at}{place}"


def _shown(value: object, *, secret: bool) -> str:
    if isinstance(value, str):
        return repr(mask(value)) if secret or "://" in value else repr(value)
    return f"<{type(value).__name__}>" if secret else repr(value)
