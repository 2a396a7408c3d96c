"""The processes of the demo: one server, some nodes, one worker; it shows and judges nothing.

They live in one temporary directory, and neither it nor they outlive the ``with`` block of
``a_cast_of``.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.demo import project
from celery_redlock_beat.demo.verdict import Note
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.testing.server import DEMO_ORDER, Child, Server, find_server
from celery_redlock_beat.ticks import SECOND, Micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OVERRIDES = ("CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND")
"""What in the user's environment would win over the demo's configuration."""
QUEUES = ("celery", "unacked")
"""Where kombu keeps messages that nobody has taken, and those that nobody has acknowledged."""


class Celery(Child):
    """One process of ``celery``; ``killed_at`` is when the demo killed it.

    ``must_live`` tells whether its end would be a fault.
    """

    def __init__(self, directory: Path, name: str, words: Sequence[str]) -> None:
        super().__init__(directory / f"{name}.log")
        self.name = name
        self.killed_at: Micros | None = None
        self.must_live = True
        self._directory = directory
        self._command = [sys.executable, "-m", "celery", "-A", project.__name__, *words]

    def start(self, env: dict[str, str]) -> None:
        """Start the process, with ``env`` on top of our environment."""
        self.launch(self._command, cwd=self._directory, env=env)


class Cast:
    """A server, ``nodes`` beats and a worker; ``start()`` starts them, ``kill()`` ends them all."""

    def __init__(self, binary: Path, directory: Path, nodes: int) -> None:
        self.server = Server(directory=directory / "server", binary=binary)
        self.server_name = "Valkey" if "valkey" in binary.name else "Redis"
        self.nodes = [_beat(directory, number) for number in range(1, nodes + 1)]
        self.worker = _worker(directory)
        self._notes = directory / "notes.jsonl"
        self._read = 0

    @cached_property
    def client(self) -> Any:
        """A client of the server, which must have started."""
        return self.server.client()

    def start(self) -> None:
        """Start all processes; wait for the server only."""
        self.server.start()
        env = {
            **dict.fromkeys(OVERRIDES, ""),
            "CELERY_BROKER_URL": self.server.url,
            project.NOTES: str(self._notes),
        }
        for each in [*self.nodes, self.worker]:
            each.start(env)

    def now(self) -> Micros:
        """Return the time of the server, which is the ledger's."""
        seconds, micros = self.client.time()
        return int(seconds) * SECOND + int(micros)

    def are_all_in(self) -> bool:
        """Whether the ledger has heard of every entry and from every node."""
        keys = ledger_keys(project.NAME)
        entries = [f"e:{name}" for name in project.app.conf.beat_schedule]
        known = self.client.hmget(keys["marks"], entries)
        return None not in known and self.client.zcard(keys["nodes"]) == len(self.nodes)

    def new_notes(self) -> list[Note]:
        """Return what the worker has noted since the last call."""
        if not self._notes.exists():
            return []
        with self._notes.open("rb") as notes:
            notes.seek(self._read)
            whole, newline, _ = notes.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return [Note.read(line) for line in whole.decode().splitlines()]

    def are_queues_empty(self) -> bool:
        """Whether the worker has taken and acknowledged everything."""
        waiting, taken = QUEUES
        return not (self.client.llen(waiting) or self.client.hlen(taken))

    def died(self) -> Child | None:
        """Return a process that has ended and was not killed by the demo."""
        for each in [*self.nodes, self.worker]:
            if each.must_live and not each.alive:
                return each
        return None if self.server.alive else self.server

    def kill(self) -> None:
        """End every process that was started, at once."""
        children: list[Child] = [*self.nodes, self.worker, self.server]
        for each in children:
            each.signal_group(signal.SIGKILL)
        for each in children:
            each.kill()


@contextmanager
def a_cast_of(nodes: int) -> Iterator[Cast]:
    """Give a cast a directory, and see to it that neither is left behind.

    Raises ``ServerNotFound`` where there is no server to start.
    """
    binary = find_server(DEMO_ORDER)
    with tempfile.TemporaryDirectory(prefix="redlock-demo-") as directory:
        cast = Cast(binary, Path(directory), nodes)
        try:
            yield cast
        finally:
            cast.kill()


def _beat(directory: Path, number: int) -> Celery:
    words = ["beat", "-S", "redlock", "-l", "info"]
    return Celery(directory, f"node {number}", words)


def _worker(directory: Path) -> Celery:
    quick = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    words = ["worker", "-P", "solo", "-l", "info", *quick]
    return Celery(directory, "worker", words)
