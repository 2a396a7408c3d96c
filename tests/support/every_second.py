"""Schedules of entries that are due every second, and a task that tells for which tick it ran."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

FIVE = dict.fromkeys(("one", "two", "three", "four", "five"), "all")
SCHEDULES = (1.0, "* * * * * *")
RUNS = "runs"
# A task that tells, in a list of the broker and in the shape of a message, that it was executed.
RECORD = f"""
import json
from uuid import uuid4

from celery_redlock_beat import current_tick


@app.task(bind=True)
def record(self):
    tick = current_tick()
    headers = {{
        "id": self.request.id,
        "redlock_entry": tick.entry,
        "redlock_tick": tick.instant.isoformat(),
        "redlock_attempt": tick.attempt,
        "redlock_fence": tick.fence,
    }}
    told = json.dumps({{"headers": headers, "properties": {{"delivery_tag": uuid4().hex}}}})
    with app.connection_for_read() as connection:
        connection.default_channel.client.lpush({RUNS!r}, told)
"""


def every_second(policies: Mapping[str, str], task: str = "proj.noop", **more: Any) -> str:
    """Return the source of a schedule: entries that are due every second, by ``catch_up``.

    Intervals and cron strings take turns. ``more`` are entries as they are.
    """
    entries: dict[str, Any] = {
        name: {"task": task, "schedule": schedule, "catch_up": policy}
        for (name, policy), schedule in zip(policies.items(), cycle(SCHEDULES), strict=False)
    }
    return repr(entries | more)
