"""What the command's streams may do to it: closed, full, or no terminal; it writes no content."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from typing import NoReturn, TextIO

UNDRAWABLE = ("dumb", "unknown")


def is_terminal(stream: TextIO | None) -> bool:
    """Answer whether a person is at the other end; Python has ``None`` for a closed stream."""
    return stream is not None and not stream.closed and stream.isatty()


def is_screen() -> bool:
    """Answer whether stdout is a terminal on which one can draw again over what is there."""
    return is_terminal(sys.stdout) and os.environ.get("TERM") not in UNDRAWABLE


def end_unwritten(error: OSError) -> NoReturn:
    """End with a line about what the system could not do, as on a disk that is full.

    A reader that went away is left to click, which ends quietly.
    """
    if error.errno == errno.EPIPE:
        raise error
    _forget_what_is_left()
    raise click.ClickException(f"it could not be written: {error.strerror or error}") from None


def _forget_what_is_left() -> None:
    """Let stdout lead nowhere, or Python would try to write it once more when it ends."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
