"""Hear what is logged while a schedule is loaded, and make findings of it; it loads nothing."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.diagnostics.findings import Finding, Severity
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OURS = "celery_redlock_beat"
ROSTER = f"{OURS}.roster"
SIGNALS = "celery.utils.dispatch.signal"
"""Celery logs what a handler of a signal raises, and goes on."""


class _Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def heard() -> Iterator[list[logging.LogRecord]]:
    """Keep warnings and errors of ours, and of Celery's signals, out of the log and in a list."""
    ear = _Ear()
    loggers = [(each, each.propagate) for each in map(logging.getLogger, (OURS, SIGNALS))]
    for logger, _ in loggers:
        logger.addHandler(ear)
        logger.propagate = False
    try:
        yield ear.records
    finally:
        for logger, propagated in loggers:
            logger.removeHandler(ear)
            logger.propagate = propagated


def told_by(records: Iterable[logging.LogRecord]) -> Iterator[Finding]:
    """Yield what was logged as findings; not the faults of entries, which the roster keeps."""
    for record in records:
        if record.name == SIGNALS:
            yield from _failed_handler(record)
        elif record.name != ROSTER:
            subject = "the configuration of the app"
            severity = Severity.ERROR if record.levelno > logging.WARNING else Severity.WARNING
            yield Finding(severity, "setting", subject, record.getMessage(), "")
        elif record.levelno == logging.WARNING:
            entry, doubt = _args(record)
            yield Finding(Severity.WARNING, "doubt", entry, doubt, "")


def _failed_handler(record: logging.LogRecord) -> Iterator[Finding]:
    receiver, error = _args(record)
    yield Finding(
        Severity.ERROR,
        "handler",
        shown(getattr(receiver, "__qualname__", repr(receiver))),
        f"this handler of a signal of Celery's raised {error!r}: entries that it adds are missing",
        "correct it: beat goes on without them",
    )


def _args(record: logging.LogRecord) -> tuple[Any, Any]:
    args: Any = record.args
    return args[0], args[1]
