"""The beats under measurement: real processes, each with a server and a project of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from celery_redlock_beat.testing.server import Child, Server, wait_until

SCHEDULERS = {
    "stock beat": "celery.beat:PersistentScheduler",
    "redlock": "redlock",
}
PROJECT = """
from celery import Celery
from celery.schedules import crontab

app = Celery("bench", broker={broker!r})
app.conf.update({settings!r})
app.conf.beat_schedule = {{
    f"entry-{{number}}": {{"task": "bench.noop", "schedule": {schedule}, "args": (number,)}}
    for number in range({entries})
}}
"""


@dataclass
class Beat:
    """A running beat and the server it sends to."""

    child: Child
    server: Server

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.child.pid)

    def commands(self) -> int:
        """Return how many commands the server has processed, this question included."""
        with self.server.client() as client:
            return int(client.info("stats")["total_commands_processed"])


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, as the kernel counts it."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(scheduler: str, schedule: str, entries: int, **settings: object) -> Iterator[Beat]:
    """Run one beat over many entries on the same schedule."""
    with tempfile.TemporaryDirectory() as directory, Server() as server:
        text = PROJECT.format(
            broker=server.url, schedule=schedule, entries=entries, settings=settings
        )
        Path(directory, "bench.py").write_text(text, "utf-8")
        child = Child(Path(directory, "beat.log"))
        command = [sys.executable, "-m", "celery", "-A", "bench", "beat", "--pidfile="]
        child.launch([*command, "-l", "warning", "-S", SCHEDULERS[scheduler]], directory)
        try:
            wait_until(lambda: _is_up(server, scheduler), 60, f"{scheduler} to be up")
            yield Beat(child, server)
        finally:
            child.kill()


def _is_up(server: Server, scheduler: str) -> bool:
    if scheduler == "redlock":
        with server.client() as client:
            return bool(client.exists("{redlock:bench}:marks"))
    return True
