"""Write the Celery project of one run: an app, a task that does nothing, and a schedule.

It runs nothing, and knows no server.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = '''\
"""A Celery project of one run."""

import ctypes
import sys
from datetime import datetime, timedelta, timezone

from celery import Celery, signals
from celery.schedules import crontab, schedule, solar

app = Celery({name!r}, broker={broker!r})
app.conf.update(broker_connection_retry_on_startup=True, timezone="UTC")
app.conf.update({config!r})


@signals.worker_process_init.connect
@signals.beat_embedded_init.connect
def die_with_parent(**kwargs):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, 9)


@app.task
def noop(*args, **kwargs):
    """Do nothing."""


app.conf.beat_schedule = {schedule}

{extra}
'''
EVERY_SECOND = """{"every-second": {"task": noop.name, "schedule": 1.0}}"""
SCHEDULES = (1.0, "* * * * * *")


def write_project(
    directory: Path,
    broker_url: str | None,
    schedule: str = EVERY_SECOND,
    *,
    config: Mapping[str, Any] | None = None,
    extra: str = "",
    module: str = "proj",
) -> Path:
    """Write ``<module>.py`` with an app of that name and a task ``<module>.noop``.

    ``schedule`` is the source text of ``beat_schedule`` (``crontab``, ``schedule``, ``solar``,
    ``timedelta`` and ``datetime`` are imported); ``config`` are settings that can be written as
    literals; ``extra`` are further lines, which see ``app``. Without a ``broker_url`` the
    environment of the nodes names it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{module}.py"
    path.write_text(
        PROJECT.format(
            name=module,
            broker=broker_url,
            config=dict(config or {}),
            schedule=schedule,
            extra=extra,
        )
    )
    return path


def every_second(policies: Mapping[str, str], task: str = "proj.noop", **more: Any) -> str:
    """Return the source of a schedule: entries that are due every second, by ``catch_up``.

    Intervals and cron strings take turns. ``more`` are entries as they are.
    """
    entries: dict[str, Any] = {
        name: {"task": task, "schedule": schedule, "catch_up": policy}
        for (name, policy), schedule in zip(policies.items(), cycle(SCHEDULES), strict=False)
    }
    return repr(entries | more)
