"""Reading the parts of one RFC 5545 rule, and its dates; computes no instant and knows no zone.

Its errors are plain ``ValueError``: whoever reads the whole text says which text that is.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
TIMES = {"BYHOUR": "HOURLY", "BYMINUTE": "MINUTELY", "BYSECOND": "SECONDLY"}
NUMBERS = {
    "INTERVAL": range(1, 10_000_000),
    "COUNT": range(1, 100_001),
    "BYMONTH": range(1, 13),
    "BYWEEKNO": range(1, 54),
    "BYYEARDAY": range(1, 367),
    "BYMONTHDAY": range(1, 32),
    "BYHOUR": range(24),
    "BYMINUTE": range(60),
    "BYSECOND": range(60),
    "BYSETPOS": range(1, 367),
}
FROM_THE_END = {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYSETPOS"}
PARTS = ("FREQ", "UNTIL", "WKST", "BYDAY", *NUMBERS)

_STAMP = re.compile(r"([0-9]{8})(?:T([0-9]{6})(Z?))?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_DAY = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(WEEKDAYS)})")


@dataclass(frozen=True)
class Stamp:
    """A date and time as it is written; ``zone`` is the name of its TZID, or UTC for a Z."""

    wall: dt.datetime
    zone: str | None = None
    whole_day: bool = False


@dataclass(frozen=True)
class Parts:
    """One rule as it is written; BYDAY is pairs of a weekday and its number, or 0."""

    freq: str
    by: dict[str, tuple[Any, ...]]
    interval: int = 1
    count: int | None = None
    until: Stamp | None = None
    wkst: int = 0


def read_parts(text: str) -> Parts:
    """Read what follows ``RRULE:`` or ``EXRULE:``.

    Raises:
        ValueError: A part cannot be read, or is missing.

    """
    said: dict[str, Any] = {}
    for part in filter(None, text.upper().split(";")):
        name, _, value = part.partition("=")
        if not value:
            raise ValueError(f"{part!r} is no part of a rule; write NAME=VALUE, as FREQ=DAILY")
        if name in said:
            raise ValueError(f"{name} is there twice; write one list, as {name}=1,2")
        said[name] = _value(name, value)
    if "FREQ" not in said:
        raise ValueError(f"FREQ is missing; add FREQ= and one of {', '.join(FREQUENCIES)}")
    if "COUNT" in said and "UNTIL" in said:
        raise ValueError("COUNT and UNTIL exclude each other; keep one of them")
    by = {name: value for name, value in said.items() if name.startswith("BY")}
    return Parts(by=by, **{name.lower(): said[name] for name in said if name not in by})


def read_stamp(name: str, text: str, zone: str | None = None) -> Stamp:
    """Read one date of a property or a part of that name.

    Raises:
        ValueError: It is no date, or one that does not exist.

    """
    match = _STAMP.fullmatch(text.upper())
    if not match:
        raise ValueError(
            f"{name} has {text!r}; write a date and time as 20260131T090000, with a Z at the end "
            "if it is in UTC, or a date as 20260131"
        )
    date, time, utc = match.groups()
    if utc and zone:
        raise ValueError(f"{name} has both a TZID and the Z of UTC; leave one of them out")
    try:
        wall = dt.datetime.strptime(date + (time or "000000"), "%Y%m%d%H%M%S")  # noqa: DTZ007 (a wall time)
    except ValueError:
        raise ValueError(f"{name} has {text!r}, which does not exist") from None
    if wall.year == dt.MINYEAR or (wall.year == dt.MAXYEAR and name != "UNTIL"):
        raise ValueError(f"{name} has {text!r}, an end of the calendar; use a nearer date")
    return Stamp(wall, "UTC" if utc else zone, whole_day=not time)


def hint(word: str, allowed: tuple[str, ...]) -> str:
    """Return the end of a sentence that suggests the closest of the allowed words."""
    close = get_close_matches(word, allowed, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _value(name: str, text: str) -> Any:
    if name == "FREQ":
        return _one_of(name, text, FREQUENCIES)
    if name == "WKST":
        return WEEKDAYS.index(_one_of(name, text, WEEKDAYS))
    if name == "UNTIL":
        return read_stamp(name, text)
    if name == "BYDAY":
        return tuple(sorted({_day(each) for each in text.split(",")}))
    if name not in NUMBERS:
        raise ValueError(f"there is no part {name}{hint(name, PARTS)}")
    if not name.startswith("BY"):
        return _number(name, text)
    return tuple(sorted({_number(name, each) for each in text.split(",")}))


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text not in allowed:
        raise ValueError(f"{name}={text} is not one of {', '.join(allowed)}{hint(text, allowed)}")
    return text


def _number(name: str, text: str) -> int:
    allowed = NUMBERS[name]
    if _INTEGER.fullmatch(text):
        number = int(text)
        if number in allowed or (name in FROM_THE_END and -number in allowed):
            return number
    low, high = allowed[0], allowed[-1]
    end = f", or {-high} to {-low} from the end" if name in FROM_THE_END else ""
    raise ValueError(f"{name} has {text!r}; allowed are whole numbers from {low} to {high}{end}")


def _day(text: str) -> tuple[int, int]:
    match = _DAY.fullmatch(text)
    number = int(match[1] or 0) if match else 0
    if not match or (match[1] and abs(number) not in NUMBERS["BYWEEKNO"]):
        raise ValueError(
            f"BYDAY has {text!r}; allowed are {', '.join(WEEKDAYS)}, in a month or year also with "
            "a number: 1MO is its first Monday, -1FR its last Friday"
        )
    return WEEKDAYS.index(match[2]), number
