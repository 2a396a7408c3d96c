"""What stands in the ledger's keys, raw and bounded; it judges nothing, and changes nothing there.

The keys are read in chunks, so that the server is never held up, while nodes go on writing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.store.errors import unavailable
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
    "present": "zset",
    "audit": "stream",
}
T = TypeVar("T")
READ = ("marks", "open", "grants", "totals", "paused", "nodes", "present")
SENTINEL = b""
CHUNK = 500
MOST = 250_000
"""How many fields of one key are looked at."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is: its full name, its type (``none`` if it is not there), its TTL in ms."""

    full: str
    kind: str
    ttl: int = -1


@dataclass(frozen=True, slots=True)
class Contents:
    """The fields of the ledger's keys, by the key's short name, at the server's ``now``.

    ``partial`` names the keys with more fields than were looked at, ``unread`` those that could
    not be read, with the server's refusal.
    """

    now: Micros
    keys: Mapping[str, Key]
    hashes: Mapping[str, Mapping[bytes, bytes]] = field(default_factory=dict)
    zsets: Mapping[str, Mapping[bytes, float]] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

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
        readable = [name for name in READ if keys[name].kind == KINDS[name]]
        hashes = self._read(dict, [name for name in readable if KINDS[name] == "hash"])
        zsets = self._read(_scores, [name for name in readable if KINDS[name] == "zset"])
        if "open" in zsets and "grants" in hashes:
            self._look_again(zsets["open"], hashes["grants"])
        told: Any = self._client.time()  # last, so that nothing that was read is newer
        now = int(told[0]) * SECOND + int(told[1])
        return Contents(now, keys, hashes, zsets, tuple(self._partial), self._unread)

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
        cursor, seen = 0, 0
        while True:
            cursor, found = scan(self._names[name], cursor, count=CHUNK)
            yield from (found.items() if isinstance(found, dict) else found)
            seen += len(found)
            if not cursor:
                return
            if seen >= MOST:
                self._partial.append(name)
                return

    def _look_again(self, opened: dict[bytes, float], grants: dict[bytes, bytes]) -> None:
        """Correct what was read of a tick before and after a node wrote to it.

        Both keys change in one step, and no text of a grant ever comes back: if that was the same
        before and after the score was read, the two belong together.
        """
        granted = {member for member, text in grants.items() if not text.startswith(b"done ")}
        odd = sorted((opened.keys() ^ granted) - {SENTINEL})
        for start in range(0, min(len(odd), MOST), CHUNK):
            members = odd[start : start + CHUNK]
            before = self._texts(members)
            scores = self._scores(members)
            for member, first, score, last in zip(
                members, before, scores, self._texts(members), strict=True
            ):
                steady = first == last  # otherwise it lives, and there is nothing odd about it
                _put(opened, member, score if steady else None)
                _put(grants, member, last if steady else None)

    def _texts(self, members: Sequence[bytes]) -> list[bytes | None]:
        found: Any = self._client.hmget(self._names["grants"], list(members))
        return list(found)

    def _scores(self, members: Sequence[bytes]) -> list[float | None]:
        pipe: Any = self._client.pipeline(transaction=False)
        for member in members:
            pipe.zscore(self._names["open"], member)
        return [None if score is None else max(score, 0.0) for score in pipe.execute()]


def _scores(scanned: Iterator[tuple[bytes, Any]]) -> dict[bytes, float]:
    return {member: max(float(score), 0.0) for member, score in scanned}


def whole(score: float) -> Micros:
    """Return a score as an instant that can be told, whatever somebody wrote."""
    return int(min(max(score, 0.0), float(LATEST)))


def _put(target: dict[bytes, Any], member: bytes, value: Any) -> None:
    if value is None:
        target.pop(member, None)
    else:
        target[member] = value


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
