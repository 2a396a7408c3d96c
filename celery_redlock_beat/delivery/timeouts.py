"""Make the waits on a broker's connection finite; a shorter one of the user's stays."""

from __future__ import annotations

from typing import Any

SOCKET = ("socket_timeout", "socket_connect_timeout")


def shortest(given: Any, ours: float) -> float:
    """Return the user's timeout if there is one and it is shorter than ours."""
    return min(float(given), ours) if given else ours


def bound_redis(options: dict[str, Any], ours: float) -> None:
    """Bound the transport options of a Redis, and of Sentinel's own nodes, in place."""
    options.update({name: shortest(options.get(name), ours) for name in SOCKET})
    options["retry_on_timeout"] = False
    nodes = dict(options.get("sentinel_kwargs") or {})
    # For these redis-py makes clients that retry ten times.
    nodes.update({name: shortest(nodes.get(name), ours) for name in SOCKET}, retry=None)
    options["sentinel_kwargs"] = nodes


def bound_amqp(options: dict[str, Any], ours: float) -> None:
    """Bound the transport options of py-amqp in place."""
    for name in ("read_timeout", "write_timeout"):
        options[name] = shortest(options.get(name), ours)
