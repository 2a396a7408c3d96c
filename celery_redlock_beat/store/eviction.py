"""Tell whether a server may throw our keys away when its memory is full; changes nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis.exceptions import RedisError

if TYPE_CHECKING:
    from typing import Any

    from redis import Redis

# Of our keys only the heartbeats have a TTL: the volatile policies reach nothing that matters.
DANGEROUS = "allkeys-"
WHAT_IT_MEANS = (
    "when its memory is full, it deletes the ledger and the queues, "
    "and ticks are lost or sent twice"
)
ADVICE = "Set it to noeviction, and watch the memory."


def may_evict(policy: str, limit: int | None) -> bool:
    """Answer whether a ``maxmemory-policy`` can reach our keys; without a limit, none does."""
    return policy.startswith(DANGEROUS) and limit != 0


def eviction_warning(client: Redis) -> str | None:
    """Return a warning about the server's eviction policy, or ``None`` if there is no cause.

    ``None`` also where the server does not tell.
    """
    policy, limit = _from_config(client) or _from_info(client) or ("", None)
    if not may_evict(policy, limit):
        return None
    return f"the server's maxmemory-policy is {policy}: {WHAT_IT_MEANS}. {ADVICE}"


def _from_config(client: Redis) -> tuple[str, int | None] | None:
    try:
        told: Any = {**_get(client, "maxmemory-policy"), **_get(client, "maxmemory")}
    except (RedisError, OSError):  # renamed, forbidden, or a managed service
        return None
    return _read(told.get("maxmemory-policy"), told.get("maxmemory"))


def _get(client: Redis, name: str) -> Any:
    # Redis before 7 takes one name per CONFIG GET.
    return client.config_get(name)


def _from_info(client: Redis) -> tuple[str, int | None] | None:
    try:
        told: Any = client.info("memory")
    except (RedisError, OSError):
        return None
    return _read(told.get("maxmemory_policy"), told.get("maxmemory"))


def _read(policy: Any, limit: Any) -> tuple[str, int | None] | None:
    if not policy:
        return None
    text = policy.decode() if isinstance(policy, bytes) else str(policy)
    return text, None if limit is None else int(limit)
