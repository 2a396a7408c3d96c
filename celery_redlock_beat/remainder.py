"""What of an entry ends unsent at an instant, counted with its timetable; it asks nobody.

The ledger cannot count ticks: whoever ends a pause or an entry counts them and tells it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger.steering import Ending, Remainder
from celery_redlock_beat.ticks import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ledger import Record
    from celery_redlock_beat.ledger.steering import Look
    from celery_redlock_beat.ticks import Micros


def remainder(
    look: Look, slot: Slot | None, reason: Reason, upto: Micros, *, held: bool
) -> Remainder | None:
    """Return what is due up to an instant and neither sent nor skipped, or ``None``.

    There is none without a record that can be read: nobody knows from when on to count. Ticks count
    by their nominal instants: those before the entry was known as before registration, the others
    by ``reason``. Without a ``slot``, or where the schedule alone knows what is due, none are
    counted.

    ``held``: also the open ticks end that somebody holds and may be sending; else only those whose
    lease is over.
    """
    if look.record is None:
        return None
    known = replace(slot, since=look.record.since) if slot else None
    endings = [
        Ending(each.tick.at, each.fence, _passed(known, each.previous, each.tick.at))
        for each in look.open
        if held or each.deadline <= look.now
    ]
    return Remainder(look.record.mark, upto, _due(known, look.record, reason, upto), endings)


def _due(slot: Slot | None, record: Record, reason: Reason, upto: Micros) -> dict[Reason, int]:
    """Count by reason the ticks after the mark and up to an instant."""
    if slot is None or upto <= record.mark or _is_idle(slot, record):
        return {}
    counts: dict[Reason, int] = {}
    for told, number in _passed(slot, record.mark, upto + 1).items():
        kept = told if told is Reason.BEFORE_REGISTRATION else reason
        counts[kept] = counts.get(kept, 0) + number
    return counts


def _is_idle(slot: Slot, record: Record) -> bool:
    """Whether nothing of it is due any more: it is disabled, or has run as often as it may."""
    limit = slot.policy.max_runs
    return not slot.policy.enabled or (limit is not None and record.runs >= limit)


def _passed(slot: Slot | None, previous: Micros, tick: Micros) -> Mapping[Reason, int]:
    return slot.passed_over(previous, tick).counts if slot else {}
