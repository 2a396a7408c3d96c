"""What several tests say of entries and outcomes; it looks at nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from celery_redlock_beat.ticks import SECOND, SENT, Event, Outcome, Tick, to_micros

INSTANT = datetime(2030, 1, 31, 12, tzinfo=UTC)
EACH_POLICY: dict[str, Any] = {
    "timezone": "Asia/Tokyo",
    "dst": "real",
    "catch_up": "all",
    "catch_up_window": timedelta(hours=1),
    "catch_up_limit": 20,
    "misfire_grace_time": 30,
    "jitter": 10,
    "phase": timedelta(hours=-2),
    "start": "2026-01-01T00:00",
    "end": datetime(2027, 1, 1, tzinfo=UTC),
    "max_runs": 3,
    "run_on_start": True,
    "enabled": False,
    "expires": "next",
    "description": "Prices of the day",
    "tags": ["nightly", "billing"],
}


def event(outcome: Outcome = SENT, **changes: Any) -> Event:
    """Return an outcome of the tick at ``INSTANT``, a quarter of a second late."""
    facts: dict[str, Any] = {
        "tick": Tick("nightly", to_micros(INSTANT)),
        "task": "shop.clean",
        "task_id": "5913c2d8",
        "attempt": 1,
        "lateness": SECOND // 4,
        "passed_over": {},
    }
    return Event(outcome=outcome, **{**facts, **changes})
