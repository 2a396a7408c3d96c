"""Real Celery processes, beats and workers, on a project that was written for one run.

What they do is read from their logs and from the broker; nobody reaches into them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.errors import RedlockBeatError
from celery_redlock_beat.testing.children import Child

if TYPE_CHECKING:
    from pathlib import Path

HEARD = "The ledger has heard this node"
BROKEN = ("This pass failed", "CRITICAL")
TAIL = 3000


class NodeFailed(RedlockBeatError, RuntimeError):
    """A node ended by itself, or did not do in time what was waited for; quotes its log."""


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
        self._began = 0
        self._env = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}

    def start(self) -> Self:
        """Start the process; does not wait for anything it does."""
        if not self.alive:
            self._began = len(self.log)
            self.launch(self._command, cwd=self.directory, env=self._env)
        return self

    def said(self, pattern: str, since: int = 0) -> re.Match[str] | None:
        """Return the first match in the log from position ``since``; a process that ended fails.

        Raises:
            NodeFailed: There is none, and there will be none.

        """
        alive = self.alive  # looked at first, so that its last words are read
        match = re.compile(pattern, re.MULTILINE).search(self.log, since)
        if match is None and not alive:
            raise NodeFailed(self._without(pattern, "has ended"))
        return match

    def failed_to(self, what: str) -> NodeFailed:
        """Return the exception for a node that did not do something in time."""
        return NodeFailed(f"{self.name} did not {what}; its log ends:\n{self.log[-TAIL:]}")

    def takes_part(self) -> bool:
        """Whether the ledger has heard it since it was started last; one that ended fails."""
        return self.said(HEARD, self._began) is not None

    def wait_for_log(self, pattern: str, timeout: float = 20.0, since: int = 0) -> re.Match[str]:
        """Wait until the log, from position ``since``, has a match.

        Raises:
            NodeFailed: The process ended, or the time was over.

        """
        deadline = time.monotonic() + timeout
        while not (match := self.said(pattern, since)):
            if time.monotonic() > deadline:
                raise NodeFailed(self._without(pattern, "waited"))
            time.sleep(0.02)
        return match

    def wait_for_exit(self, timeout: float = 10.0) -> int:
        """Wait until the process ends by itself; return its exit code.

        Raises:
            NodeFailed: The time was over.

        """
        if self.process is None:
            raise NodeFailed(f"{self.name} was never started")
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise NodeFailed(f"{self.name} did not end within {timeout:g} s") from None

    def end(self, limit: float) -> str:
        """Wait for the end that was asked for; return what was wrong with it, or nothing."""
        try:
            code = self.wait_for_exit(limit)
        except NodeFailed as error:
            return str(error)
        return f"{self.name} ended with status {code}" if code else ""

    def ask_to_end(self) -> None:
        """Send SIGTERM to its main process, and do not wait."""
        if self.process is not None:
            self.process.terminate()

    def troubles(self) -> list[str]:
        """Return what the log tells of that must never be, one line each."""
        lines = self.log.splitlines()
        return [line for line in lines if any(words in line for words in BROKEN)]

    def _without(self, pattern: str, state: str) -> str:
        return f"{self.name} {state}: no {pattern!r} in its log:\n{self.log[-TAIL:]}"

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
