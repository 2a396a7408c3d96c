"""Between the ledger's values and what goes over the wire; it asks nothing and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.ledger import Answer, Grant, Orphan, Record, Verdict
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from celery_redlock_beat.ticks import Micros, Reason

T = TypeVar("T")


def chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    """Cut into parts of at most ``size``."""
    return (items[start : start + size] for start in range(0, len(items), size))


def flat(rows: Iterable[Iterable[Any]]) -> list[Any]:
    """Put the values of all rows into one list."""
    return [value for row in rows for value in row]


def proof(grant: Grant) -> tuple[str, Micros, int]:
    """Return what proves a grant."""
    return grant.tick.entry, grant.tick.at, grant.fence


def counted(passed: Mapping[Reason, int]) -> list[Any]:
    """Return how many reasons there are, then each with its number."""
    return [len(passed), *flat((str(reason), number) for reason, number in passed.items())]


def text(value: bytes | str) -> str:
    """Decode what the server told."""
    return value.decode() if isinstance(value, bytes) else value


def record(entry: str, told: bytes) -> Record:
    """Read an entry's record."""
    mark, since, fence, runs, fingerprint = text(told).split(" ", 4)
    return Record(entry, int(mark), int(since), int(fence), int(runs), fingerprint)


def answer(tick: Tick, told: list[bytes]) -> Answer:
    """Read the answer to one ask."""
    verdict, mark, wait, *granted = told
    grant = None
    if granted:
        fence, attempt, previous, deadline, waited = map(int, granted)
        grant = Grant(tick, fence, attempt, previous, deadline, waited=bool(waited))
    return Answer(tick, Verdict(text(verdict)), int(mark), int(wait), grant)


def orphan(told: list[bytes]) -> Orphan:
    """Read one orphan."""
    entry, tick, free_since, attempt = told
    return Orphan(Tick(text(entry), int(tick)), int(free_since), int(attempt))
