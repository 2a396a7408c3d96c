"""What is kept in the ledger as a whole, read for operators; it judges and changes nothing.

The keys are read in chunks, so that the server is never held up. Where a key is not what it should
be, there is nothing in it: other verbs tell that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.store.errors import NOISE, unavailable
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from redis import Redis

    from celery_redlock_beat.ticks import Micros

T = TypeVar("T")
KEEPER = b""
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Condition:
    """How the ledger is, at the server's ``now``.

    ``is_new``: no node has been here. ``is_recovering``: nodes tell what they remember. ``began``
    is when it was empty and nobody remembered anything, or 0. ``nodes`` are the heartbeats,
    ``told`` what nodes told of themselves, raw. ``totals`` counts outcomes.
    """

    now: Micros
    is_new: bool
    is_recovering: bool
    began: Micros
    nodes: Mapping[str, Micros] = field(default_factory=dict)
    told: Mapping[str, bytes] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)


class Registry:
    """Read the ledger's keys of these full names, by short name.

    Each method may raise ``LedgerUnavailable``.
    """

    def __init__(self, client: Redis, names: Mapping[str, str]) -> None:
        self._client: Any = client
        self._named = names

    def stored(self) -> list[str]:
        """Return the names of all stored entries, in no order."""
        return [_text(name) for name in _asked(lambda: list(self._fields("entries")))]

    def paused(self) -> list[str]:
        """Return the names of all paused entries, in no order."""
        return [_text(name) for name in _asked(lambda: list(self._fields("paused")))]

    def condition(self) -> Condition:
        """Return how the ledger is."""
        return _asked(self._condition)

    def totals(self) -> dict[str, int]:
        """Return how often each outcome came about since the ledger began."""
        return _asked(self._totals)

    def opened(self) -> list[tuple[str, Micros]]:
        """Return the entry of each open tick, and the end of its lease, the oldest first."""
        found = _asked(lambda: self._of("open", self._scores, []))
        parts = ((member.partition(b":")[2], ends) for member, ends in found if member != KEEPER)
        return sorted(
            ((_text(entry), int(ends)) for entry, ends in parts), key=lambda each: each[1]
        )

    def ahead(self, of: Micros) -> list[str]:
        """Return the names of the entries whose marks are later than an instant."""
        return _asked(lambda: list(self._ahead(of)))

    def _condition(self) -> Condition:
        seconds, micros = self._client.time()
        identity, recovering, began = self._of("marks", self._meta, [None] * 3)
        scores = self._of("nodes", self._scores, [])
        beats = self._of("beats", self._client.hgetall, {})
        return Condition(
            int(seconds) * SECOND + int(micros),
            is_new=not (identity or recovering),
            is_recovering=bool(recovering),
            began=int(began) if began and began.isdigit() else 0,
            nodes={_text(node): int(at) for node, at in scores},
            told={_text(node): told for node, told in beats.items()},
            totals=self._totals(),
        )

    def _meta(self, key: str) -> list[Any]:
        return list(self._client.hmget(key, "identity", "recovering", "began"))

    def _scores(self, key: str) -> list[tuple[bytes, float]]:
        return list(self._client.zscan_iter(key, count=CHUNK))

    def _totals(self) -> dict[str, int]:
        found = self._of("totals", self._client.hgetall, {})
        return {_text(name): int(count) for name, count in found.items() if count.isdigit()}

    def _fields(self, name: str) -> Iterator[bytes]:
        seen = self._of(name, lambda key: list(self._client.hscan_iter(key, count=CHUNK)), [])
        yield from {name for name, _ in seen if name != KEEPER}  # a scan may tell one twice

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


def _text(name: bytes) -> str:
    """Decode a name so that it can be encoded again, whatever somebody wrote."""
    return name.decode("utf-8", "surrogateescape")
