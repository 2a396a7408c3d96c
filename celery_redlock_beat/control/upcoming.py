"""The ticks that are to come, of several entries in one order; it asks nobody."""

from __future__ import annotations

import heapq
import logging
from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.describing import next_after
from celery_redlock_beat.control.views import Upcoming
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from celery_redlock_beat.control.known import Known
    from celery_redlock_beat.control.selection import Found
    from celery_redlock_beat.ledger.steering import Look
    from celery_redlock_beat.ticks import Micros

logger = logging.getLogger(__name__)


def to_come(found: Sequence[Found], number: int, begin: Micros | None) -> list[Upcoming]:
    """Return so many ticks, from an instant or the ledger's now on, in the order they are due."""
    each = (_as_long_as_it_works(_of(one.known, one.look, begin)) for one in found)
    merged = heapq.merge(*each, key=lambda upcoming: (upcoming.due, upcoming.entry))
    return list(islice(merged, max(number, 0)))


def _as_long_as_it_works(ticks: Iterator[Upcoming]) -> Iterator[Upcoming]:
    try:
        yield from ticks
    except Exception:  # a timetable may be the user's own; that entry is shown as bad
        logger.debug("A timetable failed", exc_info=True)


def _of(known: Known, look: Look, begin: Micros | None) -> Iterator[Upcoming]:
    slot = known.slot
    if slot is None or isinstance(slot.timetable, Opaque) or not slot.policy.enabled:
        return
    record = look.record
    after = max((look.now if begin is None else begin) - 1, record.mark if record else 0)
    left = None
    if slot.policy.max_runs is not None:
        left = slot.policy.max_runs - (record.runs if record else 0)
    at = next_after(slot, after)
    while at is not None and (left is None or left > 0):
        held = _held(look, at)
        if left is not None and not held:
            left -= 1
        yield Upcoming(moment(at), moment(slot.due_at(at)), known.name, known.task, held)
        at = next_after(slot, at)


def _held(look: Look, at: Micros) -> str:
    """Return why a tick is not sent, or an empty text."""
    if look.pause and (look.pause.until is None or at <= look.pause.until):
        return "paused"
    return "skip" if at in look.unwanted else ""
