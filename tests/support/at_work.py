"""An operator at work: changes entries at random, and writes down what was done, and when.

The queue gets a message of our own before and after each deed: what lies behind the second one was
pushed after the deed had returned. It judges nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.ticks import SECOND
from support.deeds import BEGINS, RETURNED, Deed, Kind, Moment, Terms, mark_of

if TYPE_CHECKING:
    from celery_redlock_beat.control import Control
    from celery_redlock_beat.ticks import Micros

SCHEDULES: dict[float | str, float] = {1.0: 1, "* * * * * *": 1, 0.5: 0.5, 2.0: 2, 3.0: 3}
"""Schedules as they are written, and their periods in seconds."""
TASK = "proj.noop"


@dataclass(slots=True)
class Known:
    """What an operator knows of an entry: its terms, if it is there, and how it is paused."""

    terms: Terms | None = None
    is_paused: bool = False
    until: Micros | None = None


class Operator:
    """Does what it is told to entries, and keeps a record; a context manager.

    ``control`` is that of the app; ``now`` tells the ledger's time; ``put`` puts a message of our
    own, which has nothing but this id, into the queue of the nodes.
    """

    def __init__(
        self, control: Control, now: Callable[[], Micros], put: Callable[[str], None]
    ) -> None:
        self.control = control
        self.now = now
        self.deeds: list[Deed] = []
        self._put = put
        self._version = 0
        self._known: dict[str, Known] = {}

    def knows(self, entry: str) -> Known:
        """Return what it knows of an entry."""
        return self._known.setdefault(entry, Known())

    def take_over(self, entry: str, terms: Terms) -> None:
        """Learn of an entry from code, which can be paused only."""
        self._known[entry] = Known(terms)

    def add(self, entry: str, schedule: float | str = 1.0, catch_up: str = "latest") -> Deed:
        """Store a new entry, due on a schedule of ``SCHEDULES``."""
        terms = self._terms(schedule, catch_up)
        with self._deed(Kind.ADD, entry, terms=terms):
            self.control.add(entry, **_fields(terms))
        self._known[entry] = Known(terms)
        return self.deeds[-1]

    def edit(self, entry: str, schedule: float | str, catch_up: str = "latest") -> Deed:
        """Change a stored entry: its arguments in any case."""
        terms = self._terms(schedule, catch_up)
        with self._deed(Kind.EDIT, entry, terms=terms):
            self.control.update(entry, **_fields(terms))
        self.knows(entry).terms = terms
        return self.deeds[-1]

    def pause(self, entry: str, seconds: int | None = None) -> Deed:
        """Pause an entry, for good or for so many whole seconds of the clock, and a bit."""
        until = ends_at = None
        if seconds is not None:
            ends_at = (self.now() // SECOND + seconds) * SECOND
            until = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=ends_at)
        with self._deed(Kind.PAUSE, entry, until=ends_at):
            self.control.pause(entry, until=until, note="a test")
        known = self.knows(entry)
        known.is_paused, known.until = True, ends_at
        return self.deeds[-1]

    def resume(self, entry: str, *, catch_up: bool = False) -> Deed:
        """End a pause."""
        with self._deed(Kind.RESUME, entry, catch_up=catch_up):
            self.control.resume(entry, catch_up=catch_up)
        known = self.knows(entry)
        known.is_paused, known.until = False, None
        return self.deeds[-1]

    def remove(self, entry: str) -> Deed:
        """Remove a stored entry."""
        with self._deed(Kind.REMOVE, entry):
            self.control.remove(entry)
        self._known[entry] = Known()
        return self.deeds[-1]

    def _terms(self, schedule: float | str, catch_up: str) -> Terms:
        self._version += 1
        return Terms(schedule, SCHEDULES[schedule], catch_up, self._version)

    @contextmanager
    def _deed(self, kind: Kind, entry: str, **more: Any) -> Iterator[None]:
        number, begins = len(self.deeds), self.now()
        self._put(mark_of(number, BEGINS))
        yield
        self._put(mark_of(number, RETURNED))
        self.deeds.append(Deed(number, kind, entry, Moment(begins, self.now()), **more))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.control.close()


class AtWork(threading.Thread):
    """An operator who does something at random so many times per second, until told to end.

    The last ones of the entries are changed often, the first ones rarely; those from ``code`` are
    paused and resumed only. What fails is raised where the end is awaited.
    """

    def __init__(
        self,
        operator: Operator,
        stored: Sequence[str],
        code: Sequence[str] = (),
        *,
        seed: int,
        per_second: float = 50,
    ) -> None:
        super().__init__(name="operator", daemon=True)
        self.operator = operator
        half = len(stored) // 2
        self._entries = [*stored[:half], *code, *stored[half:]]
        self._code = frozenset(code)
        self._random = Random(seed)
        self._per_second = per_second
        self._told_to_end = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        began, number = time.monotonic(), 0
        try:
            while not self._told_to_end.wait(began + number / self._per_second - time.monotonic()):
                number += 1
                place = len(self._entries) * self._random.random() ** 0.3
                self._do_something(self._entries[int(place)])
        except BaseException as failure:  # noqa: BLE001 - raised where the end is awaited
            self._failure = failure

    def end(self) -> None:
        """Have it stop, and resume what it has paused for good; raise what failed."""
        self._told_to_end.set()
        self.join(60)
        if self._failure:
            raise self._failure
        for entry in self._entries:
            known = self.operator.knows(entry)
            if known.is_paused and known.until is None:
                self.operator.resume(entry, catch_up=self._random.random() < 0.5)

    def _do_something(self, entry: str) -> None:
        known, chance = self.operator.knows(entry), self._random.random()
        ends_by_itself = known.until is not None and known.until >= self.operator.now()
        if known.terms is None:
            self.operator.add(entry, *self._what())
        elif not ends_by_itself and (entry in self._code or chance < 0.45):
            self._pause_or_resume(entry, known)
        elif entry not in self._code and chance < 0.8:
            schedule, catch_up = self._what()
            same = self._random.random() < 0.5
            self.operator.edit(entry, known.terms.schedule if same else schedule, catch_up)
        elif entry not in self._code:
            self.operator.remove(entry)

    def _pause_or_resume(self, entry: str, known: Known) -> None:
        if known.is_paused and known.until is None:
            self.operator.resume(entry, catch_up=self._random.random() < 0.4)
        else:
            self.operator.pause(entry, self._random.choice((None, None, 2, 4)))

    def _what(self) -> tuple[float | str, str]:
        return self._random.choice(list(SCHEDULES)), self._random.choice(("all", "latest"))


def _fields(terms: Terms) -> dict[str, Any]:
    own = {"schedule": terms.schedule, "args": [terms.version], "catch_up": terms.catch_up}
    return {"task": TASK, **own}
