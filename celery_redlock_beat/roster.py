"""Which entries there are just now, in the dicts that users change in place; it sends nothing."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from celery_redlock_beat.due import Policy, Slot
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import timetable_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from celery import Celery

    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.settings import Settings

SLICE = 1000
"""Entries compared per pass: 10,000 within 5 s at the default poll."""

logger = logging.getLogger(__name__)


class _Known(NamedTuple):
    entry: RedlockEntry
    schedule: Any
    slot: Slot | None


class Roster:
    """Keep a node in step with the schedule, entry by entry; a bad one does not stop the others."""

    def __init__(
        self,
        app: Celery,
        settings: Settings,
        put: Callable[[Slot], None],
        discard: Callable[[str], None],
    ) -> None:
        self.app = app
        self.settings = settings
        self.faults: dict[str, str] = {}
        self.must_compare_all = True
        self._put = put
        self._discard = discard
        self._known: dict[str, _Known] = {}
        self._round: Iterator[str] = iter(())

    def entry_of(self, name: str) -> RedlockEntry | None:
        """Return the entry if it can be sent, or ``None``."""
        known = self._known.get(name)
        return known.entry if known and known.slot else None

    def slots(self) -> list[Slot]:
        """Return the place in the queue of every entry that can be sent."""
        return [known.slot for known in self._known.values() if known.slot]

    def compare(self, schedule: Mapping[str, RedlockEntry]) -> None:
        """Take in what changed since the last time: all of it when told so, else a slice."""
        if self.must_compare_all or len(schedule) != len(self._known):
            self.must_compare_all = False
            names: Iterable[str] = {**self._known, **schedule}
        else:
            names = self._next_slice(schedule)
        for name in names:
            self._compare_one(name, schedule.get(name))

    def _next_slice(self, schedule: Mapping[str, RedlockEntry]) -> list[str]:
        names = list(islice(self._round, SLICE))
        if not names:
            self._round = iter(list({**self._known, **schedule}))
        return names

    def _compare_one(self, name: str, entry: RedlockEntry | None) -> None:
        if entry is None:
            if self._known.pop(name, None):
                self.faults.pop(name, None)
                self._discard(name)
            return
        known = self._known.get(name)
        is_same = known and known.entry is entry and known.schedule is entry.schedule
        if known and is_same and known.slot is None:
            return  # still as bad as it was
        slot = self._slot_of(name, entry)
        if not (known and slot and known.slot and _same(known.slot, slot)):
            self._discard(name) if slot is None else self._put(slot)
        else:
            slot = known.slot
        self._known[name] = _Known(entry, entry.schedule, slot)

    def _slot_of(self, name: str, entry: RedlockEntry) -> Slot | None:
        try:
            timetable = timetable_for(entry.schedule, self.app)
        except Exception as exc:  # noqa: BLE001 - schedules are user code: the others must go on
            self.fault(EntryError(name, str(exc)))
            return None
        self.faults.pop(name, None)
        return Slot(name, timetable, self._policy(entry))

    def fault(self, error: EntryError) -> None:
        """Leave an entry out: say so once, or end the start if the settings are strict."""
        if self.settings.strict:
            raise error
        if self.faults.get(error.entry) != error.problem:
            self.faults[error.entry] = error.problem
            logger.error("Left out: %s", error)

    def _policy(self, entry: RedlockEntry) -> Policy:
        settings = self.settings
        deadline = settings.cron_starting_deadline
        is_cron = hasattr(entry.schedule, "minute") or hasattr(entry.schedule, "expression")
        return Policy(
            catch_up=getattr(entry, "catch_up", None) or settings.catch_up,
            window=int(settings.catch_up_window * SECOND),
            grace=int(deadline * SECOND) if is_cron and deadline is not None else None,
            tolerance=int(2 * settings.lease * SECOND),
        )


def _same(one: Slot, other: Slot) -> bool:
    return one.timetable == other.timetable and one.policy == other.policy
