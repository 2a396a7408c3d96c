"""Child processes that end with their parent, with their logs; it ends only what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.errors import ServerNotStarted

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

STOP_LIMIT = 10.0


def wait_until(condition: Callable[[], T], limit: float, what: str, interval: float = 0.01) -> T:
    """Return the first true answer of ``condition``; raise ``TimeoutError`` after ``limit`` s."""
    deadline = time.monotonic() + limit
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit:g} s for {what}")
        time.sleep(interval)
    return answer


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
