"""The schedule that is run to verify: what is due when, said once for the nodes and the checker."""

from __future__ import annotations

from typing import Any

from celery_redlock_beat.ticks import SECOND, Micros

LATE: Micros = SECOND
"""How long after its instant a message may come before the table calls it late."""
PERIODS: dict[str, float] = {
    "every 0.25 s": 0.25,
    "every second": 1.0,
    "* * * * * *": 1.0,
    "every 2 s": 2.0,
    "*/5 * * * * *": 5.0,
    "newest only": 1.0,
}
"""The entries, each due at every multiple of so many seconds since the epoch; two are named for
the cron string that says so."""
LATEST = frozenset({"newest only"})


def schedule_source(task: str) -> str:
    """Return the source text of ``beat_schedule``."""
    entries: dict[str, dict[str, Any]] = {
        name: {
            "task": task,
            "schedule": name if name.endswith("*") else period,
            "catch_up": "latest" if name in LATEST else "all",
        }
        for name, period in PERIODS.items()
    }
    return repr(entries)
