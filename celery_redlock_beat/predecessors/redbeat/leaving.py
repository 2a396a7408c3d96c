"""What RedBeat has to hear of an entry to go on where we stopped; it writes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.predecessors.redbeat.backward import definition_of
from celery_redlock_beat.predecessors.redbeat.records import timetable
from celery_redlock_beat.predecessors.redbeat.writing import Written, meta_of, score_of
from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from celery_redlock_beat.ledger.steering import Look
    from celery_redlock_beat.predecessors.redbeat.records import Record
    from celery_redlock_beat.ticks import Micros, Timetable
    from celery_redlock_beat.timetables.zones import Zone

UNKNOWN = "no node has begun to count it: RedBeat counts from now on"
UNREADABLE = "what the ledger has of it cannot be read: see celery redlock doctor"
LATER = "RedBeat ran it later than we did, and goes on from there"
PAUSED = "it is paused here: RedBeat has it disabled"


@dataclass(frozen=True, slots=True)
class Leaving:
    """An entry to write for RedBeat, or the ``problem`` why it is not; ``notes`` are for people."""

    name: str
    written: Written | None = None
    last_run: datetime | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()


def leaving_of(
    document: Mapping[str, Any],
    look: Look,
    theirs: Record | None,
    zone: Zone,
    *,
    is_static: bool = False,
) -> Leaving:
    """Return what RedBeat has to hear of the entry of a document.

    ``look`` is what the ledger knows of it, ``theirs`` what RedBeat has of it by now, ``zone`` the
    app's. ``is_static`` tells that it is in ``beat_schedule``.
    """
    name = look.entry
    try:
        definition = definition_of(name, document, zone, look.now)
        table = timetable(name, document, zone)
    except EntryError as error:
        return Leaving(name, problem=error.problem)
    except ConfigurationError as problem:
        return Leaving(name, problem=str(problem))
    if look.unreadable:
        return Leaving(name, problem=UNREADABLE)
    data, notes = dict(definition.data), [*definition.notes, *_remarks(look)]
    if look.pause and not look.pause.is_over(look.now):
        data["enabled"] = False
        notes.append(PAUSED)
    at, runs = _stand(look, table), look.record.runs if look.record else 0
    if theirs is not None:
        runs = _runs(look, theirs, runs)
        if theirs.last_run_at is not None and to_micros(theirs.last_run_at) > at:
            at = to_micros(theirs.last_run_at)
            notes.append(LATER)
    written = Written(
        name, json.dumps(data), meta_of(at, runs, zone), score_of(table, at, look.now), is_static
    )
    return Leaving(name, written, to_datetime(at), notes=tuple(notes))


def _stand(look: Look, table: Timetable) -> Micros:
    """Return up to when we have sent it; of an interval, the last of its instants until then.

    RedBeat goes on with one period after that, and never has one that it would send at once.
    """
    record, mark = look.record, look.settled
    if not isinstance(table, Interval):
        return mark
    if record is not None and not table.phase:
        table = table.going_on(record.fingerprint)
    return table.latest_until(mark) or mark


def _runs(look: Look, theirs: Record, runs: int) -> int:
    """Return how often it ran: what both have counted, where ours began after theirs ended."""
    ran, record = theirs.last_run_at, look.record
    if ran is None or record is None:
        return max(theirs.total_run_count, runs)
    is_first = to_micros(ran) <= record.since
    return theirs.total_run_count + runs if is_first else max(theirs.total_run_count, runs)


def _remarks(look: Look) -> list[str]:
    remarks = [] if look.record else [UNKNOWN]
    if look.open:
        told = ", ".join(each.tick.instant.isoformat() for each in look.open)
        remarks.append(
            f"its tick {told} is open: nobody knows whether it was sent, and RedBeat sends it; "
            "start a node, and let it finish that first"
        )
    if look.unwanted:
        told = ", ".join(to_datetime(at).isoformat() for at in look.unwanted)
        remarks.append(f"RedBeat does not skip {told}")
    return remarks
