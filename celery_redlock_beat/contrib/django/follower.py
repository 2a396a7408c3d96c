"""How a node keeps in step with the tables: when it looks, and what it does while they are away.

It waits for no database longer than a moment, and raises none of its errors.
"""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, NamedTuple

from celery_redlock_beat.contrib.django.errands import Errands
from celery_redlock_beat.contrib.django.tables import in_one_line
from celery_redlock_beat.contrib.django.visits import AWAY, Visit
from celery_redlock_beat.contrib.django.writing import Owed
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.contrib.django.drafts import Draft
    from celery_redlock_beat.contrib.django.errands import Done
    from celery_redlock_beat.contrib.django.reading import News
    from celery_redlock_beat.contrib.django.visits import Visits
    from celery_redlock_beat.errors import EntryError

LOOK_EVERY = 0.5
"""Seconds between two looks, at least."""
SHORTEST = 0.01
WRITE_EVERY = 1.0
MOMENT = 0.1
"""Seconds that a pass waits for a look: an answer usually takes some milliseconds."""
START_PATIENCE = 15.0
"""Seconds that the start waits for the first look."""
LAST_MOMENT = 2.0
"""Seconds that the end waits for what is still to be written."""
LONGEST_BACK_OFF = 5.0
SILENT_AFTER = 5.0
"""Seconds without an answer after which the database counts as away."""
MOST_NAMED = 5
UNWRITTEN = (
    "The last runs of rows are not written to the tables, %d of them: %s%s. Nodes know them from "
    "the ledger; django-celery-beat would send these again, unless a node sends each once more."
)

logger = logging.getLogger(__name__)


class Trouble:
    """Something that fails over and over, and is told once, and once more when it is over."""

    def __init__(self, told: str, over: str) -> None:
        self._told = told
        self._over = over
        self._since: float | None = None
        self._kind: type | None = None
        self.failures = 0

    def learn(self, error: Exception | None) -> None:
        """Learn how it went this time."""
        if error is None:
            if self._since is not None:
                logger.warning(self._over, time.monotonic() - self._since)
            self._since, self._kind, self.failures = None, None, 0
            return
        if self._since is None:
            self._since = time.monotonic()
        if self._kind is not type(error):
            trace = None if isinstance(error, (*AWAY, Silent)) else error
            logger.error(self._told, in_one_line(error), exc_info=trace)
        self._kind = type(error)
        self.failures += 1

    @property
    def pause(self) -> float:
        """Seconds to wait before it is tried again, more with each failure."""
        longest = min(LONGEST_BACK_OFF, LOOK_EVERY * 2.0 ** min(self.failures, 8))
        return random.uniform(longest / 2, longest)  # noqa: S311 - jitter, not a secret


class Silent(Exception):
    """The database has not answered by now."""


class Heard(NamedTuple):
    """What a look brought: changed rows, and entries of the code that could not be written."""

    news: News | None
    faults: Sequence[EntryError]


NOTHING = Heard(None, ())


class Follower:
    """Send visits to the database, and hear what came of them."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        self._errands = Errands(visits.leave)
        self._owed = Owed()
        self._under_way: Owed | None = None
        self._look_at = self._write_at = self._sent_at = 0.0
        self._is_silent = False
        self._reading = Trouble(
            "The tables cannot be read, and the schedule stays as it was last known: %s",
            "The tables can be read again after %.1f s.",
        )
        self._writing = Trouble(
            "Last runs cannot be written to the tables; they are kept, and written later: %s",
            "Last runs can be written again after %.1f s.",
        )

    @property
    def is_away(self) -> bool:
        """Whether the last visit failed to read the tables, or is not back."""
        return self._errands.busy or self._reading.failures > 0

    @property
    def wait(self) -> float:
        """Seconds until it is time to look again."""
        return min(LOOK_EVERY, max(SHORTEST, self._look_at - time.monotonic()))

    def begin(self, drafts: Sequence[Draft]) -> Heard:
        """Write rows and read all, patiently; it goes on without an answer, and hears it later."""
        self._send(lambda: self._visits.begin(drafts))
        self._look_at = time.monotonic() + LOOK_EVERY
        heard = self._hear(START_PATIENCE)
        self._tell_silence(0)
        return heard

    def follow(self) -> Heard:
        """Return what is new; look at the tables if it is time."""
        heard, now = self._hear(0), time.monotonic()
        self._tell_silence(SILENT_AFTER)
        if heard is not NOTHING or self._errands.busy or now < self._look_at:
            return heard
        was_away = self.is_away
        self._look_at = now + LOOK_EVERY
        if self._owed and now >= self._write_at:
            self._under_way, self._owed = self._owed, Owed()
            self._write_at = now + WRITE_EVERY
        under_way = self._under_way
        self._send(lambda: self._visits.visit(under_way))
        return self._hear(0 if was_away else MOMENT)

    def sent(self, name: str, at: dt.datetime) -> None:
        """Note a run, to be written."""
        self._owed.sent(name, at)

    def ended(self, name: str, saved: dt.datetime) -> None:
        """Note that a row has run for good, to be written at once."""
        self._owed.ended(name, saved)
        self._write_at = 0.0

    def close(self) -> None:
        """Write what is still owed, if that is quick, and let go of the database."""
        until = time.monotonic() + LAST_MOMENT
        self._hear(LAST_MOMENT)
        if self._owed and not self._errands.busy:
            owed = self._under_way = self._owed
            self._owed = Owed()
            self._send(lambda: self._visits.flush(owed))
            self._hear(until - time.monotonic())
        self._errands.end(max(0.0, until - time.monotonic()))
        self._tell_unwritten()

    def _tell_unwritten(self) -> None:
        if self._under_way:
            self._owed.add(self._under_way)
        names = sorted({*self._owed.last, *self._owed.over})
        if names:
            some = ", ".join(map(shown, names[:MOST_NAMED]))
            logger.warning(UNWRITTEN, len(names), some, ", …" * (len(names) > MOST_NAMED))
        self._owed, self._under_way = Owed(), None

    def _send(self, job: Callable[[], Visit]) -> None:
        self._sent_at, self._is_silent = time.monotonic(), False
        self._errands.send(job)

    def _tell_silence(self, patience: float) -> None:
        """Count it as a failure, once, that an errand is not back after so many seconds."""
        waited = time.monotonic() - self._sent_at
        if self._errands.busy and not self._is_silent and waited >= patience:
            self._is_silent = True
            self._reading.learn(Silent(f"the database has not answered for {waited:.0f} s"))

    def _hear(self, patience: float) -> Heard:
        done = self._errands.back(patience)
        return NOTHING if done is None else self._learn(done)

    def _learn(self, done: Done) -> Heard:
        visit = done.value if isinstance(done.value, Visit) else Visit()
        if isinstance(done.error, Exception):
            visit.unread, visit.owed = done.error, self._under_way
        wrote, self._under_way = self._under_way, None
        self._reading.learn(visit.unread)
        if wrote:
            self._writing.learn(visit.unwritten)
        if visit.owed:
            self._owed.add(visit.owed)
            self._write_at = time.monotonic() + self._writing.pause
        if visit.unread:
            self._look_at = time.monotonic() + self._reading.pause
        return Heard(visit.news, visit.faults)
