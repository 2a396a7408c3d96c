"""Between the ledger's values and what goes over the wire; it asks nothing and decides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.ledger import (
    Answer,
    Doubt,
    Grant,
    Orphan,
    Pause,
    Record,
    Recovery,
    Verdict,
)
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from celery_redlock_beat.ledger import Ask, Memory, Registration, Testimony
    from celery_redlock_beat.ticks import Micros, Reason

T = TypeVar("T")
STATUSES = (b"OK", b"RECOVERING", b"FOREIGN", b"FORMAT")
DOUBTS_PER_ROW = 100


def chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    """Cut into parts of at most ``size``."""
    return (items[start : start + size] for start in range(0, len(items), size))


def flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    """Put the values of all rows into one list."""
    return [value for row in rows for value in row]


def known_as(r: Registration) -> tuple[Any, ...]:
    """Return an entry as it is registered."""
    return r.entry, r.fingerprint, int(r.again), int(r.run_on_start), int(r.once)


def asked(ask: Ask) -> tuple[Any, ...]:
    """Return what is asked for a tick."""
    terms = ("" if each is None else each for each in (ask.expected, ask.limit))
    return ask.tick.entry, ask.tick.at, ask.due_at, *terms


def proof(grant: Grant) -> tuple[str, Micros, int]:
    """Return what proves a grant."""
    return grant.tick.entry, grant.tick.at, grant.fence


def commas(numbers: Iterable[int]) -> str:
    """Write numbers into one text."""
    return ",".join(map(str, numbers))


def counted(passed: Mapping[Reason, int]) -> list[Any]:
    """Return how many reasons there are, then each with its number."""
    return [len(passed), *flat((str(reason), number) for reason, number in passed.items())]


def text(value: bytes | str) -> str:
    """Decode what the server told; what is no UTF-8 was not written by us, and stays strange."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def reply(told: Any) -> list[Any]:
    """Return an answer of a script of ours; ``ValueError`` for anything else."""
    if not isinstance(told, list) or len(told) < 3 or told[0] not in STATUSES:  # noqa: PLR2004
        raise ValueError(f"no answer to the call: {told!r:.100}")
    int(told[1]), int(told[2])
    return told


def record(entry: str, told: bytes) -> Record | None:
    """Read an entry's record; ``None`` where the ledger cannot."""
    if not told:
        return None
    mark, since, fence, runs, fingerprint = text(told).split(" ", 4)
    return Record(entry, int(mark), int(since), int(fence), int(runs), fingerprint)


def answer(tick: Tick, told: list[bytes]) -> Answer:
    """Read the answer to one ask."""
    verdict, mark, wait, runs, *more = told
    found = Answer(tick, Verdict(text(verdict)), int(mark), int(wait), runs=int(runs))
    if found.verdict is Verdict.PAUSED:
        return replace(found, pause=pause(tick.entry, text(more[0])))
    if not more:
        return found
    fence, attempt, previous, deadline, waited = map(int, more)
    return replace(
        found, grant=Grant(tick, fence, attempt, previous, deadline, waited=bool(waited))
    )


def pause(entry: str, told: str) -> Pause:
    """Read a pause; one without a revision is older than all that have one."""
    revision, _, note = told.partition(" ")
    return Pause(entry, int(revision), note) if revision.isdecimal() else Pause(entry, 0, told)


def named(told: Sequence[Sequence[bytes]]) -> dict[Tick, Micros]:
    """Read open ticks as the keys of the ledger name them, each with the mark before its grant."""
    parts = ((text(member).partition(":"), previous) for member, previous in told)
    return {Tick(entry, int(at)): int(previous) for (at, _, entry), previous in parts}


def recovery(told: list[Any]) -> Recovery:
    """Read the answer to one part of a push."""
    wait, refused, repaired, lost, doubts, in_doubt, not_in_force = told
    return Recovery(
        int(wait),
        [text(entry) for entry in refused],
        {text(entry): int(mark) for entry, mark in repaired},
        [text(key) for key in lost],
        [Doubt(text(entry), int(floor), int(mark)) for entry, floor, mark in doubts],
        [Tick(text(entry), int(at)) for entry, at in in_doubt],
        [Tick(text(entry), int(at)) for entry, at in not_in_force],
    )


def orphan(told: list[bytes]) -> Orphan:
    """Read one orphan."""
    entry, tick, free_since, attempt = told
    return Orphan(Tick(text(entry), int(tick)), int(free_since), int(attempt))


def _more_of(memory: Memory) -> tuple[str, int]:
    return commas(memory.still_open), memory.runs


def rows(testimony: Testimony) -> list[tuple[Any, ...]]:
    """Return a testimony as the rows of a push, marks first."""
    marks = [
        ("MARK", m.entry, m.mark, m.since, m.closed, m.sure, m.fingerprint, *_more_of(m))
        for m in testimony.memories
    ]
    settled = [
        ("SETTLED", *proof(s.grant), s.grant.previous, s.outcome.text, *counted(s.passed))
        for s in testimony.settled
    ]
    held = [
        ("HELD", *proof(g), g.attempt, g.previous, g.deadline, int(g.waited))
        for g in testimony.held
    ]
    pauses = [("PAUSED", p.entry, p.revision, p.note) for p in testimony.pauses]
    return [*marks, *settled, *held, *pauses]


def doubts(doubts: Mapping[Doubt, Sequence[Micros]]) -> list[tuple[Any, ...]]:
    """Return the ticks of each doubt as rows of a push, ascending, so many that no call is long."""
    rows: list[tuple[Any, ...]] = []
    for doubt, ticks in doubts.items():
        parts = list(chunks(ticks, DOUBTS_PER_ROW)) or [()]
        reached = [part[-1] for part in parts[:-1]] + [doubt.mark]
        rows += [
            ("DOUBT", doubt.entry, mark, len(part), *part)
            for part, mark in zip(parts, reached, strict=True)
        ]
    return rows


def merged(parts: Sequence[Recovery]) -> Recovery:
    """Put the answers to the parts of a push together; the last one knows how it stands."""
    last = parts[-1]
    return Recovery(
        last.wait,
        flat(part.refused for part in parts),
        {entry: mark for part in parts for entry, mark in part.repaired.items()},
        flat(part.lost for part in parts),
        last.doubts,
        flat(part.in_doubt for part in parts),
        flat(part.not_in_force for part in parts),
    )
