"""Schedules of entries that are due every second, and a task that tells for which tick it ran."""

from __future__ import annotations

from celery_redlock_beat.verify.project import SCHEDULES, every_second

__all__ = ["FIVE", "RECORD", "RUNS", "SCHEDULES", "every_second"]

FIVE = dict.fromkeys(("one", "two", "three", "four", "five"), "all")
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
