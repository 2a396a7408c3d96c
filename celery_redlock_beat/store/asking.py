"""Ask a server in our error's terms; it knows no command."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from redis.exceptions import RedisError

from celery_redlock_beat.store.errors import NOISE, unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def asked(ask: Callable[[], T]) -> T:
    """Return the answer; raise ``LedgerUnavailable`` where the server could not be asked."""
    try:
        return ask()
    except (RedisError, OSError, *NOISE) as exc:
        raise unavailable(exc) from exc
