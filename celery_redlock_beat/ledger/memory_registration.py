"""How entries become known to a ledger in this process: what ``register.lua`` does, one by one.

It knows nothing of what is stored but under which revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import MAY_MISS, Record
from celery_redlock_beat.ledger.memory_server import MINUTE, NOBODY, Mark, Open
from celery_redlock_beat.ledger.steering import Kind
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from celery_redlock_beat.ledger import Registration
    from celery_redlock_beat.ledger.memory_call import Call
    from celery_redlock_beat.ticks import Micros


def register(call: Call, asked: Registration) -> Record | None:
    """Make an entry known, and answer its record, unless it is stored under another revision."""
    server, entry = call.server, asked.entry
    if asked.revision is not None and server.changes.get((Kind.ENTRY, entry)) != asked.revision:
        return None
    record = server.marks.get(entry)
    if record is None:
        record = make_known(call, asked, _known_from(call, asked))
    elif (
        asked.again
        or (asked.revision is None and server.was_missing(entry, MAY_MISS))
        or record.fingerprint not in (asked.fingerprint, "")
    ):
        make_known_anew(record, asked.fingerprint, _known_from(call, asked))
    else:
        record.fingerprint = asked.fingerprint
    server.present[entry] = call.now
    return record_of(entry, record)


def make_known(call: Call, asked: Registration, since: Micros) -> Mark:
    """Begin a record: nothing from before an instant is sent."""
    now, entry = call.now, asked.entry
    record = Mark(0 if asked.once else since, since, 0, 0, asked.fingerprint)
    call.server.marks[entry] = record
    if asked.run_on_start:
        tick, fence = Tick(entry, now), call.server.next_fence(now)
        call.server.grants[tick] = Open(NOBODY, fence, 0, record.mark)
        call.server.open[tick] = now
        record.mark, record.runs = now, 1
    return record


def make_known_anew(record: Mark, fingerprint: str, since: Micros) -> None:
    """Have a changed timetable catch up nothing from before an instant; the mark stays."""
    record.since, record.fingerprint = max(record.since, since), fingerprint


def _known_from(call: Call, asked: Registration) -> Micros:
    """Return from when on an entry counts: from when it was stored, if that is not long ago."""
    stored = asked.revision
    return min(call.now, stored) if stored and call.now - stored <= MINUTE else call.now


def record_of(entry: str, mark: Mark) -> Record:
    """Return a record as it is told."""
    return Record(entry, mark.mark, mark.since, mark.fence, mark.runs, mark.fingerprint)
