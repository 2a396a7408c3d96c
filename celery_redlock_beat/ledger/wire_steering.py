"""Between what operators ask and are told, and what goes over the wire; it decides nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from celery_redlock_beat.ledger import wire
from celery_redlock_beat.ledger.steering import (
    Change,
    Kind,
    LastOutcome,
    Look,
    OpenTick,
    Steered,
)
from celery_redlock_beat.ticks import SECOND, Micros, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from celery_redlock_beat.ledger import Record
    from celery_redlock_beat.ledger.steering import Definition, Remainder, Removal, Resumption

Row = TypeVar("Row", "Definition", "Removal", "Resumption")

STEERED_PER_CALL = 50
MOST_CHANGES = 500
"""How many changes one call tells."""
REMEMBERED: Micros = 86_400 * SECOND
"""How long a message that was sent beside the schedule is not sent again."""
RESERVED: Micros = 30 * SECOND
"""How long one that is being sent is not sent by others."""
NOBODY = "-"


def name(told: bytes) -> str:
    """Decode a name so that it can be encoded again, whatever somebody wrote."""
    return told.decode("utf-8", "surrogateescape")


def change(member: bytes, revision: bytes, text: bytes, gone: bytes) -> Change:
    """Read one change of the feed."""
    kind, _, rest = member.partition(b":")
    return Change(Kind(kind.decode()), name(rest), int(revision), None if gone == b"1" else text)


def told_again(change: Change) -> tuple[Any, ...]:
    """Return a change as a row of a push."""
    written = change.name.encode("utf-8", "surrogateescape")
    text, is_gone = change.text or b"", int(change.text is None)
    return "FEED", str(change.kind), written, change.revision, text, is_gone


def document_of(text: bytes) -> bytes:
    """Return a stored text without the revision before it, if there is one."""
    revision, space, rest = text.partition(b" ")
    return rest if space and revision.isdigit() else text


def look(entry: str, told: Sequence[Any], now: Micros) -> Look:
    """Read all that is known of an entry."""
    record, text, paused, revision, stored, last, unwanted, opened = told
    known = _record(entry, record)
    pause = wire.pause(entry, wire.text(text)) if text else None
    return Look(
        entry,
        now,
        known,
        unreadable=bool(record) and known is None,
        pause=replace(pause, revision=int(paused or 0)) if pause else None,
        revision=int(revision or 0),
        document=document_of(stored),
        last=last_outcome(last),
        unwanted=[int(each) for each in wire.text(unwanted).split() if each.isdecimal()],
        open=[_open_tick(entry, *each) for each in opened],
    )


def last_outcome(told: bytes) -> LastOutcome | None:
    """Read the last outcome of an entry; ``None`` for what is not one."""
    try:
        at, tick, outcome, rest = wire.text(told).split(" ", 3)
        node, *more = rest.rsplit(" ", 3)  # whoever asks may have a name of several words
        fence, attempt, lateness = map(int, more)
        return LastOutcome(int(at), int(tick), outcome, node, fence, attempt, lateness)
    except ValueError:
        return None


def _record(entry: str, told: bytes) -> Record | None:
    try:
        return wire.record(entry, told)
    except ValueError:
        return None


def _open_tick(
    entry: str,
    tick: bytes,
    owner: bytes,
    fence: bytes,
    attempt: bytes,
    previous: bytes,
    deadline: bytes,
) -> OpenTick:
    holder = wire.text(owner)
    numbers = map(int, (fence, attempt, previous, deadline))
    return OpenTick(Tick(entry, int(tick)), "" if holder == NOBODY else holder, *numbers)


def definition(each: Definition) -> tuple[Any, ...]:
    """Return an entry to store."""
    known = each.registration
    flags = int(known.run_on_start), int(known.once)
    row = known.entry, each.document, each.expected, known.fingerprint, *flags, each.note
    return *row, *wire.seeded(known), *remainder(each.remainder)


def removal(each: Removal) -> tuple[Any, ...]:
    """Return an entry to remove."""
    told = each.entry, each.expected, each.note, int(each.hidden)
    return *told, *remainder(each.remainder)


def resumption(each: Resumption) -> tuple[Any, ...]:
    """Return a pause to end."""
    return each.entry, each.expected, each.note, *remainder(each.remainder)


def remainder(each: Remainder | None) -> tuple[Any, ...]:
    """Return what of an entry ends."""
    if each is None:
        return ("",)
    endings = [(e.tick, e.fence, *wire.counted(e.passed)) for e in each.endings]
    return each.mark, each.upto, *wire.counted(each.passed), len(endings), *wire.flat(endings)


def steered(
    rows: Sequence[Row],
    write: Callable[[Row], tuple[Any, ...]],
    call: Callable[[list[Any]], list[Any]],
) -> list[Steered]:
    """Have what an operator wants done, in parts, and read the answers."""
    done: list[Steered] = []
    for chunk in wire.chunks(rows, STEERED_PER_CALL):
        (told,) = call(wire.flat(map(write, chunk)))
        done += [
            Steered(each.entry, wire.text(answer) == "DONE", int(revision))
            for each, (answer, revision) in zip(chunk, told, strict=True)
        ]
    return done


def kept_of_pause(note: str, who: str, since: Micros) -> str:
    """Return what is kept of a pause beside its end."""
    return json.dumps({"note": note, "who": who, "since": since}, ensure_ascii=False)
