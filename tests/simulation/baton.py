"""Virtual time, and one thread at a time: whoever holds the baton runs, all others wait.

The core is synchronous, so each node has a thread; but a thread goes on only when its turn in the
queue of events has come. So a run depends on nothing but its events: not on the machine.
"""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery_redlock_beat.ticks import Micros

FIRST = -1
"""Before everything else that is to happen at the same instant."""


class Killed(BaseException):  # not an Exception: nothing in the core may catch it
    """The process of this actor is gone."""


class Actor:
    """Something with a thread of its own, which sleeps and wakes in virtual time."""

    def __init__(self, baton: Baton, name: str) -> None:
        self.baton = baton
        self.name = name
        self.stopped_until: Micros = 0
        self.is_dead = False
        self.turn = threading.Lock()
        self.turn.acquire()
        self.waits = 0

    def start(self, work: Callable[[], None]) -> None:
        self.baton.actors.append(self)
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()
        self.baton.wake(self, self.baton.now)

    def sleep(self, span: Micros) -> None:
        """Wait until the span is over, or until somebody wakes this actor earlier."""
        self.baton.wake(self, self.baton.now + span)
        self.baton.pass_on(self)
        self.waits += 1  # whatever else was to wake it from this sleep is void
        if self.is_dead:
            raise Killed

    def _run(self, work: Callable[[], None]) -> None:
        self.turn.acquire()
        self.waits += 1
        try:
            if not self.is_dead:
                work()
        except Killed:
            pass
        except Exception as exc:  # noqa: BLE001 - of the simulation itself: it goes to the main thread
            self.baton.failure = exc
            self.baton.halt()
        if not self.baton.is_over:
            self.baton.pass_on(None)


class Baton:
    """The queue of events, the time, and the threads that wait for their turns."""

    def __init__(self) -> None:
        self.now: Micros = 0
        self.is_over = False
        self.failure: Exception | None = None
        self.actors: list[Actor] = []
        self._main = Actor(self, "main")
        self._queue: list[tuple[Micros, int, Actor | Callable[[], None], int]] = []
        self._order = 0

    def at(self, instant: Micros, action: Callable[[], None]) -> None:
        """Have something done at an instant, by whichever thread runs then; it must not sleep."""
        self._order += 1
        heappush(self._queue, (instant, self._order, action, 0))

    def wake(self, actor: Actor, instant: Micros, waits: int | None = None) -> None:
        """End the present sleep of an actor at an instant, or the one it then had."""
        self._order += 1
        which = actor.waits if waits is None else waits
        heappush(self._queue, (instant, self._order, actor, which))

    def run(self, until: Micros) -> None:
        """Let virtual time pass; only the main thread does this."""
        self._main.sleep(until - self.now)
        if self.failure:
            raise self.failure

    def halt(self) -> None:
        """Return to the main thread at once."""
        heappush(self._queue, (self.now, FIRST, self._main, self._main.waits))

    def end(self) -> None:
        """Let all threads go."""
        self.is_over = True
        for actor in self.actors:
            actor.is_dead = True
            actor.turn.release()
            actor.thread.join()

    def pass_on(self, me: Actor | None) -> None:
        """Do what comes next until it is the turn of ``me``; of nobody, when that thread ends."""
        queue = self._queue
        while True:
            instant, _, what, waits = heappop(queue)
            self.now = instant
            if not isinstance(what, Actor):
                what()
            elif what.waits != waits or what.is_dead:
                continue
            elif what.stopped_until > instant:
                self.wake(what, what.stopped_until, waits)
            elif what is me:
                return
            else:
                what.turn.release()
                if me is not None:
                    me.turn.acquire()
                return
