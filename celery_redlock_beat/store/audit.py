"""What an operator needs to see before and after a repair: one record, the clock, the audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from redis import Redis

    from celery_redlock_beat.ticks import Micros


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One repair, as it is kept: when, by whom, and why; ``before`` is the raw text of a record."""

    at: Micros
    who: str
    entry: str
    before: bytes
    after: Micros
    why: str


def read_now(client: Redis) -> Micros:
    """Return the server's time; raise ``LedgerUnavailable``."""
    try:
        told: Any = client.time()
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc
    return int(told[0]) * SECOND + int(told[1])


def read_record(client: Redis, marks: str, entry: str) -> bytes | None:
    """Return the raw text of an entry's record, if there is one; raise ``LedgerUnavailable``."""
    try:
        found: Any = client.hget(marks, f"e:{entry}")
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc
    return bytes(found) if found is not None else None


def read_audit(client: Redis, audit: str, most: int) -> list[AuditRecord]:
    """Return the newest repairs, the newest first; raise ``LedgerUnavailable``."""
    try:
        found: Any = client.xrevrange(audit, count=most)
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc
    return [_record(fields) for _, fields in found]


def _record(fields: dict[bytes, bytes]) -> AuditRecord:
    def text(name: bytes) -> str:
        return fields.get(name, b"").decode("utf-8", "backslashreplace")

    def number(name: bytes) -> int:
        return int(value) if (value := fields.get(name, b"")).isdigit() else 0

    return AuditRecord(
        number(b"at"),
        text(b"who"),
        text(b"entry"),
        fields.get(b"from", b""),
        number(b"to"),
        text(b"why"),
    )
