"""The history of outcomes and deeds, as it is read, newest first; it changes nothing there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.store.errors import NOISE, unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from redis import Redis

    from celery_redlock_beat.ticks import Micros

CHUNK = 500
MILLISECOND: Micros = 1000
NUMBERS = ("tick", "fence", "attempt", "previous", "late")


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One record: the outcome of a tick, or what an operator did, ``outcome`` names it.

    ``previous`` is the mark before, back to which ``passed`` counts by reason; ``late`` the time
    from when the tick was due. ``id`` is the stream's own, of which ``at`` is the instant, to the
    millisecond.
    """

    id: str
    at: Micros
    entry: str
    tick: Micros
    outcome: str
    node: str
    fence: int
    attempt: int
    previous: Micros
    late: Micros
    passed: Mapping[str, int]
    detail: str


def read_history(client: Redis, key: str) -> Iterator[HistoryRow]:
    """Yield the records, newest first, in chunks; what is none is left out.

    Raises:
        LedgerUnavailable: It could not be asked.
    """
    newest = "+"
    while True:
        chunk = _chunk(client, key, newest)
        for each, fields in chunk:
            row = _row(each.decode(), fields)
            if row:
                yield row
        if len(chunk) < CHUNK:
            return
        newest = f"({chunk[-1][0].decode()}"


def oldest_record(client: Redis, key: str) -> Micros | None:
    """Return the instant of the oldest record, or ``None`` where there is none.

    Raises:
        LedgerUnavailable: It could not be asked.
    """
    try:
        found: Any = client.xrange(key, count=1)
    except ResponseError as exc:
        _check_type(exc)
        return None
    except (RedisError, OSError, *NOISE) as exc:
        raise unavailable(exc) from exc
    return _instant(found[0][0].decode()) if found else None


def _chunk(client: Redis, key: str, newest: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
    try:
        found: Any = client.xrevrange(key, newest, "-", count=CHUNK)
    except ResponseError as exc:
        _check_type(exc)
        return []
    except (RedisError, OSError, *NOISE) as exc:
        raise unavailable(exc) from exc
    return list(found)


def _check_type(exc: ResponseError) -> None:
    """Raise anything but that the key is of another type: then there is nothing in it."""
    if "WRONGTYPE" not in str(exc):
        raise unavailable(exc) from exc


def _row(which: str, fields: Mapping[bytes, bytes]) -> HistoryRow | None:
    told = {name.decode(errors="replace"): value for name, value in fields.items()}
    numbers = {name: _number(told.get(name, b"")) for name in NUMBERS}
    if not (told.get("entry") and told.get("outcome")) or None in numbers.values():
        return None
    return HistoryRow(
        id=which,
        at=_instant(which),
        entry=told["entry"].decode(errors="replace"),
        outcome=told["outcome"].decode(errors="replace"),
        node=told.get("node", b"").decode(errors="replace"),
        detail=told.get("detail", b"").decode(errors="replace"),
        passed=dict(_passed(told.get("passed", b"").decode(errors="replace"))),
        **{name: number or 0 for name, number in numbers.items()},
    )


def _passed(text: str) -> Iterator[tuple[str, int]]:
    for each in text.split(","):
        reason, _, number = each.partition(" ")
        if number.isdecimal():
            yield reason, int(number)


def _number(text: bytes) -> int | None:
    """Read a whole number; a lateness may be below zero, where the clock was set back."""
    return int(text) if text.removeprefix(b"-").isdigit() else None


def _instant(which: str) -> Micros:
    return int(which.partition("-")[0]) * MILLISECOND
