"""What a server tells about itself, as it is read; it judges nothing, and changes nothing there."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError, ResponseError

from celery_redlock_beat.clock import wall_micros
from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis import Redis

    from celery_redlock_beat.ticks import Micros

SECTIONS = ("server", "replication", "memory", "persistence", "clients")
SETTINGS = (
    "maxmemory-policy",
    "maxmemory",
    "save",
    "appendfsync",
    "min-replicas-to-write",
    "min-replicas-max-lag",
    "stop-writes-on-bgsave-error",
)
SAMPLES = 5
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What INFO, CONFIG GET and TIME tell; ``refused`` names what the server does not tell us.

    ``latency`` is the median round trip in seconds, ``ahead`` how far the server's clock is ahead
    of ours.
    """

    info: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    latency: float = 0.0
    ahead: Micros = 0


def read_facts(client: Redis) -> ServerFacts:
    """Ask a server about itself; raise ``LedgerUnavailable`` if it cannot be asked at all."""
    try:
        return _read(client)
    except (RedisError, OSError) as exc:
        raise unavailable(exc) from exc


def _read(client: Redis) -> ServerFacts:
    refused: list[str] = []
    info: dict[str, str] = {}
    for section in SECTIONS:
        try:
            told: Any = client.info(section)
        except ResponseError:
            refused.append(f"INFO {section}")
        else:
            info |= {name: str(value) for name, value in told.items()}
    if "sentinel" in (
        info.get("redis_mode"),
        info.get("server_mode"),
    ):  # it knows no other command that is asked here
        return ServerFacts(info)
    latency, ahead = _timed(client)
    try:
        config = _config(client)
    except ResponseError:  # forbidden, renamed, or a managed service
        config = {}
        refused.append("CONFIG GET")
    return ServerFacts(info, config, tuple(refused), latency, ahead)


def _config(client: Redis) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in SETTINGS:  # Redis before 7 takes one name per CONFIG GET
        told: Any = client.config_get(name)
        found |= {_text(key): _text(value) for key, value in told.items()}
    return found


def _timed(client: Redis) -> tuple[float, Micros]:
    spans: list[float] = []
    ahead: list[Micros] = []
    for _ in range(SAMPLES):
        wall, asked = wall_micros(), time.monotonic_ns()
        told: Any = client.time()
        spans.append((time.monotonic_ns() - asked) / NANOSECONDS)
        ahead.append(told[0] * SECOND + told[1] - wall)
    return median(spans), min(ahead, key=abs)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
