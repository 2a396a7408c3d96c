"""How entries become known to a ledger in this process: what ``register.lua`` does, one by one.

It knows nothing of what is stored but under which revision.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import HEARTBEAT_ALIVE, MAY_MISS, Record
from celery_redlock_beat.ledger.memory_server import MINUTE, NOBODY, Mark, Open
from celery_redlock_beat.ledger.steering import Kind, Seeding
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from celery_redlock_beat.ledger import Registration
    from celery_redlock_beat.ledger.memory_call import Call
    from celery_redlock_beat.ticks import Micros


def register(call: Call, asked: Registration) -> Record | None:
    """Make an entry known, and answer its record, unless it is stored under another revision."""
    server, entry = call.server, asked.entry
    if _is_stored_otherwise(call, asked):
        return None
    record = server.marks.get(entry)
    fingerprint = with_phase_of(record, asked)
    if begin_at_seed(call, asked):
        pass
    elif record is None:
        make_known(call, asked, _known_from(call, asked))
    elif (
        asked.again
        or (asked.revision is None and server.was_missing(entry, MAY_MISS))
        or record.fingerprint not in (fingerprint, "")
    ):
        make_known_anew(record, fingerprint, _known_from(call, asked))
    else:
        record.fingerprint = fingerprint
    server.present[entry] = call.now
    return record_of(entry, server.marks[entry])


def seed(
    call: Call, asked: Registration, note: str, *, dry_run: bool
) -> tuple[Seeding, Record | None]:
    """Let an entry begin where another scheduler stopped, before a node does it."""
    server, entry = call.server, asked.entry
    if _is_stored_otherwise(call, asked):
        return Seeding.CHANGED, None
    record, at = server.marks.get(entry), asked.seed.at if asked.seed else call.now
    is_there = record is not None and record.since == min(call.now, at)
    done = is_there
    if not done and dry_run:
        done = _way_to_seed(call, asked) is not None
    elif not done and begin_at_seed(call, asked):
        done = True
        server.present[entry] = call.now
        call.note_deed(entry, "seeded", note)
    known = server.marks.get(entry)
    answer = Seeding.DONE if done else Seeding.CLAIMED
    return answer, record_of(entry, known) if known else None


def begin_at_seed(call: Call, asked: Registration) -> bool:
    """Let an entry begin where another scheduler stopped; return whether it does so now."""
    way = _way_to_seed(call, asked)
    if way is None or asked.seed is None:
        return False
    server, entry, at = call.server, asked.entry, min(call.now, asked.seed.at)
    fingerprint = asked.fingerprint
    if asked.seed.phase is not None:
        fingerprint = _going_on(fingerprint, asked.seed.phase)
    record = server.marks.setdefault(entry, Mark(at, at, 0, 0, fingerprint))
    if way == "UNTOUCHED":
        record.mark, record.since, record.fingerprint = at, at, fingerprint
    elif way == "AGAIN":
        opened = [tick.at for tick, _ in server.open_of(entry) if tick.at <= at]
        if opened:
            server.unwanted[entry] = [*server.unwanted.get(entry, ()), *opened]
        record.mark = at
        make_known_anew(record, fingerprint, at)
    server.seeds[entry] = at
    return True


def _way_to_seed(call: Call, asked: Registration) -> str | None:
    """Return how an entry would come to begin at its seed, or None if it stays as it is."""
    if asked.seed is None:
        return None
    server, entry, at = call.server, asked.entry, min(call.now, asked.seed.at)
    record = server.marks.get(entry)
    if record is None:
        return "NEW"
    is_untouched = _was_never_claimed(call, entry, record) and at > server.seeds.get(entry, 0)
    if is_untouched and not _node_lives(call):
        return "UNTOUCHED"
    return "AGAIN" if asked.seed.again and at > record.mark else None


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


def record_of(entry: str, mark: Mark) -> Record:
    """Return a record as it is told."""
    return Record(entry, mark.mark, mark.since, mark.fence, mark.runs, mark.fingerprint)


def _is_stored_otherwise(call: Call, asked: Registration) -> bool:
    stored = call.server.changes.get((Kind.ENTRY, asked.entry))
    return asked.revision is not None and stored != asked.revision


def _known_from(call: Call, asked: Registration) -> Micros:
    """Return from when on an entry counts: from when it was stored, if that is not long ago."""
    stored = asked.revision
    return min(call.now, stored) if stored and call.now - stored <= MINUTE else call.now


def _going_on(fingerprint: str, phase: Micros) -> str:
    return re.sub(r"(interval:\d+)\+0", rf"\g<1>~{phase}", fingerprint, count=1)


def with_phase_of(record: Mark | None, asked: Registration) -> str:
    """Return the fingerprint that goes on with the phase of its seed, if its period does."""
    found = re.search(r"interval:(\d+)~(\d+)", record.fingerprint) if record else None
    if found and asked.takes_phase and f"interval:{found[1]}+0" in asked.fingerprint:
        return _going_on(asked.fingerprint, int(found[2]))
    return asked.fingerprint


def _node_lives(call: Call) -> bool:
    return any(
        at >= call.now - HEARTBEAT_ALIVE
        and not re.search(r'"left":\s*true', call.server.beats.get(node, ""))
        for node, at in call.server.nodes.items()
    )


def _was_never_claimed(call: Call, entry: str, record: Mark) -> bool:
    untouched = record.fence == 0 and record.runs == 0 and record.mark == record.since
    return untouched and entry not in call.server.repairs
