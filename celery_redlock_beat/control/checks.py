"""Refuse what an operator said and what cannot be meant, or not be kept; it asks nobody."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.entry_checks import STOCK_KEYS, is_storable
from celery_redlock_beat.errors import ControlError, EntryError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.policies import PARSERS, hint_for
from celery_redlock_beat.ticks import LATEST, to_datetime, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable

    from celery_redlock_beat.ticks import Micros

Choice = TypeVar("Choice", bound=StrEnum)


def check_text(what: str, text: Any) -> None:
    """Refuse what is no text, or cannot be kept.

    Raises:
        ControlError: It is none, or cannot be written as UTF-8.
    """
    if not isinstance(text, str):
        raise ControlError(f"{what} must be a text, and is of type {type(text).__name__}")
    if not is_storable(text):
        raise ControlError(f"{what} = {text!r} cannot be written as UTF-8: give another text")


def check_keys(name: str, keys: Iterable[str]) -> None:
    """Refuse what no entry has, also where it is to be taken out.

    Raises:
        EntryError: One of the keys is unknown.
    """
    known = STOCK_KEYS | PARSERS.keys()
    for key in keys:
        if key not in known:
            raise EntryError(name, f"unknown key {key!r}; {hint_for(key, known)}")


def choice_of(kind: type[Choice], what: str, given: Any) -> Choice | None:
    """Return which one is meant; ``None`` as it is.

    Raises:
        ControlError: There is no such one.
    """
    if given is None:
        return None
    choices = [str(each) for each in kind]
    if given not in choices:
        told = f"there are {', '.join(choices)}"
        raise ControlError(f"{what} = {given!r} is none; {hint(str(given), choices, told)}")
    return kind(given)


def instant_of(given: Any, what: str = "the instant") -> Micros:
    """Return a datetime in microseconds.

    Raises:
        ControlError: It is none, or does not say which offset from UTC it has.
    """
    example = "datetime(2030, 1, 31, 12, tzinfo=UTC)"
    if not isinstance(given, datetime):
        raise ControlError(f"{what} must be an aware datetime, as {example}, and not {given!r}")
    if given.utcoffset() is None:
        raise ControlError(
            f"{given.isoformat()} has no offset from UTC: give an aware datetime, as in {example}"
        )
    return to_micros(given)


def end_of(until: Any, now: Micros) -> Micros:
    """Return when a pause ends that is to last so long, or until then.

    Raises:
        ControlError: It is neither, or is over, or too far away.
    """
    if isinstance(until, timedelta):
        ends = now + until // timedelta(microseconds=1)
    elif isinstance(until, datetime):
        ends = instant_of(until)
    else:
        raise ControlError(
            f"until = {until!r} is neither an aware datetime nor a timedelta: give one of them, "
            "or leave it out to pause until somebody resumes"
        )
    said = until.isoformat() if isinstance(until, datetime) else str(until)
    if ends <= now:
        raise ControlError(
            f"until {said} is over: the ledger's time is {to_datetime(now).isoformat()}; give a "
            "later instant"
        )
    if ends > LATEST:
        raise ControlError(
            f"until {said} is later than {to_datetime(LATEST).isoformat()}: leave it out, and "
            "it is paused until somebody resumes it"
        )
    return ends
