"""Reading the lines of RFC 5545 recurrence text, and saying what is wrong; computes no instant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import shown
from celery_redlock_beat.timetables.rule.checks import check_fit, check_start
from celery_redlock_beat.timetables.rule.parts import Parts, Stamp, hint, read_parts, read_stamp

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROPERTIES = ("DTSTART", "RRULE", "EXRULE", "RDATE", "EXDATE")
_PROPERTY = rf"(?:{'|'.join(_PROPERTIES)})[:;]"
_FIRST_WORD = re.compile(rf"\s*(?:{_PROPERTY}|[A-Z]+=)", re.IGNORECASE)
# Calendar files fold long lines: what follows begins with a blank.  So do lines of indented code,
# which may also be broken after a comma or the like.
_BLANKS = re.compile(rf"(?:(?<=[;,:=])\s+|\r?\n[ \t]+)(?!\s*{_PROPERTY})", re.IGNORECASE)


@dataclass(frozen=True)
class RuleText:
    """All that a text says: its rules, each with a DTSTART if there is one, and its dates."""

    rules: tuple[tuple[Parts, Stamp | None], ...]
    exrules: tuple[tuple[Parts, Stamp | None], ...]
    rdates: tuple[Stamp, ...]
    exdates: tuple[Stamp, ...]
    zone: str | None
    """The name of the zone of DTSTART."""


def is_rule_text(text: str) -> bool:
    """Tell a recurrence rule from a cron string by its first word."""
    return _FIRST_WORD.match(text) is not None


@lru_cache(maxsize=4096)
def read(text: str) -> RuleText:
    """Read the lines DTSTART, RRULE, EXRULE, RDATE and EXDATE, or only the parts of an RRULE.

    A DTSTART holds for the rules that follow it, and the first also for those before it.

    Raises:
        ConfigurationError: A line or a part cannot be read, does not fit, or is missing.

    """
    try:
        return _read(text)
    except ValueError as problem:
        raise complaint(text, problem) from None


def complaint(text: str, problem: object) -> ConfigurationError:
    """Return the error that tells what is wrong with a text."""
    return ConfigurationError(f"recurrence rule {shown(repr(text))}: {problem}")


def _read(text: str) -> RuleText:
    lines = [_line(line) for line in _BLANKS.sub("", text.strip()).split()]
    starts = [_start(parameters, value) for name, parameters, value in lines if name == "DTSTART"]
    zones = {start.zone for start in starts} or {None}
    if len(zones) > 1:
        raise ValueError("its DTSTART are in different zones; make an entry of each")
    rules: dict[str, list[tuple[Parts, Stamp | None]]] = {"RRULE": [], "EXRULE": []}
    dates: dict[str, list[Stamp]] = {"RDATE": [], "EXDATE": []}
    start = starts[0] if starts else None
    for name, parameters, value in lines:
        if name == "DTSTART":
            start = _start(parameters, value)
        elif name in dates:
            dates[name] += _stamps(name, parameters, value)
        else:
            rules[name].append((_rule(value, start), start))
    if not rules["RRULE"] and not dates["RDATE"]:
        raise ValueError("nothing recurs; add an RRULE, as RRULE:FREQ=DAILY, or an RDATE")
    if rules["EXRULE"] and any(parts.freq == "SECONDLY" for parts, _ in rules["RRULE"]):
        raise ValueError("EXRULE does not go with FREQ=SECONDLY; have the RRULE say what remains")
    return RuleText(
        tuple(rules["RRULE"]),
        tuple(rules["EXRULE"]),
        tuple(dates["RDATE"]),
        tuple(dates["EXDATE"]),
        zones.pop(),
    )


def _line(line: str) -> tuple[str, list[str], str]:
    if ":" not in line:
        return "RRULE", [], line
    head, _, value = line.partition(":")
    name, *parameters = head.split(";")
    if name.upper() not in _PROPERTIES:
        raise ValueError(
            f"{name} is not one of {', '.join(_PROPERTIES)}{hint(name.upper(), _PROPERTIES)}"
        )
    return name.upper(), parameters, value


def _rule(value: str, start: Stamp | None) -> Parts:
    parts = read_parts(value)
    check_fit(parts)
    if start is None:
        check_start(parts)
    return parts


def _start(parameters: list[str], value: str) -> Stamp:
    stamps = list(_stamps("DTSTART", parameters, value))
    if len(stamps) > 1:
        raise ValueError("DTSTART has several dates; keep the first, and write the others as RDATE")
    return stamps[0]


def _stamps(name: str, parameters: list[str], value: str) -> Iterator[Stamp]:
    zone = None
    for parameter in parameters:
        key, _, said = parameter.partition("=")
        if key.upper() == "TZID":
            zone = said.strip('"')
        elif parameter.upper() not in ("VALUE=DATE", "VALUE=DATE-TIME"):
            raise ValueError(
                f"{name} has {parameter!r}; allowed are TZID=…, VALUE=DATE-TIME and VALUE=DATE"
            )
    for each in value.split(","):
        yield read_stamp(name, each, zone)
