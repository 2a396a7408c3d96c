"""Collect the messages of a run in a thread of its own, and note when each came.

It takes part in nothing: it sends no message, and judges none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Tick
    from celery_redlock_beat.verify.arrivals import Arrival
    from celery_redlock_beat.verify.sources import Source


class Collector:
    """Collect the messages of one queue; a context manager."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._arrivals: list[Arrival] = []
        self._news = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    @property
    def arrivals(self) -> list[Arrival]:
        """All messages so far, in the order of their arrival."""
        with self._news:
            return list(self._arrivals)

    def of(self, entry: str) -> list[Arrival]:
        """Return the messages of one entry so far."""
        return [each for each in self.arrivals if each.tick and each.tick.entry == entry]

    def ticks(self) -> set[Tick]:
        """Return the different ticks that were seen so far."""
        return {each.tick for each in self.arrivals if each.tick}

    def wait_until(
        self, wanted: int | Callable[[Self], object], timeout: float = 30.0
    ) -> list[Arrival]:
        """Wait for so many different ticks, or for a predicate of this collector to hold."""
        with self._news:
            if not self._news.wait_for(lambda: self._meets(wanted), timeout):
                seen = f"{len(self._arrivals)} messages, {len(self.ticks())} ticks"
                raise TimeoutError(f"waited {timeout:g} s for {wanted}; there are {seen}")
        return self.arrivals

    def _meets(self, wanted: int | Callable[[Self], object]) -> bool:
        if isinstance(wanted, int):
            return len(self.ticks()) >= wanted
        return bool(wanted(self))

    def put(self, message: str) -> None:
        """Put a message of our own into the queue, behind all others."""
        self._source.put(message)

    def start(self, timeout: float = 10.0) -> Self:
        """Start collecting; returns once the broker has been reached."""
        self._thread.start()
        if not self._source.ready.wait(timeout):
            self.stop()
            raise TimeoutError(f"waited {timeout:g} s for the broker of {self._source.queue!r}")
        return self

    def stop(self) -> None:
        """Stop collecting; what was collected stays."""
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        self._source.run(self._receive, self._ended)

    def _receive(self, arrival: Arrival) -> None:
        with self._news:
            self._arrivals.append(arrival)
            self._news.notify_all()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
