"""H in cron expressions, as in Jenkins: a value that the entry's name chooses; it knows no zone.

``H`` is one value of its field, ``H(a-b)`` one of a range, and ``H/n`` or ``H(a-b)/n`` every n-th
from a first one within ``n``.  Each field chooses anew.  The choice is a plain hash of the name and
the field, the same on every node and in every release: changing it would move users' jobs.  It is
written as numbers, never with a star in front, so that ``H H * * *`` is a fixed time of day.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cronsim import CronSimError
from cronsim.cronsim import Field

from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

# No month is without its 28th, and Sunday is only counted once.
RANGES = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-28",
    "month": "1-12",
    "day-of-week": "0-6",
}
_TERM = re.compile(r"H(?:\((\w+-\w+)\))?(?:/([0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class _Hash:
    """One H: the values it chooses from, and every how many of them it takes (0: only one)."""

    low: int
    high: int
    step: int

    @property
    def span(self) -> str:
        """All that it may be, as a range."""
        return f"{self.low}-{self.high}"

    def chosen(self, number: int) -> str:
        """Return what a number chooses, as a value or as a range with a step."""
        choices = self.step or self.high - self.low + 1
        first = self.low + number % choices
        if self.step and first + self.step <= self.high:
            return f"{first}-{self.high}/{self.step}"
        return str(first)


def spread(fields: str) -> str:
    """Return an expression in capitals with each H as the range that it chooses from.

    An H that is not valid stays as it is.
    """
    return _written(fields, lambda choice, _: choice.span)


def chosen(fields: str, name: str) -> str:
    """Return an expression in capitals with each H as what the name of its entry chooses.

    Raises:
        ConfigurationError: It has an H, and the name is empty.

    """
    if not name and fields != spread(fields):
        raise ConfigurationError(
            f"cron expression {fields!r}: the name of the entry chooses what an H is, and there is "
            "no entry here; use it as the schedule of an entry of a redlock beat, or write a number"
        )
    return _written(fields, lambda choice, field: choice.chosen(_number(name, field)))


def _written(fields: str, write: Callable[[_Hash, str], str]) -> str:
    if "H" not in fields:
        return fields
    parts = fields.split()
    names = list(RANGES)[-len(parts) :]
    return " ".join(
        ",".join(_term(term, field, write) for term in part.split(","))
        for part, field in zip(parts, names, strict=True)
    )


def _term(term: str, field: str, write: Callable[[_Hash, str], str]) -> str:
    choice = _read(term, field)
    return write(choice, field) if choice else term


def _read(term: str, field: str) -> _Hash | None:
    match = _TERM.fullmatch(term)
    if match is None:
        return None
    span, step = match.groups()
    reader = Field(list(RANGES).index(field))
    try:
        low, high = (reader.int(end) for end in (span or RANGES[field]).split("-"))
    except CronSimError:
        return None
    if low > high or (step and not 1 < int(step) <= high - low + 1):
        return None
    return _Hash(low, high, int(step or 0))


def _number(name: str, field: str) -> int:
    text = f"{field}:{name}".encode(errors="backslashreplace")
    return int.from_bytes(hashlib.sha256(text).digest())
