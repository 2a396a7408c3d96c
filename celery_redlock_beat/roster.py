"""Which entries there are just now, in the dicts that users change in place; it sends nothing."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from celery_redlock_beat.entry_checks import check_entry, doubts_about, is_storable
from celery_redlock_beat.entry_terms import check_policies, doubts_about_time, policy_of, terms_of
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.lateness import Slot
from celery_redlock_beat.policies import policies_of, said_by
from celery_redlock_beat.ticks import shown
from celery_redlock_beat.timetables import KINDS, Opaque, opaque_for, timetable_for
from celery_redlock_beat.timetables.asked import Asked, own_is_due

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from celery import Celery

    from celery_redlock_beat.entries import RedlockEntry
    from celery_redlock_beat.settings import Settings
    from celery_redlock_beat.ticks import Timetable
    from celery_redlock_beat.timetables import Terms
    from celery_redlock_beat.timetables.asked import IsDue

SLICE = 1000
"""Entries compared per pass: 10,000 within 5 s at the default poll."""

logger = logging.getLogger(__name__)


class _Known(NamedTuple):
    entry: RedlockEntry
    schedule: Any
    terms: Terms | None
    slot: Slot | None
    signs: tuple[Any, ...]

    def looks_like(self, entry: RedlockEntry) -> bool:
        """Whether nothing seems to have changed; far cheaper than a timetable to compare."""
        return self.slot is not None and self.entry is entry and self.signs == _signs(entry)


class Roster:
    """Keep a node in step with the schedule, entry by entry; a bad one does not stop the others.

    ``starting`` holds until the scheduler has started: only so long may a bad entry end it.
    ``changed`` is called when an entry of the schedule is another, or gone.
    ``is_due`` is the scheduler's own, where a subclass decides there what is due.
    """

    def __init__(
        self,
        app: Celery,
        settings: Settings,
        put: Callable[[Slot], None],
        discard: Callable[[str], None],
        is_due: IsDue | None = None,
    ) -> None:
        self.app = app
        self.settings = settings
        self.starting = True
        self.faults: dict[str, str] = {}
        self.must_compare_all = True
        self.changed: Callable[[], None] = lambda: None
        self._put = put
        self._discard = discard
        self._is_due = is_due
        self._known: dict[str, _Known] = {}
        self._doubted: dict[str, set[str]] = {}
        self._round: Iterator[str] = iter(())

    def entry_of(self, name: str) -> RedlockEntry | None:
        """Return the entry if it can be sent, or ``None``."""
        known = self._known.get(name)
        return known.entry if known and known.slot and known.slot.policy.enabled else None

    def slots(self) -> list[Slot]:
        """Return the place in the queue of every entry that is good, also of a disabled one."""
        return [known.slot for known in self._known.values() if known.slot]

    def facts(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, fingerprint, and task of every entry that is good, as nodes tell of them."""
        for slot in self.slots():
            entry = self.entry_of(slot.name)
            yield slot.name, slot.own_fingerprint, str(entry.task) if entry else ""

    def compare(self, schedule: Mapping[str, RedlockEntry]) -> None:
        """Take in what changed since the last time: all of it when told so, else a slice."""
        if self.must_compare_all or len(schedule) != len(self._known):
            self.must_compare_all = False
            names: Iterable[str] = {**self._known, **schedule}
        else:
            names = filter(self._may_differ(schedule), self._next_slice(schedule))
        for name in names:
            self._compare_one(name, schedule.get(name))

    def compare_some(self, schedule: Mapping[str, RedlockEntry], names: Iterable[str]) -> None:
        """Take in what changed of these entries, and look at no other one."""
        for name in names:
            self._compare_one(name, schedule.get(name))

    def take(self, name: str, entry: RedlockEntry | None, revision: int | None = None) -> None:
        """Take in one entry as it is from now on, stored under a revision; ``None``: it is gone."""
        known = self._known.pop(name, None)
        if entry is None:
            if known:
                self._discard(name)
            return
        slot, terms = self._slot_of(name, entry, known)
        if slot:
            slot.revision = revision
            self._put(slot)
        elif known:
            self._discard(name)
        self._known[name] = _Known(entry, entry.schedule, terms, slot, ())

    def _may_differ(self, schedule: Mapping[str, RedlockEntry]) -> Callable[[str], bool]:
        def differs(name: str) -> bool:
            known, entry = self._known.get(name), schedule.get(name)
            return not (known and entry and known.looks_like(entry))

        return differs

    def _next_slice(self, schedule: Mapping[str, RedlockEntry]) -> list[str]:
        names = list(islice(self._round, SLICE))
        if len(names) < SLICE:
            self._round = iter({**self._known, **schedule})
            names += islice(self._round, SLICE - len(names))
        return names

    def _compare_one(self, name: str, entry: RedlockEntry | None) -> None:
        if entry is None:
            known = self._known.pop(name, None)
            self._doubted.pop(name, None)
            if known:
                self._discard(name)
                self.changed()
            if known and known.slot is None:
                self.faults.pop(name, None)
            return
        known = self._known.get(name)
        slot, terms = self._slot_of(name, entry, known)
        if not (known and slot and known.slot and _same(known.slot, slot)):
            self._discard(name) if slot is None else self._put(slot)
        else:
            slot = known.slot
        schedule, signs = getattr(entry, "schedule", None), _signs(entry)
        if known is None or known.entry is not entry or known.signs != signs:
            self.changed()
        self._known[name] = _Known(entry, schedule, terms, slot, signs)

    def _slot_of(
        self, name: str, entry: RedlockEntry, known: _Known | None
    ) -> tuple[Slot | None, Terms | None]:
        try:
            slot, terms, doubts = slot_of(
                name, entry, self.settings, lambda terms: self._timetable(entry, terms, known)
            )
            self._doubt(name, doubts)
        except EntryError as exc:
            self.fault(exc)
        except Exception as exc:  # noqa: BLE001 - schedules are user code: the others must go on
            self.fault(EntryError(name, str(exc)))
        else:
            self.faults.pop(name, None)
            if known and known.slot:
                slot.go_on(known.slot.fingerprint)
            return slot, terms
        return None, None

    def _doubt(self, name: str, doubts: list[str]) -> None:
        """Say once what is allowed, and hardly meant."""
        for doubt in set(doubts) - self._doubted.get(name, set()):
            logger.warning("entry %s: %s", shown(name), doubt)
        if doubts:
            self._doubted[name] = set(doubts)
        else:
            self._doubted.pop(name, None)

    def _timetable(
        self, entry: RedlockEntry, terms: Terms, known: _Known | None
    ) -> Timetable | Opaque:
        is_due = self._is_due or own_is_due(entry)
        if known and known.slot and isinstance(known.slot.timetable, Opaque):
            is_asked = isinstance(known.slot.timetable.schedule, Asked)
            same_entry = known.entry is entry or not is_asked
            same_time = known.schedule is entry.schedule and known.terms == terms
            # Equal only to itself: made anew, it would look like a change.
            if same_entry and same_time and is_asked == bool(is_due):
                return known.slot.timetable
        if is_due:
            return opaque_for(Asked(entry, is_due), self.app, terms)
        return timetable_for(entry.schedule, self.app, terms)

    def fault(self, error: EntryError) -> None:
        """Leave an entry out: say so once, or end the start if the settings are strict."""
        if self.settings.strict and self.starting:
            raise error
        if self.faults.get(error.entry) != error.problem:
            self.faults[error.entry] = error.problem
            logger.error("Left out: %s", error)


def slot_of(
    name: str,
    entry: RedlockEntry,
    settings: Settings,
    timetable_for_terms: Callable[[Terms], Timetable | Opaque],
) -> tuple[Slot, Terms, list[str]]:
    """Return an entry as the due queue knows it, on what that depends, and doubts about it.

    Raises:
        EntryError: It could not be sent, or not as it is meant.
        ConfigurationError: Its schedule or a policy cannot be.
    """
    check_entry(name, entry)
    if getattr(entry.schedule, "begins_when_made", False):
        raise EntryError(
            name,
            "its rule has no dtstart, so that it would begin on each node when that starts: give "
            "it one",
        )
    policies = policies_of(entry)
    terms = terms_of(name, policies, settings)
    timetable = timetable_for_terms(terms)
    _check_fingerprint(name, timetable)
    check_policies(name, entry, policies, timetable)
    policy = policy_of(entry, policies, settings)
    doubts = [*doubts_about(entry), *doubts_about_time(entry, policies, policy)]
    slot = Slot(name, timetable, policy)
    slot.takes_phase = policies.phase is None and slot.period is not None
    return slot, terms, doubts


def _check_fingerprint(name: str, timetable: Timetable | Opaque) -> None:
    # A timetable may be the user's own; one that Redis cannot take would stop all the others.
    # Ours are not asked: that costs more than all the rest here.
    if type(timetable) not in KINDS and not is_storable(timetable.fingerprint):
        raise EntryError(name, "the fingerprint of its timetable must be a text")


def _signs(entry: RedlockEntry) -> tuple[Any, ...]:
    schedule = getattr(entry, "schedule", None)
    shown = (getattr(entry, "task", None), said_by(entry), id(schedule))
    return *shown, dict(getattr(schedule, "__dict__", {}))


def _same(one: Slot, other: Slot) -> bool:
    return one.timetable == other.timetable and one.policy == other.policy
