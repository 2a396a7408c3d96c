"""One key at a time from a terminal, without Enter; it knows no command."""

from __future__ import annotations

import os
import select
import sys
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING

from celery_redlock_beat.cli._streams import is_terminal

try:
    import termios
    import tty
except ImportError:  # on Windows, where Ctrl-C must do
    HAS_TERMIOS = False
else:
    HAS_TERMIOS = True

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """Give what waits so many seconds for a key, and returns it, or nothing; Ctrl-C stays.

    The terminal is as it was afterwards.
    """
    if not HAS_TERMIOS or not is_terminal(sys.stdin):
        yield _no_key
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield _key
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _key(seconds: float) -> str:
    terminal = sys.stdin.fileno()
    readable, _, _ = select.select([terminal], [], [], seconds)
    if not readable:
        return ""
    return os.read(terminal, 1).decode("latin-1")


def _no_key(seconds: float) -> str:
    sleep(seconds)
    return ""
