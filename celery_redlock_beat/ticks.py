"""What a tick is, what became of it, and what a timetable must answer; no I/O and no clock.

All instants are UTC, as integer microseconds since the Unix epoch (``Micros``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol
from uuid import NAMESPACE_URL, uuid5

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Micros = int

SECOND: Micros = 1_000_000
LATEST: Micros = 2**53
"""In the year 2255: what scripts and scores count exactly ends there."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COUNT_LIMIT = 10_000
LONGEST_SHOWN = 200
CATCH_UP = ("latest", "all", "none")
DST = ("celery", "real")


def to_micros(moment: datetime) -> Micros:
    """Convert an aware datetime to microseconds since the epoch, exactly."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def to_datetime(moment: Micros) -> datetime:
    """Convert microseconds since the epoch to an aware UTC datetime, exactly."""
    return EPOCH + timedelta(microseconds=moment)


def shown(name: str) -> str:
    """Return a name for a log: on one line, and no longer than a line should be."""
    text = name if name.isprintable() else repr(name)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def listed(names: Sequence[str], most: int, number: int | None = None) -> str:
    """Return the first of names, and how many more there are, of all or of so many."""
    more = (len(names) if number is None else number) - min(len(names), most)
    first = ", ".join(names[:most])
    return f"{first} and {more:,} more" if more > 0 else first


@dataclass(frozen=True, slots=True, order=True)
class Tick:
    """One scheduled instant of one entry: what is claimed, named, logged and sent once."""

    entry: str
    at: Micros

    @property
    def instant(self) -> datetime:
        """The nominal instant as an aware UTC datetime."""
        return to_datetime(self.at)

    def __str__(self) -> str:
        return f"{shown(self.entry)} @ {self.instant.isoformat()}"

    def task_id(self, namespace: str) -> str:
        """Return the id that every attempt to send this tick carries."""
        return id_in(namespace, f"{self.at}:{self.entry}")


def id_in(namespace: str, what: str) -> str:
    """Return the task id that stands for something in a namespace, the same in every process."""
    return str(uuid5(uuid5(NAMESPACE_URL, f"celery-redlock-beat:{namespace}"), what))


class Reason(StrEnum):
    """Why a due tick was not sent, or, for data loss, why nobody can say whether it was."""

    SUPERSEDED = "superseded"
    GRACE = "grace"
    WINDOW = "window"
    PAUSED = "paused"
    REMOVED = "removed"
    OPERATOR = "operator"
    ERROR = "error"
    ATTEMPTS = "attempts"
    UNKNOWN_ENTRY = "unknown_entry"
    NOT_SENT = "not_sent"
    END = "end"
    BEFORE_REGISTRATION = "before_registration"
    DATA_LOSS = "data_loss"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a due tick: sent, skipped with a reason, or in doubt after a loss of data."""

    reason: Reason | None = None

    @property
    def text(self) -> str:
        """Its name in the ledger: ``sent``, ``skipped:<reason>`` or ``in_doubt:<reason>``."""
        if self.reason is None:
            return "sent"
        return f"{'in_doubt' if self.reason is Reason.DATA_LOSS else 'skipped'}:{self.reason}"


SENT = Outcome()
IN_DOUBT = Outcome(Reason.DATA_LOSS)
"""It may have been sent or not: whoever knew is gone, or its message went with the data."""


def skipped(reason: Reason) -> Outcome:
    """Return the outcome of a tick that is deliberately not sent."""
    return Outcome(reason)


@dataclass(frozen=True, slots=True)
class Event:
    """What observers are told: the outcome of one tick, as the node that settled it knows it.

    ``lateness`` is the time from when the tick was due, jitter included, to its outcome;
    ``passed_over`` how many earlier ticks were skipped with it, by reason: exactly, or at least;
    ``detail`` says more where there is more to say.
    """

    tick: Tick
    outcome: Outcome
    task: str
    task_id: str
    attempt: int
    lateness: Micros
    passed_over: Mapping[Reason, int]
    detail: str = ""
    passed_over_exact: bool = True


@dataclass(frozen=True, slots=True)
class Count:
    """How many ticks lie between two instants, or, where not ``exact``, at least how many."""

    number: int
    exact: bool = True


class Timetable(Protocol):
    """A schedule as a set of instants, the same on every node.

    Implementations are immutable and compare and hash by value, so that answers can be memoised
    per timetable and entries on equal timetables share them.
    """

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the set of instants does."""

    def __hash__(self) -> int:
        """Hash it by value."""

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the first instant later than ``moment``, or ``None`` if there is none."""

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the last instant not later than ``moment``, or ``None`` if there is none."""

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count the instants strictly between two moments: exactly, or up to ``COUNT_LIMIT``."""
