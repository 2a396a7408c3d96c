"""What operators ask of the ledger and what it tells them, as values and verbs; no I/O here.

A refusal is a value. What is stored or paused changes only if it is still what the caller saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery_redlock_beat.ledger import Command, Pause, Record, Registration
    from celery_redlock_beat.ticks import Micros, Reason, Tick


class Kind(StrEnum):
    """What the feed tells of."""

    ENTRY = "e"
    PAUSE = "p"


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a stored entry or a pause, at ``revision``.

    ``text`` is that in the ledger, as it is: the document of an entry, or what a pause tells,
    behind its revision; ``None`` where it is gone.
    """

    kind: Kind
    name: str
    revision: int
    text: bytes | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes up to a revision, ascending, and whether there are ``more``.

    ``whole`` tells that they begin with the very first: what is not among them is gone.
    """

    upto: int
    changes: Sequence[Change]
    more: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class OpenTick:
    """A tick that was claimed and not settled; ``owner`` is empty where nobody has it."""

    tick: Tick
    owner: str
    fence: int
    attempt: int
    previous: Micros
    deadline: Micros


@dataclass(frozen=True, slots=True)
class LastOutcome:
    """The last outcome of an entry, as the ledger wrote it down ``at`` an instant.

    ``outcome`` is ``sent``, ``skipped:<reason>``, ``in_doubt:<reason>`` or ``unreadable``;
    ``lateness`` the time from when its tick was due.
    """

    at: Micros
    tick: Micros
    outcome: str
    node: str
    fence: int
    attempt: int
    lateness: Micros


@dataclass(frozen=True, slots=True)
class Look:
    """All that the ledger knows of an entry, at its own ``now``.

    ``revision`` is 0 where it is not stored; ``document`` its text, without the revision.
    ``record`` is ``None`` where there is none, or where it is ``unreadable``. ``unwanted`` are the
    ticks that shall be skipped.
    """

    entry: str
    now: Micros
    record: Record | None = None
    unreadable: bool = False
    pause: Pause | None = None
    revision: int = 0
    document: bytes = b""
    last: LastOutcome | None = None
    unwanted: Sequence[Micros] = ()
    open: Sequence[OpenTick] = ()

    @property
    def settled(self) -> Micros:
        """An instant up to which all ticks are settled; its ``now`` where there is no record."""
        mark = self.record.mark if self.record else self.now
        return min([mark, *(each.previous for each in self.open)])


@dataclass(frozen=True, slots=True)
class Ending:
    """An open tick that ends unsent, and what it had passed over, by reason."""

    tick: Micros
    fence: int
    passed: Mapping[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Remainder:
    """What of an entry is due and neither sent nor skipped at an instant, as one who looked counts.

    The ledger counts it in, and raises the mark from ``mark`` to ``upto``, if it is still so.
    """

    mark: Micros
    upto: Micros
    passed: Mapping[Reason, int] = field(default_factory=dict)
    endings: Sequence[Ending] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """An entry to store: its document as JSON, and what makes it known to the ledger.

    ``expected`` is the revision that it must have, 0 for one that must be new. ``remainder`` is
    needed where its timetable changes.
    """

    document: str
    registration: Registration
    expected: int = 0
    remainder: Remainder | None = None
    note: str = ""

    @property
    def entry(self) -> str:
        """Its name."""
        return self.registration.entry


@dataclass(frozen=True, slots=True)
class Removal:
    """A stored entry to remove; the remainder must have all of its open ticks.

    ``hidden`` tells that the code has an entry of its name: ticks, record and pause are that one's.
    """

    entry: str
    expected: int
    remainder: Remainder | None = None
    note: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Resumption:
    """A pause of that revision to end; without a remainder, what was due meanwhile is caught up."""

    entry: str
    expected: int
    remainder: Remainder | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Steered:
    """Whether it was ``done``; else it is not what the caller saw, who has to look again.

    ``revision`` is the new one, or else the present one: 0 where there is none.
    """

    entry: str
    done: bool
    revision: int


class Seeding(StrEnum):
    """The answer to seed: the first one also where it began there already."""

    DONE = "DONE"
    CLAIMED = "CLAIMED"
    CHANGED = "CHANGED"


class Skipping(StrEnum):
    """The answer to skip."""

    DONE = "DONE"
    OPEN = "OPEN"
    SETTLED = "SETTLED"
    MISSING = "MISSING"


class Step(StrEnum):
    """How far a message that is sent beside the schedule is."""

    PUSH = "PUSH"
    RESERVE = "RESERVE"
    DONE = "DONE"
    FAILED = "FAILED"


class Firing(StrEnum):
    """The answer to fire: only the first one allows to send, or tells that it was sent."""

    DONE = "DONE"
    ALREADY = "ALREADY"
    PAUSED = "PAUSED"


@dataclass(frozen=True, slots=True)
class Shot:
    """A message to send beside the schedule, once per ``task_id`` while that is remembered."""

    entry: str
    task_id: str
    force: bool = False
    note: str = ""


class Steering(Protocol):
    """An operator's hold on the ledger; ``note`` is what the history keeps of a deed.

    Every verb but ``look`` raises :class:`~celery_redlock_beat.errors.LedgerRecovering` while a
    recovery runs, and every verb raises :class:`~celery_redlock_beat.errors.LedgerUnavailable` when
    it could not be asked.
    """

    def look(self, entries: Sequence[str]) -> list[Look]:
        """Tell all that is known of entries, in the same order; this changes nothing."""

    def store(self, definitions: Sequence[Definition]) -> list[Steered]:
        """Add entries, or change them."""

    def seed(
        self, registrations: Sequence[Registration], note: str = "", *, dry_run: bool = False
    ) -> list[tuple[Seeding, Record | None]]:
        """Let entries begin where another scheduler stopped; return what is known of each then.

        ``dry_run`` only tells what would be answered.
        """

    def remove(self, removals: Sequence[Removal]) -> list[Steered]:
        """Remove stored entries: when it has answered, nothing of them is enqueued any more."""

    def pause(
        self, entries: Sequence[str], note: str = "", who: str = "", until: Micros | None = None
    ) -> list[int]:
        """Hold entries back, and return the revisions: from then on nothing of them is enqueued."""

    def resume(self, resumptions: Sequence[Resumption]) -> list[Steered]:
        """End pauses."""

    def skip(self, ticks: Sequence[Tick], note: str = "") -> list[Skipping]:
        """Have ticks skipped when they are claimed."""

    def fire(self, shot: Shot, step: Step, commands: Sequence[Command] = ()) -> Firing:
        """Send a message beside the schedule in one step, or tell how far it is.

        Raises:
            DeliveryImpossible: the key of its queue is not a list.
        """

    def begin(self) -> Micros:
        """Take part in a recovery without any memory; return how long it goes on, 0 if it is over.

        A ledger that is new has to go through one before anything can be kept in it.
        """
