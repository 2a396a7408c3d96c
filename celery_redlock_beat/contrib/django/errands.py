"""One thing at a time, done in a thread of its own, which may hang; whoever asked goes on.

It knows no database. A database that does not answer would otherwise keep a node from sending.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Done(NamedTuple):
    """What came of an errand: a value, or what was raised."""

    value: Any
    error: BaseException | None


class Errands:
    """Do errands in one thread, which is made when it is needed, in the process that needs it.

    ``leave`` is called in the thread when it ends. Signal handlers may ask, too: the queues of it
    can be entered again.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._owner = 0
        self._jobs: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._done: SimpleQueue[Done] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.busy = False

    def send(self, job: Callable[[], Any]) -> None:
        """Begin an errand; the last one must have come back."""
        if self._owner != os.getpid():  # after a fork, the thread is the parent's
            self._owner, self._jobs, self._done = os.getpid(), SimpleQueue(), SimpleQueue()
            arguments = (self._jobs, self._done)
            self._thread = threading.Thread(
                target=self._run, args=arguments, name="redlock-database", daemon=True
            )
            self._thread.start()
        self.busy = True
        self._jobs.put(job)

    def back(self, patience: float) -> Done | None:
        """Return what came of the errand, or ``None`` if it is not back within so many seconds."""
        if not self.busy or self._owner != os.getpid():
            self.busy = False
            return None
        try:
            done = self._done.get(timeout=patience) if patience > 0 else self._done.get_nowait()
        except Empty:
            return None
        self.busy = False
        return done

    def end(self, patience: float) -> None:
        """Have the thread end, if it can within so many seconds."""
        if self._thread and self._owner == os.getpid():
            self._jobs.put(None)
            self._thread.join(patience)
        self._owner, self._thread, self.busy = 0, None, False

    def _run(self, jobs: SimpleQueue[Callable[[], Any] | None], done: SimpleQueue[Done]) -> None:
        try:
            while job := jobs.get():
                done.put(_outcome(job))
                del job
        finally:
            self._leave()


def _outcome(job: Callable[[], Any]) -> Done:
    try:
        return Done(job(), None)
    except BaseException as exc:  # noqa: BLE001 - handed to whoever asked
        return Done(None, exc)
