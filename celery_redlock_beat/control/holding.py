"""Hold entries back, let them go on, and skip single ticks; it changes no entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.control.checks import check_text, end_of, instant_of
from celery_redlock_beat.control.describing import next_after
from celery_redlock_beat.errors import ControlError, EntryError, TickRefused
from celery_redlock_beat.ledger.steering import Resumption, Skipping, Steered
from celery_redlock_beat.remainder import remainder
from celery_redlock_beat.ticks import Reason, Tick, shown, to_datetime
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue
    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.ledger.steering import Look, Remainder
    from celery_redlock_beat.ticks import Micros

REFUSALS = {
    Skipping.OPEN: "it is being sent just now",
    Skipping.SETTLED: "it was sent or skipped already",
    Skipping.MISSING: "no node has made the entry known to the ledger yet; start one",
}


class Holding:
    """Pause, resume, skip."""

    def __init__(self, access: Access, catalogue: Catalogue) -> None:
        self._access = access
        self._catalogue = catalogue

    def pause(self, found: Sequence[Found], note: str, until: datetime | timedelta | None) -> None:
        """Hold entries back from now on, for ever or until an instant.

        Raises:
            ControlError: That instant cannot be.
        """
        check_text("note", note)
        names = [each.name for each in found]
        ends = None if until is None else end_of(until, self._access.now())
        steering, who = self._access.steering, self._access.who
        self._access.patiently(lambda: steering.pause(names, note, who, ends))

    def resume(self, found: Sequence[Found], note: str, *, catch_up: bool) -> set[str]:
        """Let entries go on; return the names of those whose pauses were ended by this.

        Raises:
            EntryError: A timetable failed, so that nobody can count what was due.
            ControlError: One changed so fast that it was given up.
        """
        check_text("note", note)
        resuming = _Resuming(self._access, self._catalogue, note, catch_up=catch_up)
        names = [each.name for each in found if each.look.pause]
        for name in self._access.carry_out(names, resuming.prepare, resuming.ask):
            raise ControlError(f"entry {shown(name)!r} changes all the time: try again")
        return resuming.ended

    def skip(self, found: Found, tick: datetime, note: str) -> None:
        """Have one tick skipped when it is claimed.

        Raises:
            TickRefused: It is none, or it is too late.
        """
        check_text("note", note)
        at, name = instant_of(tick, "the tick"), found.name
        _check_tick(found, at)
        if at in found.look.unwanted:
            return
        steering = self._access.steering
        (answer,) = self._access.patiently(lambda: steering.skip([Tick(name, at)], note))
        if answer is not Skipping.DONE:
            raise TickRefused(
                f"entry {shown(name)!r}: {to_datetime(at).isoformat()} cannot be skipped: "
                f"{_refusal(answer, found.look, at)}"
            )


class _Resuming:
    """One deed: which pauses end, and with what counted."""

    def __init__(self, access: Access, catalogue: Catalogue, note: str, *, catch_up: bool) -> None:
        self._access = access
        self._catalogue = catalogue
        self._note = note
        self._catch_up = catch_up
        self._unknown: set[str] = set()
        self.ended: set[str] = set()

    def prepare(self, look: Look) -> Iterator[Resumption]:
        """Yield what is asked for an entry that is paused."""
        if look.pause is None:
            return
        revision, pause = look.pause.revision, look.pause
        if look.entry in self._unknown:
            # Somebody wrote it by hand, so that the ledger knows no revision of it.
            (revision,) = self._access.steering.pause(
                [look.entry], pause.note, pause.who or self._access.who, pause.until
            )
        yield Resumption(look.entry, revision, self._remainder(look), self._note)

    def ask(self, rows: list[Resumption]) -> list[Steered]:
        """Ask, and note what was ended, and the pauses that the ledger has no revision of."""
        answers = self._access.steering.resume(rows)
        self.ended |= {each.entry for each in answers if each.done}
        self._unknown |= {each.entry for each in answers if not each.done and not each.revision}
        return answers

    def _remainder(self, look: Look) -> Remainder | None:
        if self._catch_up or look.pause is None:
            return None
        known, until = self._catalogue.of(look), look.pause.until
        upto = look.now if until is None else min(look.now, until)
        try:
            return remainder(look, known.slot if known else None, Reason.PAUSED, upto, held=False)
        except Exception as exc:  # a timetable may be the user's own
            raise EntryError(
                look.entry,
                f"its timetable failed, so that nobody can count what was due: {exc!r}; correct "
                "it, or resume it with catch_up",
            ) from exc


def _refusal(answer: Skipping, look: Look, at: Micros) -> str:
    if answer is Skipping.SETTLED and look.record and at <= look.record.since:
        since = to_datetime(look.record.since).isoformat()
        return f"it was due before the entry, or its present schedule, was known: {since}"
    return REFUSALS[answer]


def _check_tick(found: Found, at: Micros) -> None:
    slot = found.known.slot
    if slot is None:
        raise EntryError(found.name, found.known.problem)
    if isinstance(slot.timetable, Opaque):
        raise TickRefused(
            f"entry {shown(found.name)!r}: only its schedule knows when it is due, so that no tick "
            "can be named before; pause it instead"
        )
    if next_after(slot, at - 1) != at:
        following = next_after(slot, max(at, found.look.now))
        told = f"the next one is {to_datetime(following).isoformat()}" if following else ""
        raise TickRefused(
            f"entry {shown(found.name)!r}: {to_datetime(at).isoformat()} is no tick of it; "
            f"{told or 'there are none later'}"
        )
