"""What happened, line by line, for whoever replays a seed; it costs nothing when it is off."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.errors import DeliveryError
from celery_redlock_beat.ticks import SECOND, Tick
from simulation.plan import START

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.ticks import Micros

LOGGER = logging.getLogger("celery_redlock_beat")


class Trace:
    """Lines of virtual time, who, and what."""

    def __init__(self, now: Callable[[], Micros], *, is_on: bool) -> None:
        self.is_on = is_on
        self.lines: list[str] = []
        self._now = now

    def note(self, who: str, text: str) -> None:
        if self.is_on:
            self.lines.append(f"{self._now() / SECOND:10.6f}  {who:<7} {text}")

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()


class Ear(logging.Handler):
    """Hear what the core logs: all of it for a trace, swallowed exceptions for the judge."""

    def __init__(self, trace: Trace, on_traceback: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG if trace.is_on else logging.ERROR)
        self._trace = trace
        self._on_traceback = on_traceback

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._trace.note("log", f"{record.levelname.lower()}: {text}")
        if record.exc_info and not isinstance(record.exc_info[1], DeliveryError):
            self._on_traceback(f"{text}: {record.exc_info[1]!r}")

    def __enter__(self) -> Self:
        self._before = LOGGER.level, LOGGER.propagate
        LOGGER.addHandler(self)
        LOGGER.setLevel(self.level)
        LOGGER.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        LOGGER.removeHandler(self)
        level, LOGGER.propagate = self._before
        LOGGER.setLevel(level)


def spoken(verb: str, args: Sequence[Any], answer: Any) -> str:
    """Say in one line what a call asked, and what the server answered."""
    return f"{verb}({', '.join(map(words, args))}) → {words(answer)}"


def words(value: Any) -> str:
    """Say a value in short: instants from the start, and no field that is empty."""
    if isinstance(value, int) and value > START // 2:
        said = f"{(value - START) / SECOND:+.6f}"
    elif isinstance(value, BaseException):
        said = type(value).__name__
    elif isinstance(value, Tick):
        said = f"{value.entry!r} @ {words(value.at)}"
    elif isinstance(value, list):
        said = f"[{', '.join(map(words, value))}]"
    elif isinstance(value, Mapping):
        said = "{" + ", ".join(f"{words(k)}: {words(v)}" for k, v in value.items()) + "}"
    elif is_dataclass(value):
        given = ((each.name, getattr(value, each.name)) for each in fields(value))
        told = ", ".join(f"{name}={words(one)}" for name, one in given if one)
        said = f"{type(value).__name__}({told})"
    else:
        said = str(value)
    return said
