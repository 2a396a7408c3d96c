"""The ledger's verbs and their answers: the shared memory of ticks, as values; no I/O here.

A refusal is a value; only "we could not ask" is raised, as a
:class:`~celery_redlock_beat.errors.LedgerError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from celery_redlock_beat.ticks import SECOND, Micros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery_redlock_beat.ledger.steering import Change, Changes, Look, Resumption, Steered
    from celery_redlock_beat.ledger.testimony import Doubt, Recovery, Testimony
    from celery_redlock_beat.ticks import Outcome, Reason, Tick

ESSENTIAL = ("marks", "open", "grants", "paused", "entries")
"""The keys that the ledger notices the loss of."""
MOST_PER_CALL = 100
"""Ticks per call: 100 grants hold the server for 1–1.6 ms, 1000 for 12–27 ms."""
HEARTBEAT_ALIVE: Micros = 30 * SECOND
"""How old a heartbeat may be for its node to count as alive."""
SETTLED_KEPT: Micros = 600 * SECOND
"""How long a settled grant is remembered, so that its own node is told so when it asks again."""
HISTORY = 10_000
"""How many outcomes are kept, about."""
MAY_MISS: Micros = 900 * SECOND
"""How long an entry may be missing from all living nodes before it counts as removed."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Where another scheduler stopped: up to ``at`` it sent an entry, and nothing later.

    ``phase`` is that of its interval, which then goes on. ``again`` tells that it may have sent
    since ticks were claimed here; without that, an entry of which one was claimed stays as it is.
    """

    at: Micros
    phase: Micros | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Registration:
    """An entry that a node has, and the fingerprint of its timetable.

    ``again`` tells that it was removed or disabled meanwhile. ``run_on_start`` opens one tick at
    the first registration ever. ``once`` tells that it has one instant only: also where that has
    passed it shall be accounted for, as everything that is due. ``revision`` is that under which
    it is stored, if it is. ``seed`` is where another scheduler stopped, and ``takes_phase`` that it
    is an interval which says no phase, so that it goes on with the one it was seeded with.
    """

    entry: str
    fingerprint: str
    again: bool = False
    run_on_start: bool = False
    once: bool = False
    revision: int | None = None
    takes_phase: bool = False
    seed: Seed | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What the ledger holds of an entry: nothing up to ``since`` is caught up.

    ``runs`` are the ticks up to ``mark`` that were granted, and not skipped: so many messages there
    may be at most, in publish delivery not counting one that was sent again.
    """

    entry: str
    mark: Micros
    since: Micros
    fence: int
    runs: int
    fingerprint: str


class Verdict(StrEnum):
    """The answer to one asked tick; only the first two allow to send it."""

    GRANTED = "GRANTED"
    MINE = "MINE"
    HELD = "HELD"
    SETTLED = "SETTLED"
    EARLY = "EARLY"
    PAUSED = "PAUSED"
    FINISHED = "FINISHED"
    CHANGED = "CHANGED"
    UNREGISTERED = "UNREGISTERED"
    UNREADABLE = "UNREADABLE"


@dataclass(frozen=True, slots=True)
class Ask:
    """A tick that a node wants to send.

    ``due_at`` is the tick and its jitter. ``expected`` makes the claim a compare-and-set on the
    mark, for timetables that compute their next instant from the last one. ``limit`` is how many
    runs the entry may have at most: its ticks are then granted one after the other. ``revision`` is
    that under which the entry is stored, if it is: CHANGED is the answer to another one.
    """

    tick: Tick
    due_at: Micros
    expected: Micros | None = None
    limit: int | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """The right to send one tick until ``deadline`` (ledger time), proven by ``fence``.

    ``previous`` is the mark before the first grant of this tick. ``waited`` tells that the tick
    was released because it could not be delivered; ``unwanted`` that an operator wants it to be
    skipped. ``due_at`` is the tick and its jitter, where that is known.
    """

    tick: Tick
    fence: int
    attempt: int
    previous: Micros
    deadline: Micros
    waited: bool = False
    unwanted: bool = False
    due_at: Micros | None = None

    @property
    def due(self) -> Micros:
        """When the tick is due."""
        return self.tick.at if self.due_at is None else self.due_at


@dataclass(frozen=True, slots=True)
class Pause:
    """An entry that is paused: why, by whom, since when, and until when it asks to be.

    ``revision`` rises with every pause and resume. Its time may be over: until somebody resumes it,
    nothing of it is sent.
    """

    entry: str
    revision: int
    note: str = ""
    who: str = ""
    since: Micros = 0
    until: Micros | None = None

    def is_over(self, now: Micros) -> bool:
        """Whether it was to end by now."""
        return self.until is not None and self.until <= now


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an ask, with the entry's present mark (-1: unregistered, or unreadable).

    ``wait`` is how long the refusal holds, for EARLY and HELD. HELD with a mark below the tick
    tells that an earlier tick of an entry with a limit is still open. ``runs`` are the entry's.
    """

    tick: Tick
    verdict: Verdict
    mark: Micros
    wait: Micros = 0
    grant: Grant | None = None
    pause: Pause | None = None
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Orphan:
    """An open tick without an owner: its lease ended at ``free_since``."""

    tick: Tick
    free_since: Micros
    attempt: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answers to a claim at the server's ``now``, orphans, and when the next lease ends.

    ``open`` names all open ticks of all entries, each with the mark before its first grant, or is
    ``None`` where they are too many. ``revision`` is the highest of the feed; ``stirred`` tells
    that somebody wrote to what is stored or paused past it.
    """

    now: Micros
    answers: list[Answer]
    orphans: list[Orphan]
    cursor: int
    next_deadline: Micros | None
    open: Mapping[Tick, Micros] | None
    revision: int = 0
    stirred: bool = False


@dataclass(frozen=True, slots=True)
class Settlement:
    """An outcome to write down, with the ticks passed over since the previous mark, by reason.

    ``detail`` says more where there is more to say.
    """

    grant: Grant
    outcome: Outcome
    passed: Mapping[Reason, int] = field(default_factory=dict)
    detail: str = ""


class Closing(StrEnum):
    """The answer to settle and enqueue. Only DONE and ALREADY mean that the outcome stands."""

    DONE = "DONE"
    ALREADY = "ALREADY"
    STALE = "STALE"
    PAUSED = "PAUSED"

    @property
    def stands(self) -> bool:
        """Whether the outcome that was asked for is written down."""
        return self in (Closing.DONE, Closing.ALREADY)


class Release(StrEnum):
    """Why a grant is given back: whether it counts as an attempt, and whether newer ticks win."""

    UNTRIED = "UNTRIED"
    UNREACHABLE = "UNREACHABLE"
    FAILED = "FAILED"


class Command(NamedTuple):
    """One final command of a broker's message: LPUSH, PUBLISH or PEXPIRE."""

    name: str
    key: str
    argument: str | bytes | int


class Ledger(Protocol):
    """One node's hold on the shared memory of ticks.

    Every verb but ``recover`` raises :class:`~celery_redlock_beat.errors.LedgerRecovering` while
    the server has not heard this node under its present epoch, and every verb raises
    :class:`~celery_redlock_beat.errors.LedgerUnavailable` when it could not be asked.
    """

    marks_key: str
    """Where it keeps what it knows of the entries, for those who must look there themselves."""

    node: str
    """What this node is known by."""

    def sibling(self) -> Ledger:
        """Return the same node on a connection of its own, for use beside an unfinished call."""

    def register(self, registrations: Sequence[Registration]) -> list[Record | None]:
        """Make entries known, and answer their records in the same order; unreadable: ``None``."""

    def attend(self, entries: Sequence[str]) -> None:
        """Tell that this node still has these entries."""

    def claim(self, asks: Sequence[Ask], cursor: int = 0, told: str = "") -> Claimed:
        """Ask for ticks, ascending per entry, and for orphans from the cursor.

        ``told`` is what the node tells of itself, as JSON; empty, if that is no news.
        """

    def settle(self, settlements: Sequence[Settlement]) -> list[Closing]:
        """Close open ticks with their outcomes, counting what was passed over."""

    def enqueue(
        self, grant: Grant, commands: Sequence[Command], passed: Mapping[Reason, int]
    ) -> Closing:
        """Push a message and settle its tick as sent, in one step or not at all."""

    def release(self, grants: Sequence[Grant], back_off: Micros, why: Release) -> None:
        """Give grants back: the ticks stay open, without an owner, until the back-off ends."""

    def recover(self, testimony: Testimony) -> Recovery:
        """Push what this node remembers, until the recovery is over."""

    def restore(self, changes: Sequence[Change]) -> None:
        """Push what was stored, removed, paused and resumed, ascending, where it is not known."""

    def changes(self, since: int, *, going_on: bool = False) -> Changes:
        """Tell what was stored, removed, paused and resumed after a revision.

        ``going_on`` tells that it is one that was told from the very beginning.

        Raises:
            LedgerUnavailable: also where a key of the feed holds another type than ours.
        """

    def look(self, entries: Sequence[str]) -> list[Look]:
        """Tell all that is known of entries, in the same order; this changes nothing."""

    def resume(self, resumptions: Sequence[Resumption]) -> list[Steered]:
        """End pauses, also those whose time is over."""

    def depart(self, told: str) -> None:
        """Tell that this node has left."""

    def resolve(self, doubts: Mapping[Doubt, Sequence[Micros]]) -> list[Tick]:
        """Close the ticks that lie in each doubt as in doubt; return those that nobody closed."""

    def repair(
        self, marks: Mapping[str, Micros | None], who: str, why: str
    ) -> dict[str, tuple[str, Micros]]:
        """Set marks, also downwards; ``None`` is the server's now.

        Returns the text of each record before, and the mark that it has now.

        Raises:
            LedgerRecovering: not while a recovery runs.
        """
