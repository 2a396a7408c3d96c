"""What nodes tell of themselves, as it is read; whatever somebody wrote, it raises nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.ledger import HEARTBEAT_ALIVE
from celery_redlock_beat.ticks import LATEST, Micros

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A node and its last heartbeat; ``None`` for what it did not tell, or not so that it is clear.

    ``offset`` is how far its own clock is ahead of the ledger's, ``lateness`` the longest of late,
    both in seconds. ``bad_names`` are the first of its ``bad`` entries.
    """

    node: str
    at: Micros
    is_alive: bool
    left: bool = False
    version: str = ""
    host: str = ""
    pid: int = 0
    started: Micros | None = None
    offset: float | None = None
    schedule: str = ""
    entries: int | None = None
    bad: int | None = None
    bad_names: Sequence[str] = ()
    lateness: float | None = None
    ready: bool | None = None
    problems: Sequence[str] = ()


def heartbeats(
    nodes: Mapping[str, Micros], told: Mapping[str, bytes], now: Micros
) -> list[Heartbeat]:
    """Read the heartbeats and what the nodes told of themselves, the newest first."""
    newest = sorted(nodes.items(), key=lambda each: (-each[1], each[0]))
    return [_heartbeat(node, at, _object(told.get(node, b"")), now) for node, at in newest]


def _heartbeat(node: str, at: Micros, told: Mapping[str, Any], now: Micros) -> Heartbeat:
    left = bool(told.get("left"))
    started = _of(told, "started", int)
    return Heartbeat(
        node,
        min(at, LATEST),
        is_alive=not left and at >= now - HEARTBEAT_ALIVE,
        left=left,
        version=_of(told, "version", str) or "",
        host=_of(told, "host", str) or "",
        pid=_of(told, "pid", int) or 0,
        started=started if started is not None and 0 <= started < LATEST else None,
        offset=_seconds(told, "offset"),
        schedule=_of(told, "schedule", str) or "",
        entries=_of(told, "entries", int),
        bad=_of(told, "bad", int),
        bad_names=_texts(told, "bad_names"),
        lateness=_seconds(told, "lateness"),
        ready=_of(told, "ready", bool),
        problems=_texts(told, "problems"),
    )


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _of(told: Mapping[str, Any], key: str, kind: type[T]) -> T | None:
    """Return a value, if it is of this type: a flag is no number."""
    value = told.get(key)
    return value if type(value) is kind else None


def _seconds(told: Mapping[str, Any], key: str) -> float | None:
    value = _of(told, key, float) if _of(told, key, int) is None else _of(told, key, int)
    return float(value) if value is not None and abs(value) < LATEST else None


def _texts(told: Mapping[str, Any], key: str) -> list[str]:
    return [each for each in _of(told, key, list) or [] if isinstance(each, str)]
