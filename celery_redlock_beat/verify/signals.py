"""Remember the first signal that asks for the end, instead of being torn away by it."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import RedlockBeatError

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BY_SIGNAL = 128  # plus the signal's number: the exit status, as shells have it


class Interrupted(RedlockBeatError):
    """Somebody wants it to end: Ctrl-C, or a signal."""


class Signals:
    """The first signal that came; ``number`` is 0 without one."""

    def __init__(self) -> None:
        self.number = 0

    def asked(self) -> bool:
        """Whether there was one."""
        return bool(self.number)

    def check(self) -> None:
        """Raise ``Interrupted`` if there was one."""
        if self.number:
            raise Interrupted(f"ended by {signal.Signals(self.number).name}")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen, and restore what was before."""
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        self.number = self.number or number
