"""Lengths of time as numbers of seconds or as texts, exact to the microsecond; it knows no kind."""

from __future__ import annotations

import re
from datetime import timedelta

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables.nicknames import EVERY, spelled_out

MICROSECOND = timedelta(microseconds=1)
TYPED = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[dhms])+\Z")
"""A duration as people type it: without what is below a second, a slip of a finger from minutes."""
_WAY_OUT = "write seconds as a number, or a text such as '90s' or '1h30m'"


def number(seconds: float) -> float:
    """Return a number without a needless fraction: 30 for 30.0."""
    return int(seconds) if float(seconds).is_integer() else seconds


def written(span: timedelta) -> float | str:
    """Return a length of time in seconds; as text where a number would lose microseconds."""
    seconds, rest = divmod(span // MICROSECOND, SECOND)
    if not rest:
        return seconds
    told = span.total_seconds()
    # From 285 years on, a float has no place for all of them.
    return told if timedelta(seconds=told) == span else f"{seconds}s{rest}us"


def parse_span(value: object) -> timedelta:
    """Take seconds as a number, or a text as after ``@every``: more than nothing.

    Raises:
        ValueError: It is something else.

    """
    try:
        span = _span(value)
    except OverflowError:
        raise ValueError(f"is far too long; {_WAY_OUT}, of less than 2700 years") from None
    if span < MICROSECOND:
        raise ValueError(
            "is no time at all: give more than 0, or switch the entry off with 'enabled'"
        )
    return span


def _span(value: object) -> timedelta:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    if isinstance(value, str):
        try:
            return timedelta(microseconds=int(spelled_out(f"{EVERY} {value.strip()}")))
        except ConfigurationError:
            pass
    raise ValueError(f"is no duration: {_WAY_OUT}")
