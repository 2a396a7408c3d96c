"""What stands in the ledger's keys, raw and bounded; it judges nothing, and changes nothing there.

The keys are read in chunks, so that the server is never held up, while nodes go on writing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.store.pairs import KEEPER, Pair, at_one_revision, look_again, open_together
from celery_redlock_beat.ticks import LATEST, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from redis import Redis

    from celery_redlock_beat.ticks import Micros

KINDS: Mapping[str, str] = {
    "marks": "hash",
    "open": "zset",
    "grants": "hash",
    "settled": "zset",
    "totals": "hash",
    "paused": "hash",
    "nodes": "zset",
    "heard": "hash",
    "last": "hash",
    "history": "stream",
    "entries": "hash",
    "changes": "zset",
    "present": "zset",
    "audit": "stream",
    "gone": "zset",
    "beats": "hash",
    "fired": "zset",
}
T = TypeVar("T")
NOT_READ = ("settled", "heard", "last", "history", "audit", "gone", "fired")
"""Keys of which only the type is looked at, or the length."""
FEED = {"entries": b"e:", "paused": b"p:"}
"""What the sorted set ``changes`` has a member of for each field, and how that begins."""
SENTINEL = KEEPER
CHUNK = 500
CHUNK_OF_ENTRIES = 50
"""The text of a stored entry may be long."""
MOST = 250_000
"""How many fields of one key are looked at."""
MOST_BYTES = 256 * 2**20
"""How much of one key is looked at."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is: its full name, its type (``none`` if it is not there), its TTL in ms."""

    full: str
    kind: str
    ttl: int = -1


@dataclass(frozen=True, slots=True)
class Contents:
    """The fields of the ledger's keys, by the key's short name, at the server's ``now``.

    ``history`` is how many outcomes are kept. ``partial`` names the keys of which more was there
    than was looked at, ``unread`` the commands that were refused, with the server's refusal.
    """

    now: Micros
    keys: Mapping[str, Key]
    hashes: Mapping[str, Mapping[bytes, bytes]] = field(default_factory=dict)
    zsets: Mapping[str, Mapping[bytes, float]] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    history: int = 0

    def hash(self, name: str) -> Mapping[bytes, bytes]:
        """Return the fields of a hash; none, if it could not be read."""
        return self.hashes.get(name, {})

    def zset(self, name: str) -> Mapping[bytes, float]:
        """Return the members of a sorted set; none, if it could not be read."""
        return self.zsets.get(name, {})

    def full(self, name: str) -> str:
        """Return the full name of a key."""
        return self.keys[name].full


def read_contents(client: Redis, names: Mapping[str, str]) -> Contents:
    """Read the keys with these full names, by short name; raise ``LedgerUnavailable``."""
    try:
        return _Reading(client, names).contents()
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc


class _Reading:
    """One reading, which collects what could not be read."""

    def __init__(self, client: Redis, names: Mapping[str, str]) -> None:
        self._client = client
        self._names = {name: full for name, full in names.items() if name in KINDS}
        self._unread: dict[str, str] = {}
        self._partial: list[str] = []

    def contents(self) -> Contents:
        keys = {name: self._key(name, full) for name, full in self._names.items()}
        readable = [name for name in keys if keys[name].kind == KINDS[name]]
        history = self._ask("XLEN", keys["history"].full) if "history" in readable else 0
        readable = [name for name in readable if name not in NOT_READ]
        # First, so that what is removed from it and from the marks meanwhile is not taken for lost.
        present = self._read(_scores, [name for name in readable if name == "present"])
        hashes = self._read(dict, [name for name in readable if KINDS[name] == "hash"])
        others = [name for name in readable if KINDS[name] == "zset" and name != "present"]
        zsets = present | self._read(_scores, others)
        if keys["changes"].kind == "none":
            zsets["changes"] = {}  # a node may have made it since
        try:
            self._look_again(hashes, zsets)
        except ResponseError as exc:
            self._note("HMGET", exc)
            self._note("ZSCORE", exc)
        told: Any = self._client.time()  # last, so that nothing that was read is newer
        now = int(told[0]) * SECOND + int(told[1])
        return Contents(
            now, keys, hashes, zsets, tuple(self._partial), self._unread, int(history or 0)
        )

    def _key(self, name: str, full: str) -> Key:
        kind, ttl = self._ask("TYPE", full), self._ask("PTTL", full)
        # Where TYPE is refused, the reading itself will tell.
        return Key(full, KINDS[name] if kind is None else _text(kind), -1 if ttl is None else ttl)

    def _ask(self, command: str, *args: str) -> Any:
        try:
            execute: Any = self._client.execute_command  # it has no types
            return execute(command, *args)
        except ResponseError as exc:
            self._note(command, exc)
            return None

    def _note(self, command: str, exc: ResponseError) -> None:
        if "NOPERM" not in str(exc) and "permission" not in str(exc):
            raise exc  # the server cannot be asked at all: it loads, or has lost its primary
        self._unread.setdefault(command, str(exc))

    def _read(self, as_one: Callable[[Any], T], names: Sequence[str]) -> dict[str, T]:
        found: dict[str, T] = {}
        for name in names:
            command = "HSCAN" if KINDS[name] == "hash" else "ZSCAN"
            try:
                found[name] = as_one(self._scanned(name, command))
            except ResponseError as exc:
                self._note(command, exc)
        return found

    def _scanned(self, name: str, command: str) -> Iterator[tuple[bytes, Any]]:
        scan: Any = self._client.hscan if command == "HSCAN" else self._client.zscan
        count = CHUNK_OF_ENTRIES if name == "entries" else CHUNK
        cursor, seen, size = 0, 0, 0
        while True:
            cursor, found = scan(self._names[name], cursor, count=count)
            if isinstance(found, dict):
                size += sum(map(len, found.values()))
                found = found.items()
            yield from found
            seen += len(found)
            if not cursor:
                return
            if seen >= MOST or size >= MOST_BYTES:
                self._partial.append(name)
                return

    def _look_again(
        self, hashes: dict[str, dict[bytes, bytes]], zsets: dict[str, dict[bytes, float]]
    ) -> None:
        if "open" in zsets and "grants" in hashes:
            pair = Pair(self._names["grants"], self._names["open"], b"", open_together)
            look_again(self._client, pair, hashes["grants"], zsets["open"], CHUNK)
        for name, prefix in FEED.items():
            if "changes" in zsets and name in hashes:
                pair = Pair(self._names[name], self._names["changes"], prefix, at_one_revision)
                look_again(self._client, pair, hashes[name], zsets["changes"], CHUNK_OF_ENTRIES)


def _scores(scanned: Iterator[tuple[bytes, Any]]) -> dict[bytes, float]:
    return {member: max(float(score), 0.0) for member, score in scanned}


def whole(score: float) -> Micros:
    """Return a score as an instant that can be told, whatever somebody wrote."""
    return int(min(max(score, 0.0), float(LATEST)))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
