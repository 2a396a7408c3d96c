"""What a node tells of itself with its claims, as JSON; it asks nobody and reads no clock.

==============  ==============================================================================
``version``     the release of this package
``host``        the machine's name
``pid``         the process
``started``     when it began, by its wall clock, µs since the epoch
``offset``      how far its wall clock is ahead of the ledger's, seconds; ``null`` if not known
``schedule``    the fingerprint of the entries from code: nodes that differ run different code;
                ``""`` if a schedule has none
``entries``     how many good entries from code there are; ``null`` then
``bad``         how many entries are left out
``bad_names``   the first of them
``lateness``    the longest of what was sent within the last minute, seconds
``pass``        how long the last pass took, seconds
``delivery``    how messages leave
``poll``        how long it sleeps at most, seconds
``ready``       whether it does all of its work: there are no problems
``problems``    what keeps it from that, in words
``left``        whether it has left: the last that it tells
==============  ==============================================================================
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
from collections import deque
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from celery_redlock_beat.ticks import Micros

logger = logging.getLogger(__name__)

EVERY: Micros = SECOND
LOOKED_BACK: Micros = 60 * SECOND
MOST_BYTES = 2000
MOST_BAD_NAMES = 20
MOST_NAMES_IN_WORDS = 3
LONGEST_NAME = 60
MOST_PROBLEMS = 5
LONGEST_PROBLEM = 200
BAD_ENTRIES = "bad entries"


@dataclass(frozen=True, slots=True)
class About:
    """What of a node does not change: ``started`` is in microseconds, ``poll`` in seconds."""

    version: str
    host: str
    pid: int
    started: Micros
    delivery: str
    poll: float

    @classmethod
    def this_process(cls, started: Micros, delivery: str, poll: float) -> About:
        """Return it for the process that calls: after a fork, not before."""
        return cls(_release(), socket.gethostname()[:255], os.getpid(), started, delivery, poll)


class Heartbeat:
    """Gather what there is to tell of a node, and tell it at most once a second.

    ``entries`` returns name, fingerprint of the slot, and task of each good entry from code, and
    ``faults`` the names of those left out; they are asked when something ``changed``. ``offset``
    returns how far the wall clock is ahead of the ledger's, or ``None``, each time.
    """

    def __init__(
        self,
        about: About,
        entries: Callable[[], Iterable[tuple[str, str, str]]],
        faults: Callable[[], Collection[str]],
        offset: Callable[[], Micros | None],
    ) -> None:
        self._about = asdict(about)
        self._entries = entries
        self._faults = faults
        self._offset = offset
        self._lateness = Longest()
        self._pass: Micros = 0
        self._problems: dict[str, str] = {}
        self._schedule: dict[str, Any] | None = None
        self._told_at: Micros | None = None

    def changed(self) -> None:
        """Note that an entry came, went, or is another; it is looked at when it is told."""
        self._schedule = None

    def sent(self, lateness: Micros, now: Micros) -> None:
        """Note that a tick was sent so late."""
        self._lateness.add(lateness, now)

    def passed(self, duration: Micros) -> None:
        """Note how long the last pass took."""
        self._pass = duration

    def problem(self, kind: str, text: str = "") -> None:
        """Note what keeps the node from its work, one per kind; without a text, that is over."""
        if text:
            self._problems[kind] = text
        else:
            self._problems.pop(kind, None)

    @property
    def problems(self) -> list[str]:
        """What keeps the node from all of its work, in words; as of the last change told."""
        self._look_at_schedule()
        return [each[:LONGEST_PROBLEM] for each in self._problems.values()][:MOST_PROBLEMS]

    def told(self, now: Micros) -> str:
        """Return what there is to tell at a monotonic instant, at most 2000 bytes; else nothing."""
        if self._told_at is not None and now - self._told_at < EVERY:
            return ""
        self._told_at = now
        return self._text(now, left=False)

    def last_words(self, now: Micros) -> str:
        """Return what there is to tell when the node leaves."""
        return self._text(now, left=True)

    def _text(self, now: Micros, *, left: bool) -> str:
        offset, problems = self._offset(), self.problems
        record = {
            **self._about,
            "offset": None if offset is None else offset / SECOND,
            **self._look_at_schedule(),
            "lateness": self._lateness.until(now) / SECOND,
            "pass": self._pass / SECOND,
            "ready": not (problems or left),
            "problems": problems,
            "left": left,
        }
        return _fitting(record)

    def _look_at_schedule(self) -> dict[str, Any]:
        if self._schedule is None:
            entries, bad = self._all_entries(), sorted(map(str, self._faults()))
            self._schedule = {
                "schedule": "" if entries is None else fingerprint_of(entries),
                "entries": None if entries is None else len(entries),
                "bad": len(bad),
                "bad_names": [name[:LONGEST_NAME] for name in bad[:MOST_BAD_NAMES]],
            }
            self.problem(BAD_ENTRIES, _left_out(self._schedule["bad_names"], len(bad)))
        return self._schedule

    def _all_entries(self) -> list[tuple[str, str, str]] | None:
        try:
            return sorted(self._entries())
        except Exception:  # schedules are user code, and this is no reason to send nothing
            logger.exception("The schedule has no fingerprint")
            return None


class Longest:
    """The longest of what was added within the last minute, to the second."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[Micros, Micros]] = deque()

    def add(self, duration: Micros, now: Micros) -> None:
        """Add a duration at an instant, not earlier than the last one."""
        second = now // SECOND
        if self._seconds and self._seconds[-1][0] == second:
            duration = max(duration, self._seconds.pop()[1])
        self._seconds.append((second, duration))
        self._forget(now)

    def until(self, now: Micros) -> Micros:
        """Return the longest one, 0 if there was none."""
        self._forget(now)
        return max((duration for _, duration in self._seconds), default=0)

    def _forget(self, now: Micros) -> None:
        while self._seconds and self._seconds[0][0] * SECOND <= now - LOOKED_BACK:
            self._seconds.popleft()


def fingerprint_of(entries: Iterable[tuple[str, str, str]]) -> str:
    """Return a short text that is the same exactly where all entries are; they come sorted."""
    text = json.dumps(list(entries), ensure_ascii=True)
    return hashlib.blake2s(text.encode(), digest_size=6).hexdigest()


def _release() -> str:
    try:
        return version("celery-redlock-beat")
    except PackageNotFoundError:  # run from a folder, without being installed
        return "unknown"


def _left_out(names: list[str], number: int) -> str:
    if not names:
        return ""
    return f"left out as bad: {listed([*map(repr, names)], MOST_NAMES_IN_WORDS, number)}"


def _fitting(record: dict[str, Any]) -> str:
    """Return a record as JSON in ASCII, without the last names and problems if it is too long."""
    names, problems = list(record["bad_names"]), list(record["problems"])
    while True:
        text = json.dumps({**record, "bad_names": names, "problems": problems})
        if len(text) <= MOST_BYTES or not (names or problems):
            return text
        (names or problems).pop()
