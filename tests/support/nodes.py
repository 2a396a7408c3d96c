"""Real Celery processes, beats and workers, on a project written for one test.

What they do is read from their logs and from the broker; no test reaches into them.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.testing.server import Child

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = '''\
"""A Celery project of one test."""

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


def write_project(
    directory: Path,
    broker_url: str,
    schedule: str = EVERY_SECOND,
    *,
    config: Mapping[str, Any] | None = None,
    extra: str = "",
    module: str = "proj",
) -> Path:
    """Write ``<module>.py`` with an app of that name and a task ``<module>.noop``.

    ``schedule`` is the source text of ``beat_schedule`` (``crontab``, ``schedule``, ``solar``,
    ``timedelta`` and ``datetime`` are imported); ``config`` are settings that can be written as
    literals; ``extra`` are further lines, which see ``app``.
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


class Node(Child):
    """One process of ``celery``, in the directory of a project; a context manager.

    Its log is ``<directory>/<name>.log``, which goes on when it is started again.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        command: Sequence[str],
        *,
        module: str = "proj",
        env: Mapping[str, str] | None = None,
        python: str | Path = sys.executable,
    ) -> None:
        super().__init__(directory / f"{name}.log")
        self.directory = directory
        self.name = name
        self._command = [str(python), "-m", "celery", "-A", module, *command]
        self._env = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}

    def start(self) -> Self:
        """Start the process; does not wait for anything it does."""
        if not self.alive:
            self.launch(self._command, cwd=self.directory, env=self._env)
        return self

    def wait_for_log(self, pattern: str, timeout: float = 20.0, since: int = 0) -> re.Match[str]:
        """Wait until the log, from position ``since``, has a match; a process that ends fails."""
        deadline = time.monotonic() + timeout
        while True:
            alive = self.alive  # looked at first, so that its last words are read
            if match := re.compile(pattern, re.MULTILINE).search(self.log, since):
                return match
            if not alive or time.monotonic() > deadline:
                state = "waited" if alive else "has ended"
                tail = self.log[-3000:]
                raise AssertionError(f"{self.name} {state}: no {pattern!r} in its log:\n{tail}")
            time.sleep(0.02)

    def wait_for_exit(self, timeout: float = 10.0) -> int:
        """Wait until the process ends by itself; return its exit code."""
        assert self.process is not None
        return self.process.wait(timeout)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.thaw()
        self.kill()


class BeatNode(Node):
    """A real ``celery -A <module> beat -S redlock``."""

    def __init__(
        self,
        directory: Path,
        name: str = "beat",
        *,
        scheduler: str = "redlock",
        args: Sequence[str] = (),
        loglevel: str = "info",
        **options: Any,
    ) -> None:
        command = ["beat", "-S", scheduler, "--pidfile=", "-l", loglevel, *args]
        super().__init__(directory, name, command, **options)


class WorkerNode(Node):
    """A real ``celery -A <module> worker``; with ``beat`` it has one embedded."""

    def __init__(
        self,
        directory: Path,
        name: str = "worker",
        *,
        beat: bool = False,
        scheduler: str = "redlock",
        args: Sequence[str] = (),
        loglevel: str = "info",
        **options: Any,
    ) -> None:
        embedded = ["-B", "--scheduler", scheduler] if beat else []
        pool = ["-c", "1", "--hostname", f"{name}@%h", "-l", loglevel]
        super().__init__(directory, name, ["worker", *pool, *embedded, *args], **options)


class EmbeddedBeat(WorkerNode):
    """A real ``celery -A <module> worker -B --scheduler redlock``, with the prefork pool."""

    def __init__(self, directory: Path, name: str = "worker", **options: Any) -> None:
        super().__init__(directory, name, beat=True, args=["--pool=prefork"], **options)
