"""What is kept in the ledger as a whole, read for operators; it judges and changes nothing.

The keys are read in chunks, so that the server is never held up. Where a key is not what it should
be, there is nothing in it: other verbs tell that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.ledger.steering import Kind
from celery_redlock_beat.store.contents import whole
from celery_redlock_beat.store.errors import NOISE, unavailable
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from redis import Redis

    from celery_redlock_beat.ticks import Micros

T = TypeVar("T")
KEEPER = b""
CHUNK = 1000
EVER = ("-inf", "(+inf")
"""All scores but that of the keeper."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How the ledger is, at the server's ``now``.

    ``is_new``: no node has been here. ``is_recovering``: nodes tell what they remember. ``began``
    is when it was empty and nobody remembered anything, or 0; ``fence`` is the last one, or 0.
    ``nodes`` are the heartbeats, ``told`` what nodes told of themselves, raw. ``totals`` counts
    outcomes.
    """

    now: Micros
    is_new: bool
    is_recovering: bool
    began: Micros
    fence: Micros = 0
    nodes: Mapping[str, Micros] = field(default_factory=dict)
    told: Mapping[str, bytes] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Numbers:
    """How many stored entries, pauses and open ticks there are.

    ``oldest`` is the first end of a lease of an open tick, ``None`` where there is none.
    """

    stored: int
    paused: int
    open: int
    oldest: Micros | None


class Registry:
    """Read the ledger's keys of these full names, by short name.

    Each method may raise ``LedgerUnavailable``. Only ``stored``, ``paused`` and ``ahead`` take
    longer where there are more entries.
    """

    def __init__(self, client: Redis, names: Mapping[str, str]) -> None:
        self._client: Any = client
        self._named = names

    def stored(self) -> list[str]:
        """Return the names of all stored entries, in no order."""
        return [_text(name) for name in _asked(lambda: list(self._fields("entries")))]

    def some_stored(self, most: int) -> list[str]:
        """Return the names of so many stored entries, those that were changed first."""
        return [_text(name) for name in _asked(lambda: list(self._some_stored(most)))]

    def paused(self) -> list[str]:
        """Return the names of all paused entries, in no order."""
        return [_text(name) for name in _asked(lambda: list(self._fields("paused")))]

    def condition(self) -> Condition:
        """Return how the ledger is."""
        return _asked(self._condition)

    def totals(self) -> dict[str, int]:
        """Return how often each outcome came about since the ledger began."""
        return _asked(self._totals)

    def numbers(self) -> Numbers:
        """Return how much is kept."""
        return _asked(self._numbers)

    def overdue(self, since: Micros) -> set[str]:
        """Return entries that are not paused, with an open tick whose lease ended before that."""
        return _asked(lambda: {_text(entry) for entry in self._overdue(since)})

    def ahead(self, of: Micros) -> list[str]:
        """Return the names of the entries whose marks are later than an instant."""
        return _asked(lambda: list(self._ahead(of)))

    def _condition(self) -> Condition:
        seconds, micros = self._client.time()
        identity, recovering, began, fence = self._of("marks", self._meta, [None] * 4)
        scores = self._of("nodes", self._scores, [])
        beats = self._of("beats", self._client.hgetall, {})
        return Condition(
            int(seconds) * SECOND + int(micros),
            is_new=not (identity or recovering),
            is_recovering=bool(recovering),
            began=_number(began),
            fence=_number(fence),
            nodes={_text(node): whole(at) for node, at in scores},
            told={_text(node): told for node, told in beats.items()},
            totals=self._totals(),
        )

    def _meta(self, key: str) -> list[Any]:
        return list(self._client.hmget(key, "identity", "recovering", "began", "fence"))

    def _scores(self, key: str) -> list[tuple[bytes, float]]:
        return list(self._client.zrange(key, 0, -1, withscores=True))

    def _totals(self) -> dict[str, int]:
        found = self._of("totals", self._client.hgetall, {})
        return {_text(name): int(count) for name, count in found.items() if count.isdigit()}

    def _numbers(self) -> Numbers:
        stored, paused = (self._of(name, self._length, 0) for name in ("entries", "paused"))
        return Numbers(stored, paused, *self._of("open", self._opened, (0, None)))

    def _length(self, key: str) -> int:
        return int(self._client.hlen(key)) - bool(self._client.hexists(key, KEEPER))

    def _opened(self, key: str) -> tuple[int, Micros | None]:
        first = self._client.zrangebyscore(key, *EVER, start=0, num=1, withscores=True)
        number = self._client.zcard(key) - (self._client.zscore(key, KEEPER) is not None)
        return number, whole(first[0][1]) if first else None

    def _overdue(self, since: Micros) -> Iterator[bytes]:
        def ended(key: str) -> list[bytes]:
            return list(self._client.zrangebyscore(key, "-inf", f"({since}", start, CHUNK))

        start = 0
        while chunk := self._of("open", ended, []):
            start += len(chunk)
            entries = [member.partition(b":")[2] for member in chunk]
            yield from set(entries) - self._paused_among(entries)

    def _paused_among(self, entries: list[bytes]) -> set[bytes]:
        pauses = self._of("paused", lambda key: self._client.hmget(key, entries), [])
        return {entry for entry, pause in zip(entries, pauses, strict=False) if pause}

    def _fields(self, name: str) -> Iterator[bytes]:
        seen = self._of(name, lambda key: list(self._client.hscan_iter(key, count=CHUNK)), [])
        yield from {name for name, _ in seen if name != KEEPER}  # a scan may tell one twice

    def _some_stored(self, most: int) -> Iterator[bytes]:
        def first(key: str) -> list[bytes]:
            return list(self._client.zrange(key, 0, most - 1))

        for member in self._of("changes", first, []):
            kind, _, name = member.partition(b":")
            if kind == Kind.ENTRY.encode():
                yield name

    def _ahead(self, of: Micros) -> Iterator[str]:
        for name, text in self._client.hscan_iter(self._named["marks"], "e:*", count=CHUNK):
            instants = text.split(b" ", 2)[:2]
            if any(each.isdigit() and int(each) > of for each in instants):
                yield _text(name[2:])

    def _of(self, name: str, read: Callable[[str], Any], otherwise: Any) -> Any:
        """Read a key, or tell nothing where it holds another type."""
        try:
            return read(self._named[name])
        except ResponseError as exc:
            if "WRONGTYPE" not in str(exc):
                raise
            return otherwise


def _asked(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except (RedisError, OSError, *NOISE) as exc:
        raise unavailable(exc) from exc


def _number(text: bytes | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _text(name: bytes) -> str:
    """Decode a name so that it can be encoded again, whatever somebody wrote."""
    return name.decode("utf-8", "surrogateescape")
