"""Judge which server it is, and whether it can hold a ledger; pure functions, one per finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import Finding, Severity, many, span
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.settings import Settings
    from celery_redlock_beat.store.facts import ServerFacts

OLDEST = {"Redis": (6, 2), "Valkey": (8, 0)}
CLOCK_TOLERANCE = 2 * SECOND
SLOW = 0.25
"""Which part of the socket timeout a round trip may take."""
NEARLY = 0.9


def product(facts: ServerFacts) -> tuple[str, str]:
    """Return the server's name and version, empty where it does not tell."""
    valkey = facts.info.get("valkey_version")
    return ("Valkey", valkey) if valkey else ("Redis", facts.info.get("redis_version", ""))


def mode(facts: ServerFacts) -> str:
    """Return ``standalone``, ``cluster`` or ``sentinel``, empty where the server does not tell."""
    return facts.info.get("redis_mode") or facts.info.get("server_mode", "")


def described(facts: ServerFacts) -> str:
    """Return in words which server it is, for the top of a report."""
    name, version = product(facts)
    replicas = int(facts.info.get("connected_slaves", 0))
    role = {"master": "primary", "slave": "replica"}.get(facts.info.get("role", ""), "role unknown")
    parts = [
        f"{name} {version or '(version unknown)'}",
        role if role == "replica" else f"{role}, {many(replicas, 'replica', 'replicas')}",
        *([f"{mode(facts)} mode"] if mode(facts) else []),
        f"answers in {facts.latency * 1000:.1f} ms",
    ]
    return ", ".join(parts)


def old_version(facts: ServerFacts, _settings: Settings) -> Iterator[Finding]:
    """Tell of a server that is older than what is supported."""
    name, version = product(facts)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    oldest = OLDEST[name]
    if numbers and numbers < oldest:
        wanted = ".".join(map(str, oldest))
        yield Finding(
            Severity.ERROR,
            "old-version",
            f"{name} {version}",
            f"the server is older than {name} {wanted}, the oldest that is supported",
            f"upgrade it to {name} {wanted} or newer",
        )


def replica(facts: ServerFacts, _settings: Settings) -> Iterator[Finding]:
    """Tell of a server that takes no writes because it follows another one."""
    if facts.info.get("role") == "slave":
        primary = f"{facts.info.get('master_host')}:{facts.info.get('master_port')}"
        yield Finding(
            Severity.ERROR,
            "replica",
            "INFO replication: role",
            f"the server is a replica of {primary}, which takes no writes: nothing is sent",
            "point the URL at the primary, or at Sentinel, which finds it",
        )


def sentinel(facts: ServerFacts, _settings: Settings) -> Iterator[Finding]:
    """Tell of a Sentinel that is taken for a server."""
    if mode(facts) == "sentinel":
        yield Finding(
            Severity.ERROR,
            "sentinel",
            "INFO server: redis_mode",
            "what answers at this address is a Sentinel, which holds no data",
            "write the URL as sentinel://host:port/0, and set master_name in the transport options",
        )


def cluster_node(facts: ServerFacts, _settings: Settings) -> Iterator[Finding]:
    """Tell of a server that may hand our keys to another one."""
    if mode(facts) == "cluster":
        yield Finding(
            Severity.WARNING,
            "cluster-node",
            "INFO server: redis_mode",
            "the server is a node of a Redis Cluster: nothing is sent once the slot of our keys "
            "is moved to another node",
            "point redlock_beat_url at a server that is not in cluster mode",
        )


def slow(facts: ServerFacts, settings: Settings) -> Iterator[Finding]:
    """Tell of round trips that come near to the timeout."""
    if facts.latency > settings.socket_timeout * SLOW:
        yield Finding(
            Severity.WARNING,
            "slow",
            "redlock_beat_socket_timeout",
            f"an answer takes {facts.latency * 1000:.0f} ms, and a call is given up after "
            f"{settings.socket_timeout:g} s: a little more load, and nothing is sent",
            "look for the cause in the server's SLOWLOG and in the network, or raise "
            "redlock_beat_socket_timeout and redlock_beat_lease",
        )


def clock_differs(facts: ServerFacts, _settings: Settings) -> Iterator[Finding]:
    """Tell of clocks that disagree; ours decides nothing."""
    if abs(facts.ahead) > CLOCK_TOLERANCE:
        way = "ahead of" if facts.ahead > 0 else "behind"
        yield Finding(
            Severity.HINT,
            "clock-differs",
            "TIME",
            f"the server's clock is {span(abs(facts.ahead))} {way} the one of this machine; "
            "the server's decides what is due, so if that one is wrong, all is sent at wrong times",
            "see which of the two is wrong, and have it set by NTP",
        )


def connections(facts: ServerFacts, _settings: Settings) -> Iterator[Finding]:
    """Tell of a server that soon takes no more clients."""
    most, now = (int(facts.info.get(name, 0)) for name in ("maxclients", "connected_clients"))
    if most and now >= most * NEARLY:
        yield Finding(
            Severity.WARNING,
            "clients-nearly-full",
            "maxclients",
            f"{now} of at most {most} clients are connected: the next ones are refused",
            "raise maxclients, or find who holds the connections with CLIENT LIST",
        )


JUDGES: tuple[Callable[[ServerFacts, Settings], Iterator[Finding]], ...] = (
    sentinel,
    replica,
    old_version,
    cluster_node,
    slow,
    clock_differs,
    connections,
)
