"""What an operator did, and what of each entry is due by that, as plain data; it judges nothing.

Instants are microseconds by the server's clock, periods seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from support.judge import grid

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros

BEGINS, RETURNED = "begins", "returned"


class Kind(StrEnum):
    """What an operator can do to an entry."""

    ADD = "add"
    EDIT = "edit"
    PAUSE = "pause"
    RESUME = "resume"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Moment:
    """A call: something happened not before it began, and not after it had returned."""

    begins: Micros
    returned: Micros


@dataclass(frozen=True, slots=True)
class Terms:
    """What an entry says: its schedule as it is written, the period of that, and its ``version``.

    Each text that was stored has a version of its own, which its messages carry.
    """

    schedule: float | str
    period: float
    catch_up: str
    version: int


@dataclass(frozen=True, slots=True)
class Deed:
    """One call of an operator; ``terms`` are those of the entry from then on.

    ``until`` is when a pause is to end by itself; ``catch_up`` whether a resumed entry catches up.
    """

    number: int
    kind: Kind
    entry: str
    moment: Moment
    terms: Terms | None = None
    until: Micros | None = None
    catch_up: bool = False

    def mark(self, when: str) -> str:
        """Return the id of our own message that shows in the queue when it began or returned."""
        return mark_of(self.number, when)


def mark_of(number: int, when: str) -> str:
    """Return the id of a message of our own, which shows when a deed began or had returned."""
    return f"deed {number} {when}"


@dataclass(slots=True)
class InForce:
    """Terms, and from when to when they held; ``life`` counts how often the entry was added.

    ``retimed`` tells that the timetable is another one than before: nothing earlier is sent later.
    """

    terms: Terms
    life: int
    since: Moment
    until: Moment
    retimed: bool


@dataclass(slots=True)
class Hold:
    """A pause, and how it ended: ``forgets`` tells that what was due meanwhile is not sent."""

    since: Moment
    until: Moment
    ends_at: Micros | None = None
    forgets: bool = True


@dataclass(slots=True)
class Life:
    """What became of one entry by the operator's hand, in order, up to the ``end`` of the run."""

    entry: str
    end: Moment
    terms: list[InForce] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    lives: int = 0

    @property
    def exists(self) -> bool:
        """Whether it is there at the end."""
        return bool(self.terms) and self.terms[-1].until is self.end

    def certainly_due(self) -> Iterator[tuple[Micros, InForce]]:
        """Yield the ticks that are due, whatever happened within the calls."""
        for run in self.terms:
            for at in grid(run.terms.period, run.since.returned + 1, run.until.begins - 1):
                yield at, run

    def perhaps_due(self) -> Iterator[Micros]:
        """Yield the ticks that fall into the moment of a call that changed something."""
        for run in self.terms:
            period = run.terms.period
            yield from grid(period, run.since.begins, run.since.returned)
            if run.until is not self.end:
                yield from grid(period, run.until.begins, run.until.returned)

    def in_force(self, after: Micros, before: Micros) -> list[InForce]:
        """Return the terms that may have held at some instant between the two."""
        return [
            run for run in self.terms if run.since.begins <= before and run.until.returned >= after
        ]


def lives_of(
    deeds: Iterable[Deed], from_code: dict[str, tuple[Terms, Micros]], end: Micros
) -> dict[str, Life]:
    """Return the life of each entry; those from code are there since an instant."""
    last = Moment(end, end)
    lives = {name: Life(name, last) for name in from_code}
    for name, (terms, since) in from_code.items():
        _begin(lives[name], terms, Moment(since, since), is_new=True)
    for deed in deeds:
        _DO[deed.kind](lives.setdefault(deed.entry, Life(deed.entry, last)), deed)
    return lives


def _begin(life: Life, terms: Terms | None, moment: Moment, *, is_new: bool) -> None:
    assert terms is not None
    before = life.terms[-1] if life.terms and not is_new else None
    life.lives += is_new
    retimed = before is None or before.terms.schedule != terms.schedule
    life.terms.append(InForce(terms, life.lives, moment, life.end, retimed=retimed))


def _add(life: Life, deed: Deed) -> None:
    _begin(life, deed.terms, deed.moment, is_new=True)


def _edit(life: Life, deed: Deed) -> None:
    life.terms[-1].until = deed.moment
    _begin(life, deed.terms, deed.moment, is_new=False)


def _pause(life: Life, deed: Deed) -> None:
    _let_go(life, deed.moment, forgets=False)
    life.holds.append(Hold(deed.moment, life.end, deed.until))


def _resume(life: Life, deed: Deed) -> None:
    _let_go(life, deed.moment, forgets=not deed.catch_up)


def _remove(life: Life, deed: Deed) -> None:
    life.terms[-1].until = deed.moment
    _let_go(life, deed.moment, forgets=True)


def _let_go(life: Life, moment: Moment, *, forgets: bool) -> None:
    if life.holds and life.holds[-1].until is life.end:
        life.holds[-1].until = moment
        life.holds[-1].forgets = forgets


_DO = {
    Kind.ADD: _add,
    Kind.EDIT: _edit,
    Kind.PAUSE: _pause,
    Kind.RESUME: _resume,
    Kind.REMOVE: _remove,
}


def timed_alike(runs: Sequence[InForce]) -> Iterator[list[InForce]]:
    """Yield the terms in groups on one timetable, one after the other."""
    group: list[InForce] = []
    for run in runs:
        if run.retimed and group:
            yield group
            group = []
        group.append(run)
    if group:
        yield group
