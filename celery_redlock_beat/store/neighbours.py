"""Find other ledgers in the same database; bounded, and it changes nothing there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.store.contents import whole
from celery_redlock_beat.store.errors import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from celery_redlock_beat.ticks import Micros

PATTERN = "*{redlock:*}:marks"
NAME = re.compile(rb"(.*)\{redlock:(.*)\}:marks", re.DOTALL)
CHUNK = 1000
MOST_CHUNKS = 200
MOST_LEDGERS = 10
MOST_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another ledger: its namespace and key prefix, some of its entries, its last heartbeat."""

    namespace: str
    prefix: str
    entries: frozenset[bytes]
    heartbeat: Micros


def read_neighbours(client: Redis, own: str) -> list[Neighbour]:
    """Return the other ledgers than that with the marks ``own``; none, if we may not look."""
    try:
        keys = [key for key in _keys(client) if key != own.encode()]
        found = (_neighbour(client, key) for key in sorted(keys)[:MOST_LEDGERS])
        return [each for each in found if each]
    except ResponseError:
        return []
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc


def _keys(client: Redis) -> Iterator[bytes]:
    cursor: Any = 0
    for _ in range(MOST_CHUNKS):
        told: Any = client.scan(cursor, match=PATTERN, count=CHUNK, _type="hash")
        cursor, keys = told
        yield from keys
        if not cursor:
            return


def _neighbour(client: Redis, key: bytes) -> Neighbour | None:
    parts = NAME.fullmatch(key)
    if parts is None:
        return None
    told: Any = client.hscan(key, 0, match="e:*", count=MOST_ENTRIES)
    newest: Any = client.zrevrange(key.removesuffix(b"marks") + b"nodes", 0, 0, withscores=True)
    return Neighbour(
        parts[2].decode("utf-8", "backslashreplace"),
        parts[1].decode("utf-8", "backslashreplace"),
        frozenset(name.removeprefix(b"e:") for name in told[1]),
        whole(newest[0][1]) if newest else 0,
    )
