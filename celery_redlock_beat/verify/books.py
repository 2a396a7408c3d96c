"""What the ledger's own keys say, read as plain data; it asks no verb and believes no node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, Micros, Tick

if TYPE_CHECKING:
    import redis

# A script: all at one moment, and in a Cluster from the one node that has the keys.
READ = """
return {redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1),
        redis.call('HGETALL', KEYS[3]), redis.call('HGETALL', KEYS[4])}
"""
OPEN = "open"
IN_DOUBT = "in_doubt"
KEPT: Micros = 9 * 60 * SECOND  # a settled tick is told for ten minutes at least


@dataclass(frozen=True, slots=True)
class Books:
    """What the ledger holds: per entry its mark and the instant it is known since, and the rest.

    ``told`` is what it says of single ticks: ``open``, or the outcome, which it forgets after some
    minutes. ``totals`` are its counts per outcome.
    """

    marks: Mapping[str, Micros]
    since: Mapping[str, Micros]
    open: frozenset[Tick]
    totals: Mapping[str, int]
    told: Mapping[Tick, str] = field(default_factory=dict)

    @classmethod
    def read(cls, client: redis.Redis, namespace: str, prefix: str = "") -> Books:
        """Read them from the ledger's keys, all at one moment."""
        stem = f"{prefix}{{redlock:{namespace}}}"
        keys = [f"{stem}:{name}" for name in ("marks", "open", "grants", "totals")]
        answer: Any = client.eval(READ, len(keys), *keys)
        marks, grants, counts = (_pairs(answer[place]) for place in (0, 2, 3))
        records = {
            name.removeprefix("e:"): [int(part) for part in text.split(" ")[:2]]
            for name, text in marks.items()
            if name.startswith("e:")
        }
        # A member or field without a name marks that the key was never lost.
        opened = frozenset(_tick(each) for each in map(_text, answer[1]) if each)
        words = {_tick(name): text.split(" ") for name, text in grants.items() if name}
        return cls(
            marks={entry: mark for entry, (mark, _) in records.items()},
            since={entry: since for entry, (_, since) in records.items()},
            open=opened,
            totals={name: int(count) for name, count in counts.items()},
            told={tick: OPEN if word[0] == OPEN else word[2] for tick, word in words.items()},
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """What several books say together, read one after the other in a run that may lose data.

    ``totals`` go on over a loss, as a counter's do that was reset; ``lossy`` tells that there was
    one, and then they are an estimate. ``told`` keeps what a later book has forgotten.
    """

    totals: Mapping[str, int] = field(default_factory=dict)
    told: Mapping[Tick, str] = field(default_factory=dict)
    lossy: bool = False
    last: Books | None = None

    def then(self, books: Books) -> Memory:
        """Return what is known once these are read as well."""
        told = {tick: word for tick, word in self.told.items() if word != OPEN} | dict(books.told)
        forgot = self.last is not None and _has_forgotten(books, self.last)
        sums = Counter(self.totals)
        sums.update(books.totals)
        if self.last is not None and not forgot:
            sums.subtract(self.last.totals)
        counts = {name: count for name, count in sums.items() if count}
        return Memory(counts, told, self.lossy or forgot, books)

    @property
    def in_doubt(self) -> int:
        """How many ticks the ledger counted as in doubt."""
        return sum(count for name, count in self.totals.items() if name.startswith(IN_DOUBT))


def totals(client: redis.Redis, namespace: str, prefix: str = "") -> dict[str, int]:
    """Return the ledger's counts per outcome and reason; ``prefix`` is a global key prefix."""
    found: Any = client.hgetall(f"{prefix}{{redlock:{namespace}}}:totals")
    return {_text(name): int(count) for name, count in found.items()}


def _has_forgotten(now: Books, before: Books) -> bool:
    """Whether data was lost in between: a count fell, or a settled tick is gone too soon."""
    if any(now.totals.get(name, 0) < count for name, count in before.totals.items()):
        return True
    recent = max(now.marks.values(), default=0) - KEPT
    settled = {tick for tick, word in before.told.items() if word != OPEN and tick.at > recent}
    return not settled <= now.told.keys()


def _tick(member: str) -> Tick:
    at, _, entry = member.partition(":")
    return Tick(entry, int(at))


def _pairs(flat: list[Any]) -> dict[str, str]:
    texts = [_text(each) for each in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
