"""Between the ledger's values and what goes over the wire; it asks nothing and decides nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.ledger import Answer, Grant, Orphan, Pause, Record, Verdict
from celery_redlock_beat.ledger.testimony import Doubt, Recovery
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from celery_redlock_beat.ledger import Ask, Registration, Settlement
    from celery_redlock_beat.ledger.testimony import Memory, Testimony
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
    flags = int(r.again), int(r.run_on_start), int(r.once)
    return r.entry, r.fingerprint, *flags, said(r.revision), *seeded(r)


def seeded(r: Registration) -> tuple[Any, ...]:
    """Return whether an entry takes a phase, and where another scheduler stopped, if one did."""
    seed = r.seed
    told = (seed.at, said(seed.phase), int(seed.again)) if seed else ("", "", 0)
    return int(r.takes_phase), *told


def asked(ask: Ask) -> tuple[Any, ...]:
    """Return what is asked for a tick."""
    return (
        ask.tick.entry,
        ask.tick.at,
        ask.due_at,
        *map(said, (ask.expected, ask.limit, ask.revision)),
    )


def settled(s: Settlement) -> tuple[Any, ...]:
    """Return an outcome to write down."""
    return *proof(s.grant), s.outcome.text, s.grant.due, s.detail, *counted(s.passed)


def said(value: int | None) -> int | str:
    """Return a number, or nothing for none."""
    return "" if value is None else value


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
    if not told or told == b"CHANGED":
        return None
    mark, since, fence, runs, fingerprint = text(told).split(" ", 4)
    return Record(entry, int(mark), int(since), int(fence), int(runs), fingerprint)


def answer(ask: Ask, told: list[bytes]) -> Answer:
    """Read the answer to one ask."""
    tick = ask.tick
    verdict, mark, wait, runs, *more = told
    found = Answer(tick, Verdict(text(verdict)), int(mark), int(wait), runs=int(runs))
    if found.verdict is Verdict.PAUSED:
        return replace(found, pause=pause(tick.entry, text(more[0])))
    if not more:
        return found
    fence, attempt, previous, deadline, waited, unwanted = map(int, more)
    numbers = fence, attempt, previous, deadline
    return replace(found, grant=Grant(tick, *numbers, bool(waited), bool(unwanted), ask.due_at))


def pause(entry: str, told: str) -> Pause:
    """Read a pause, whatever somebody wrote: also then it is one."""
    revision, _, rest = told.partition(" ")
    until, _, details = rest.partition(" ")
    if not (revision.isdecimal() and until.isdecimal()):
        return Pause(entry, int(revision) if revision.isdecimal() else 0, rest or told)
    try:
        kept = json.loads(details)
        since = int(kept.get("since", 0))
    except (ValueError, TypeError, AttributeError):
        return Pause(entry, int(revision), details, until=int(until) or None)
    note, who = str(kept.get("note", "")), str(kept.get("who", ""))
    return Pause(entry, int(revision), note, who, since, int(until) or None)


def named(told: Sequence[Sequence[bytes]]) -> dict[Tick, Micros]:
    """Read open ticks as the keys of the ledger name them, each with the mark before its grant."""
    parts = ((text(member).partition(":"), previous) for member, previous in told)
    return {Tick(entry, int(at)): int(previous) for (at, _, entry), previous in parts}


def recovery(told: list[Any]) -> Recovery:
    """Read the answer to one part of a push."""
    wait, refused, repaired, lost, doubts, in_doubt, not_in_force, revision, began = told
    return Recovery(
        int(wait),
        [text(entry) for entry in refused],
        {text(entry): int(mark) for entry, mark in repaired},
        [text(key) for key in lost],
        [Doubt(text(entry), int(floor), int(mark)) for entry, floor, mark in doubts],
        [Tick(text(entry), int(at)) for entry, at in in_doubt],
        [Tick(text(entry), int(at)) for entry, at in not_in_force],
        int(revision),
        int(began),
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
    return [*marks, *settled, *held]


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
        last.revision,
        last.began,
    )
