"""RedBeat's Python interface over our stored entries: code changes its imports, and nothing else.

``from redbeat import …`` becomes ``from celery_redlock_beat.contrib.redbeat import …``, and so do
``redbeat.schedulers``, ``redbeat.schedules`` and ``redbeat.decoder``; ``beat_scheduler`` becomes
``"celery_redlock_beat.contrib.redbeat.RedBeatScheduler"``. Nothing in here reads RedBeat's own data
or writes to it.

What differs:

- Entries are kept in the ledger and not under RedBeat's keys: what reads these by itself, with
  ``zrange`` or ``hget``, finds nothing new. ``Control.entries()`` lists them.
- An entry that the code has cannot be saved or deleted. RedBeat's beat undid that when it started.
- A save checks the entry as beat would. A schedule class of your own is code and cannot be saved.
- ``next()`` stores nothing, and ``reschedule()`` moves intervals only: see there.
- No ``RetryingConnection`` and no lock: nodes connect anew by themselves, and need no lock.
"""

from __future__ import annotations

from celery_redlock_beat.contrib.redbeat.schedulers import (
    RedBeatScheduler,
    RedBeatSchedulerEntry,
    ensure_conf,
    get_redis,
)

__all__ = ["RedBeatScheduler", "RedBeatSchedulerEntry", "ensure_conf", "get_redis"]
