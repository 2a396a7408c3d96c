"""Run a real Redis or Valkey server as a child process, for the demo and for tests.

Nothing here touches a process that it did not start, or leaves one behind.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from celery_redlock_beat.errors import ServerNotFound, ServerNotStarted
from celery_redlock_beat.testing.binaries import (
    DEMO_ORDER,
    ENVIRONMENT_VARIABLE,
    TEST_ORDER,
    find_server,
)
from celery_redlock_beat.testing.children import Child, spawn, wait_until

__all__ = [
    "DEMO_ORDER",
    "ENVIRONMENT_VARIABLE",
    "TEST_ORDER",
    "Child",
    "Server",
    "ServerNotFound",
    "ServerNotStarted",
    "find_server",
    "free_port",
    "spawn",
    "wait_until",
]

PORTS = range(10_000, 30_000)  # below every system's range for outgoing connections
START_LIMIT = 20.0


def free_port() -> int:
    """Return a port of 127.0.0.1, chosen at random, that nobody listens on just now."""
    for _ in range(100):
        port = SystemRandom().choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ServerNotStarted(f"no free port between {PORTS.start} and {PORTS.stop}")


class Server(Child):
    """A Redis or Valkey server on 127.0.0.1, as a context manager.

    ``directory`` holds its data and is kept; without one, a temporary directory goes with
    ``close()``. Port and data survive ``restart()``; the data only with ``appendonly``.
    """

    def __init__(
        self,
        port: int | None = None,
        directory: Path | None = None,
        *,
        appendonly: bool = False,
        fsync: str = "always",
        unixsocket: str | Path | None = None,
        extra: Sequence[str] = (),
        binary: Path | None = None,
        password: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._port = port
        self._directory = directory
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._unixsocket = unixsocket
        self._persistence = ("--appendonly", "yes" if appendonly else "no", "--appendfsync", fsync)
        self._extra = tuple(extra)
        self._binary = binary
        self._password = password
        self._env = env

    @property
    def port(self) -> int:
        """The port it listens on, known once it has started."""
        if self._port is None:
            raise ServerNotStarted("it was never started")
        return self._port

    @property
    def url(self) -> str:
        """Its URL for redis-py and Celery (database 0)."""
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def directory(self) -> Path:
        """Where it keeps its data and its log, known once it has started."""
        if self._directory is None:
            raise ServerNotStarted("it was never started")
        return self._directory

    @property
    def unixsocket(self) -> Path | None:
        """Its unix socket, if it was given one; a relative path starts at the directory."""
        return None if self._unixsocket is None else self.directory / self._unixsocket

    def client(self, **options: Any) -> redis.Redis:
        """Return a client of this server: finite timeouts, no hidden retries."""
        settings = {"socket_timeout": 5, "socket_connect_timeout": 5, "protocol": 2}
        retry = Retry(NoBackoff(), 0)
        return redis.Redis.from_url(self.url, **{"retry": retry, **settings, **options})

    def start(self) -> Self:
        """Start it and wait until it answers; a port that is taken is exchanged for another."""
        if self.alive:
            return self
        self._make_directory()
        chosen = self._port
        for _ in range(20):
            self._port = chosen or free_port()
            before = len(self.log)
            self._launch_server()
            if self._answers():
                return self
            if chosen or "ddress already in use" not in self.log[before:]:
                break
        self._port = chosen
        raise ServerNotStarted(f"the server ended at its start; its log ends:\n{self.log[-2000:]}")

    def restart(self) -> Self:
        """Stop it if it runs, and start it again on the same port and directory."""
        self.stop()
        return self.start()

    def close(self) -> None:
        """Stop it, and remove the directory if that was ours."""
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = self._directory = self.log_path = None

    def command(self, binary: Path, port: int) -> list[str]:
        """Return the command line of the server."""
        socket_file = self.unixsocket
        local = () if socket_file is None else ("--unixsocket", str(socket_file))
        secret = () if self._password is None else ("--requirepass", self._password)
        options = ("--port", str(port), "--bind", "127.0.0.1", "--daemonize", "no", "--save", "")
        place = ("--dir", str(self.directory), "--logfile", "")
        return [str(binary), *options, *place, *self._persistence, *local, *secret, *self._extra]

    def _make_directory(self) -> None:
        if self._directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="redlock-")
            self._directory = Path(self._temporary.name)
        self._directory.mkdir(parents=True, exist_ok=True)

    def _launch_server(self) -> None:
        binary = self._binary or find_server()
        self.launch(self.command(binary, self.port), cwd=self.directory, env=self._env)

    def _answers(self) -> bool:
        """Wait until *our* process answers with its data loaded; false if it ends instead."""
        try:
            wait_until(lambda: not self.alive or self._is_ours(), START_LIMIT, "its first answer")
        except TimeoutError as error:
            self.kill()
            raise ServerNotStarted(f"{error}; its log ends:\n{self.log[-2000:]}") from None
        return self.alive

    def _is_ours(self) -> bool:
        try:
            with self.client(single_connection_client=True) as client:
                info = client.info()
        except redis.RedisError:
            return False
        return info.get("process_id") == self.pid and not info.get("loading")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
