"""A program on a terminal of its own, and what a person sees there; it judges nothing."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Self

import pexpect
import pyte

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

LIMIT = 20.0
ROWS, COLUMNS = 24, 80
TERM = "xterm-256color"


class Terminal:
    """A program on a pseudo-terminal, as a context manager; what it wrote is in ``raw``."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str] | None = None,
        rows: int = ROWS,
        columns: int = COLUMNS,
        term: str = TERM,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._child = pexpect.spawn(
            command[0],
            list(command[1:]),
            cwd=str(cwd),
            env={**(os.environ if env is None else env), "TERM": term},
            dimensions=(rows, columns),
            timeout=None,
        )
        self.raw = b""

    @property
    def lines(self) -> list[str]:
        """What is on the screen, line by line."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.lines)

    def send(self, keys: str) -> None:
        """Type."""
        self._child.send(keys)

    def terminate(self) -> None:
        """Ask the program to end, as an init system does."""
        self._child.kill(signal.SIGTERM)

    def wait_for(self, found: str | Callable[[str], bool], limit: float = LIMIT) -> str:
        """Wait until a text is on the screen, or the screen is as it should be; return it."""
        until = time.monotonic() + limit
        while not (found in self.text if isinstance(found, str) else found(self.text)):
            if time.monotonic() > until or not self._read(until - time.monotonic()):
                raise AssertionError(f"{found!r} is not on the screen:\n{self.text}")
        return self.text

    def end(self, limit: float = LIMIT) -> int:
        """Wait until the program has ended by itself, and return its exit code."""
        until = time.monotonic() + limit
        while self._read(until - time.monotonic()):
            if time.monotonic() > until:
                raise AssertionError(f"it does not end; it shows:\n{self.text}")
        self._child.close()
        return -self._child.signalstatus if self._child.signalstatus else self._child.exitstatus

    def _read(self, limit: float) -> bool:
        """Take what was written within a limit; false if there will be no more."""
        try:
            told = self._child.read_nonblocking(65536, max(limit, 0))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += told
        self._stream.feed(told)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close(force=True)
