"""What operators do to a ledger in this process: each function does as the script of its name.

Whether it is wise is not judged here; what is not as the caller saw it is left alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Grant, Settlement, wire, wire_steering
from celery_redlock_beat.ledger.memory_feed import Feed
from celery_redlock_beat.ledger.memory_registration import (
    begin_at_seed,
    make_known,
    make_known_anew,
    record_of,
    with_phase_of,
)
from celery_redlock_beat.ledger.memory_server import NOBODY, Open
from celery_redlock_beat.ledger.steering import (
    Firing,
    Kind,
    Look,
    OpenTick,
    Remainder,
    Skipping,
    Steered,
    Step,
)
from celery_redlock_beat.ticks import Outcome, Reason, Tick, skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.ledger import Command
    from celery_redlock_beat.ledger.memory_call import Call
    from celery_redlock_beat.ledger.memory_server import Mark
    from celery_redlock_beat.ledger.steering import (
        Definition,
        Removal,
        Resumption,
        Shot,
    )


def look(call: Call, entry: str) -> Look:
    """Tell all that is known of an entry."""
    server = call.server
    record, text, feed = server.marks.get(entry), server.paused.get(entry), _feed(call)
    pause = None if text is None else wire.pause(entry, wire.text(text))
    opened = [
        OpenTick(tick, "" if held.owner == NOBODY else held.owner, *held[1:4], ends)
        for tick, ends in server.open_of(entry)
        if isinstance(held := server.grant_of(tick), Open)
    ]
    return Look(
        entry,
        call.now,
        record_of(entry, record) if record else None,
        pause=replace(pause, revision=feed.revision_of(Kind.PAUSE, entry)) if pause else None,
        revision=feed.revision_of(Kind.ENTRY, entry),
        document=wire_steering.document_of(server.entries.get(entry, b"")),
        last=server.last.get(entry),
        unwanted=list(server.unwanted.get(entry, ())),
        open=opened,
    )


def store(call: Call, definition: Definition) -> Steered:
    """Add an entry, or change it."""
    entry, feed, remainder = definition.entry, _feed(call), definition.remainder
    stored, is_new = feed.revision_of(Kind.ENTRY, entry), not definition.expected
    if stored != definition.expected or (remainder and not _holds(call, entry, remainder)):
        return Steered(entry, done=False, revision=stored)
    record, known = call.server.marks.get(entry), definition.registration
    fingerprint = known.fingerprint if is_new else with_phase_of(record, known)
    if record is None and not begin_at_seed(call, known):
        make_known(call, known, call.now)
    elif record and (is_new or record.fingerprint != fingerprint):
        if is_new:
            record.runs = 0  # what an old copy knows of a removed one of its name
        if remainder:
            _finish(call, entry, record, remainder, skipped(Reason.BEFORE_REGISTRATION))
        make_known_anew(record, fingerprint, call.now)
    call.server.present[entry] = call.now
    revision = feed.next_revision()
    feed.put(Kind.ENTRY, entry, revision, f"{revision} {definition.document}".encode())
    call.note_deed(entry, "added" if is_new else "changed", definition.note, remainder)
    return Steered(entry, done=True, revision=revision)


def remove(call: Call, removal: Removal) -> Steered:
    """Remove a stored entry: nothing of it is enqueued any more."""
    entry, feed, remainder = removal.entry, _feed(call), removal.remainder
    server, stored = call.server, feed.revision_of(Kind.ENTRY, entry)
    is_there = stored or entry in server.entries
    listed = len(remainder.endings) if remainder else 0
    is_as_seen = (not remainder or _holds(call, entry, remainder)) and (
        removal.hidden or len(server.open_of(entry)) == listed
    )
    if not is_there or stored != removal.expected or not is_as_seen:
        return Steered(entry, done=False, revision=stored)
    record = server.marks.get(entry)
    if remainder and record:
        _finish(call, entry, record, remainder, skipped(Reason.REMOVED))
    if entry in server.paused and not removal.hidden:
        feed.drop(Kind.PAUSE, entry, feed.next_revision())
    revision = feed.next_revision()
    feed.drop(Kind.ENTRY, entry, revision)
    call.note_deed(entry, "removed", removal.note, remainder)
    if not removal.hidden:
        _forget(call, entry)
    return Steered(entry, done=True, revision=revision)


def _forget(call: Call, entry: str) -> None:
    server, record = call.server, call.server.marks.get(entry)
    if record and record.mark <= call.now:
        for known in (server.marks, server.unwanted, server.repairs, server.seeds):
            known.pop(entry, None)
    server.present.pop(entry, None)
    server.last.pop(entry, None)


def pause(call: Call, entry: str, ends: int, kept: str) -> int:
    """Hold an entry back, and return the revision."""
    feed = _feed(call)
    revision = feed.next_revision()
    feed.put(Kind.PAUSE, entry, revision, f"{revision} {ends} {kept}".encode())
    call.note_deed(entry, "paused", kept)
    return revision


def resume(call: Call, resumption: Resumption) -> Steered:
    """End a pause."""
    entry, feed, remainder = resumption.entry, _feed(call), resumption.remainder
    stored, record = feed.revision_of(Kind.PAUSE, entry), call.server.marks.get(entry)
    is_as_seen = not remainder or (
        _holds(call, entry, remainder) and _leaves_what_is_held(call, entry, remainder)
    )
    is_there = stored or entry in call.server.paused
    if not is_there or stored != resumption.expected or not is_as_seen:
        return Steered(entry, done=False, revision=stored)
    if remainder and record:
        _finish(call, entry, record, remainder, skipped(Reason.PAUSED))
        record.since = max(record.since, remainder.upto)
    revision = feed.next_revision()
    feed.drop(Kind.PAUSE, entry, revision)
    call.note_deed(entry, "resumed", resumption.note, remainder)
    return Steered(entry, done=True, revision=revision)


def skip(call: Call, tick: Tick, note: str) -> Skipping:
    """Have a tick skipped when it is claimed."""
    server, record = call.server, call.server.marks.get(tick.entry)
    if record is None:
        return Skipping.MISSING
    if tick in server.open:
        return Skipping.OPEN
    if tick.at <= record.mark:
        return Skipping.SETTLED
    known = server.unwanted.get(tick.entry, ())
    # What is open is not settled: who takes it over must skip it, too.
    ahead = [
        each
        for each in known
        if each != tick.at and (each > record.mark or Tick(tick.entry, each) in server.open)
    ]
    server.unwanted[tick.entry] = [*ahead, tick.at]
    call.note_deed(tick.entry, "to_be_skipped", note, Remainder(record.mark, tick.at))
    return Skipping.DONE


def fire(call: Call, shot: Shot, step: Step, commands: Sequence[Command]) -> Firing | str:
    """Send a message beside the schedule; return the key of a queue that is not a list as text."""
    server, fired = call.server, call.server.fired
    if step is Step.FAILED:
        fired.pop(shot.task_id, None)
        return Firing.DONE
    if step is not Step.DONE:
        if fired.get(shot.task_id, 0) > call.now:
            return Firing.ALREADY
        if not shot.force and _is_held_back(call, shot.entry):
            return Firing.PAUSED
    wrong = server.no_list(commands)
    if wrong is not None:
        return wrong
    if step is not Step.RESERVE:
        server.count_one("fired")
        for command in commands:
            server.push(command)
        call.note_deed(shot.entry, "fired", shot.note)
    for old in [each for each, ends in fired.items() if ends <= call.now]:
        del fired[old]
    fired[shot.task_id] = call.now + (
        wire_steering.RESERVED if step is Step.RESERVE else wire_steering.REMEMBERED
    )
    return Firing.DONE


def _feed(call: Call) -> Feed:
    return Feed(call.server, call.now)


def _holds(call: Call, entry: str, remainder: Remainder) -> bool:
    record = call.server.marks.get(entry)
    held = [(call.server.grant_of(Tick(entry, e.tick)), e.fence) for e in remainder.endings]
    return (
        record is not None
        and record.mark == remainder.mark
        and all(isinstance(grant, Open) and grant.fence == fence for grant, fence in held)
    )


def _leaves_what_is_held(call: Call, entry: str, remainder: Remainder) -> bool:
    ends = [call.server.open.get(Tick(entry, each.tick)) for each in remainder.endings]
    return all(end is not None and end <= call.now for end in ends)


def _finish(call: Call, entry: str, record: Mark, remainder: Remainder, outcome: Outcome) -> None:
    for each in remainder.endings:
        tick = Tick(entry, each.tick)
        held = call.server.grant_of(tick)
        if isinstance(held, Open):
            fence = call.server.next_fence(call.now)
            grant = Grant(tick, fence, held.attempt, held.previous, 0)
            call.close(Settlement(grant, outcome, each.passed))
            record.runs -= held.attempt == 0 and record.runs > 0
    call.server.count(remainder.passed)
    record.mark = max(record.mark, remainder.upto)


def _is_held_back(call: Call, entry: str) -> bool:
    """Tell whether an entry is paused, and its time is not over."""
    text = call.server.paused.get(entry)
    return text is not None and not wire.pause(entry, wire.text(text)).is_over(call.now)
