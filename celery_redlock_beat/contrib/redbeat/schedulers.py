"""RedBeat's scheduler by its name, and what its module has beside it; it sends nothing by itself.

Nodes need no lock to send each task once, so that ``lock_key`` and ``lock_timeout`` have no effect.
``schedule`` has the entries from code, and not what is due next: ``Control`` tells of all.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery.beat import DEFAULT_MAX_INTERVAL

from celery_redlock_beat.contrib.redbeat.config import RedBeatConfig, ensure_conf, get_redis
from celery_redlock_beat.contrib.redbeat.entry import RedBeatSchedulerEntry
from celery_redlock_beat.scheduler import RedlockScheduler

if TYPE_CHECKING:
    from celery import Celery

__all__ = [
    "RedBeatConfig",
    "RedBeatScheduler",
    "RedBeatSchedulerEntry",
    "ensure_conf",
    "get_redis",
]

logger = logging.getLogger(__name__)


class RedBeatScheduler(RedlockScheduler):
    """Run beat on every node, under RedBeat's name and with its arguments.

    ``lock_key`` stays ``None``: RedBeat's own receiver of ``beat_init``, where that is still
    imported, would wait for the lock of every scheduler that has one.
    """

    Entry = RedBeatSchedulerEntry  # type: ignore[assignment]  # its arguments have another order
    lock = None
    lock_timeout: float = DEFAULT_MAX_INTERVAL * 5

    def __init__(
        self,
        app: Celery,
        lock_key: str | None = None,
        lock_timeout: float | None = None,
        **kwargs: Any,
    ) -> None:
        conf = ensure_conf(app)
        super().__init__(app, **kwargs)
        self.lock_timeout = lock_timeout or conf.lock_timeout or self.max_interval * 5
        if (lock_key or lock_timeout) and not kwargs.get("lazy"):
            logger.warning(
                "lock_key and lock_timeout have no effect: nodes need no lock to send each task "
                "once; leave them out"
            )
