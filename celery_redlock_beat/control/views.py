"""What an operator is told, as values; nothing in here asks anybody.

Instants are aware datetimes in UTC, durations are seconds. :func:`as_dict` makes of each what a
program can read: instants as ISO 8601, the rest as JSON has it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Origin(StrEnum):
    """Where an entry is defined."""

    CODE = "code"
    STORED = "stored"


class State(StrEnum):
    """What an entry does just now."""

    ACTIVE = "active"
    PAUSED = "paused"
    DISABLED = "disabled"
    FINISHED = "finished"  # it has no tick any more, or has run as often as it may
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Paused:
    """Why an entry is paused, by whom, since when, and until when (``None``: until resumed)."""

    note: str
    who: str
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Result:
    """The last outcome of an entry: ``sent``, ``skipped``, ``in_doubt`` or ``unreadable``.

    ``reason`` says why it was not sent; ``lateness`` is the time from when it was due.
    """

    at: datetime
    tick: datetime
    outcome: str
    reason: str
    node: str
    attempt: int
    lateness: float
    task_id: str


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry, and how it stands.

    ``definition`` is its document, as stored entries have it; empty for one from code that only
    code can have. ``schedule`` is in words. ``revision`` is 0 for one from code. ``next`` is its
    next tick, if that can be told and it is not held back. ``open`` are ticks that are being sent.
    ``problem`` says what is wrong with a bad one.
    """

    name: str
    origin: Origin
    state: State
    task: str
    schedule: str
    timezone: str
    tags: Sequence[str]
    description: str
    definition: Mapping[str, Any]
    revision: int
    next: datetime | None
    last: Result | None
    paused: Paused | None
    runs: int
    unwanted: Sequence[datetime] = ()
    open: Sequence[datetime] = ()
    problem: str = ""


class Resumed(list[EntryView]):
    """How entries are after a resume; ``names`` are those whose pauses it ended, sorted."""

    def __init__(self, views: Iterable[EntryView], names: Iterable[str]) -> None:
        super().__init__(views)
        self.names: Sequence[str] = tuple(sorted(names))


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A tick to come. ``due`` is later than ``tick`` by jitter; ``held`` says why it is not sent.

    ``held`` is empty, ``paused``, or ``skip``.
    """

    tick: datetime
    due: datetime
    entry: str
    task: str
    held: str = ""


@dataclass(frozen=True, slots=True)
class Fired:
    """A message that was sent beside the schedule; ``already`` if one of this key was before."""

    entry: str
    task_id: str
    already: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a document: ``added``, ``changed``, ``same`` as before, or ``refused``.

    ``problem`` says why it was refused.
    """

    name: str
    done: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Seeded:
    """Whether an entry begins where another scheduler stopped: ``seeded`` or ``refused``.

    ``next`` is its first tick after the ``last_run``, if that can be told; it is sent at once where
    it is over and the entry's policy wants it. ``shift`` are the seconds by which that is another
    instant than one period after the last run. ``problem`` says why it was refused.
    """

    name: str
    done: str
    last_run: datetime
    next: datetime | None = None
    shift: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """One thing that came about.

    ``action`` is ``sent``, ``skipped``, ``in_doubt``, ``unreadable``, or what an operator did:
    ``added``, ``changed``, ``seeded``, ``removed``, ``paused``, ``resumed``, ``fired``,
    ``to_be_skipped``.
    ``passed`` counts by reason what was skipped with it, back to ``previous``.
    """

    id: str
    at: datetime
    entry: str
    action: str
    reason: str
    tick: datetime
    node: str
    fence: int
    attempt: int
    previous: datetime
    lateness: float
    task_id: str
    passed: Mapping[str, int]
    detail: str

    @property
    def taken_over(self) -> bool:
        """Whether another node had tried it before."""
        return self.attempt > 1


@dataclass(frozen=True, slots=True)
class Why:
    """Why a tick is what it is.

    ``answer`` is one word: ``sent``, ``late``, ``skipped``, ``in_doubt``, ``open``, ``owed``,
    ``ahead``, ``paused``, ``to_be_skipped``, ``not_a_tick``, ``not_recorded``; ``text`` says it in
    a sentence, with what to do if there is something to do. ``record`` is what it was read from.
    """

    entry: str
    at: datetime
    answer: str
    text: str
    record: HistoryRecord | None = None


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as its last heartbeat told.

    ``offset`` is how far its own clock is from the ledger's, ``lateness`` the longest of the last
    minute, ``schedule`` the fingerprint of the entries from code. ``remarks`` say what is odd about
    it beside the others.
    """

    id: str
    alive: bool
    left: bool
    heartbeat: datetime
    host: str = ""
    pid: int = 0
    version: str = ""
    started: datetime | None = None
    offset: float | None = None
    schedule: str = ""
    entries: int | None = None
    bad_entries: int | None = None
    lateness: float | None = None
    ready: bool | None = None
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the fleet does its work. ``problems`` make it not ready, ``warnings`` do not.

    ``ready``: a live node sends what is due. ``alive``: the ledger answers, and a node lives.
    ``entries`` counts what is ``stored``, what is ``paused`` (also where the time of a pause is
    over, until a node ends it), and, if a node lives that tells it, the good ones from ``code``.
    ``totals`` counts outcomes since the ledger began.
    """

    alive: bool
    ready: bool
    problems: Sequence[str]
    warnings: Sequence[str]
    now: datetime | None
    nodes: int
    entries: Mapping[str, int]
    open: int
    oldest_open: datetime | None
    totals: Mapping[str, int] = field(default_factory=dict)


def as_dict(view: Any) -> Any:
    """Return a view, or several, as JSON can have it."""
    if dataclasses.is_dataclass(view) and not isinstance(view, type):
        return {each.name: as_dict(getattr(view, each.name)) for each in dataclasses.fields(view)}
    if isinstance(view, dict):
        return {str(key): as_dict(value) for key, value in view.items()}
    if isinstance(view, list | tuple):
        return [as_dict(each) for each in view]
    if isinstance(view, datetime):
        return view.isoformat().replace("+00:00", "Z")
    return view
