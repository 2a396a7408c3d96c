"""The demo's Celery project: four entries, one task, and notes of what reaches the worker.

It judges nothing, and knows nothing of the demo around it but where the notes go.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from celery import Celery, signals

from celery_redlock_beat import cron, current_tick

NAME = "demo"
NOTES = "REDLOCK_DEMO_NOTES"

app = Celery(NAME)  # CELERY_BROKER_URL, in the environment, names the broker
app.conf.update(broker_connection_retry_on_startup=True, task_ignore_result=True)


def note(what: str, **fields: Any) -> None:
    """Append one line to the worker's notes."""
    line = json.dumps({"what": what, **fields})
    with Path(os.environ.get(NOTES, os.devnull)).open("a") as notes:
        notes.write(f"{line}\n")


@signals.task_received.connect  # type: ignore[untyped-decorator]
def note_message(request: Any, **_: Any) -> None:
    """Note a message as it came: its tick, and the process that sent it."""
    headers = request.message.headers
    note(
        "message",
        entry=headers.get("redlock_entry"),
        tick=headers.get("redlock_tick"),
        origin=headers.get("origin"),
    )


@app.task(name="tell")  # type: ignore[untyped-decorator]
def tell() -> None:
    """Note that the task ran, and for which tick."""
    if tick := current_tick():
        note("run", entry=tick.entry, tick=tick.instant.isoformat())


app.conf.beat_schedule = {
    "every second": {"task": "tell", "schedule": 1.0, "catch_up": "all"},
    "every 2 seconds": {"task": "tell", "schedule": timedelta(seconds=2), "catch_up": "all"},
    "cron string": {"task": "tell", "schedule": "*/3 * * * * *", "catch_up": "all"},
    "cron in Berlin": {
        "task": "tell",
        "schedule": cron("*/5 * * * * *", timezone="Europe/Berlin"),
        "catch_up": "all",
    },
}
