"""Let entries begin where another scheduler stopped; it stores none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from celery_redlock_beat.claims import registration_of
from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.checks import check_text, instant_of
from celery_redlock_beat.control.views import Seeded
from celery_redlock_beat.host import LastRun
from celery_redlock_beat.ledger.steering import Seeding as Answer
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.known import Catalogue
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger import Record
    from celery_redlock_beat.ledger.steering import Look
    from celery_redlock_beat.ticks import Micros

UNKNOWN = "there is no such entry, neither in the code nor stored"
CLAIMED = (
    "it stays as it is: a tick of it was claimed already, or a node lives that has begun to count "
    "it; stop the nodes first"
)
SENT_SINCE = ", and since the other scheduler has sent it later than that, say --again"
CHANGED = "it was changed meanwhile; try again"


class Seeding:
    """Write where other schedulers stopped."""

    def __init__(self, access: Access, catalogue: Catalogue) -> None:
        self._access = access
        self._catalogue = catalogue

    def seed(
        self, last_runs: Mapping[str, datetime], note: str, *, again: bool, dry_run: bool
    ) -> list[Seeded]:
        """Let entries begin after their last runs; one that cannot does not stop the others."""
        check_text("note", note)
        given = {name: instant_of(at, "a last run") for name, at in last_runs.items()}
        self._access.await_whole()
        now = self._access.now()  # no clock but that one counts
        runs = {name: LastRun(min(at, now), again) for name, at in given.items()}
        self._catalogue.follow()
        known = {look.entry: self._found(look) for look in self._access.looks(list(runs))}
        good = {name: slot for name, (slot, _) in known.items() if slot}
        asked = [registration_of(slot, last_run=runs[name]) for name, slot in good.items()]
        answers = self._access.steering.seed(asked, note, dry_run=dry_run)
        told = dict(zip(good, answers, strict=True))
        return [
            _seeded(good[name], run.at, *told[name])
            if name in good
            else Seeded(name, "refused", moment(run.at), problem=known[name][1])
            for name, run in runs.items()
        ]

    def last_runs(self) -> dict[str, datetime]:
        """Return where each entry from code stands, if the ledger knows it."""
        self._access.await_whole()
        self._catalogue.follow()
        looks = self._access.looks(list(self._catalogue.code()))
        found = ((look, self._catalogue.of(look)) for look in looks)
        return {
            look.entry: moment(_stand(known.slot, look.settled))
            for look, known in found
            if look.record and known and known.slot
        }

    def _found(self, look: Look) -> tuple[Slot | None, str]:
        """Return an entry as the due queue knows it, or why there is none."""
        known = self._catalogue.of(look)
        return (known.slot, known.problem) if known else (None, UNKNOWN)


def _stand(slot: Slot, mark: Micros) -> Micros:
    """Return the last tick up to a mark of an interval, from which others count; else the mark."""
    if slot.period is None or isinstance(slot.timetable, Opaque):
        return mark
    return slot.timetable.latest_until(mark) or mark


def _seeded(slot: Slot, at: Micros, answer: Answer, record: Record | None) -> Seeded:
    if answer is not Answer.DONE:
        problem = CLAIMED if answer is Answer.CLAIMED else CHANGED
        if problem == CLAIMED and record and record.mark < at:
            problem += SENT_SINCE
        return Seeded(slot.name, "refused", moment(at), problem=problem)
    slot = replace(slot)
    if record and record.since == at:
        slot.go_on(record.fingerprint)
    else:
        slot.go_on_from(at)
    if isinstance(slot.timetable, Opaque):
        return Seeded(slot.name, "seeded", moment(at))
    following = slot.timetable.next_after(at)
    if following is None:
        return Seeded(slot.name, "seeded", moment(at))
    shift = (following - at - slot.period) / SECOND if slot.period else 0.0
    return Seeded(slot.name, "seeded", moment(at), moment(following), shift)
