"""Judge the pauses: unreadable, of nobody, or over and still there; pure functions."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import (
    MOST_EXAMPLES,
    Finding,
    Severity,
    many,
    name_of,
    raw_text,
    span,
)
from celery_redlock_beat.diagnostics.fleet import living
from celery_redlock_beat.diagnostics.nodes import missing
from celery_redlock_beat.diagnostics.parsing import read_pause
from celery_redlock_beat.diagnostics.stored_entries import stored
from celery_redlock_beat.store.contents import SENTINEL
from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery_redlock_beat.diagnostics.parsing import Marks, Paused
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.store.contents import Contents

PATIENCE: Micros = 60 * SECOND
"""How long a pause may be over before a node must have ended it, and its tick be due."""


def pauses(contents: Contents) -> dict[bytes, Paused]:
    """Return the pauses, by raw name."""
    found = contents.hash("paused").items()
    return {name: read_pause(text) for name, text in found if name != SENTINEL}


def unreadable(contents: Contents) -> Iterator[Finding]:
    """Tell of pauses that mean nothing, and hold their entries back all the same."""
    found = [name for name, pause in pauses(contents).items() if not pause.is_readable]
    if found:
        texts = contents.hash("paused")
        yield Finding(
            Severity.WARNING,
            "pause-unreadable",
            contents.full("paused"),
            f"{many(len(found), 'pause', 'pauses')} cannot be read: the entry is held back until "
            "somebody resumes it, and who paused it is not known",
            "write it anew with celery redlock pause NAME, or end it: celery redlock resume NAME",
            tuple(
                f"{name_of(name)}: {raw_text(texts[name])}"
                for name in islice(sorted(found), MOST_EXAMPLES)
            ),
            len(found),
        )


def of_nobody(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of pauses of names that no node has as an entry."""
    if "recovering" in marks.meta or "marks" not in contents.hashes or contents.partial:
        return
    gone = missing(contents, marks)
    known = (marks.entries.keys() | {each.field[2:] for each in marks.unreadable}) - gone
    found = sorted(pauses(contents).keys() - known - stored(contents).keys())
    if found:
        yield Finding(
            Severity.HINT,
            "pause-without-entry",
            contents.full("paused"),
            f"{many(len(found), 'pause is', 'pauses are')} of a name that no node has: an entry "
            "that gets this name is held back from its start",
            f"unless the entry comes back, end it: {_way_out(found, contents)}",
            tuple(map(name_of, found[:MOST_EXAMPLES])),
            len(found),
        )


def _way_out(names: list[bytes], contents: Contents) -> str:
    odd = any(name != name.decode(errors="ignore").encode() for name in names)
    by_hand = f"; where the name is no UTF-8: HDEL {contents.full('paused')} NAME"
    return f"celery redlock resume NAME{by_hand if odd else ''}"


def over(contents: Contents) -> dict[bytes, Micros]:
    """Return since when pauses are over that are still there, by raw name."""
    return {
        name: pause.until
        for name, pause in pauses(contents).items()
        if pause.until and pause.until < contents.now - PATIENCE
    }


def not_ended(contents: Contents, marks: Marks, slots: Mapping[bytes, Slot]) -> Iterator[Finding]:
    """Tell of pauses that are over, and that hold back ticks which are due.

    A node ends such a pause when it asks for the next tick: until that is due, all is well.
    """
    if not living(contents) or "recovering" in marks.meta:
        return
    found = [
        (name, until)
        for name, until in sorted(over(contents).items())
        if name in slots and _is_due(slots[name], marks, name, contents.now - PATIENCE)
    ]
    if found:
        yield Finding(
            Severity.WARNING,
            "pause-over",
            contents.full("paused"),
            f"{many(len(found), 'pause is over, and holds', 'pauses are over, and hold')} back "
            "what is due: a node should have ended it",
            "look for errors in the logs of the nodes; to end it: celery redlock resume NAME",
            tuple(
                f"{name_of(name)}: over for {span(contents.now - until)}"
                for name, until in found[:MOST_EXAMPLES]
            ),
            len(found),
        )


def _is_due(slot: Slot, marks: Marks, name: bytes, moment: Micros) -> bool:
    record = marks.entries.get(name)
    if record is None or isinstance(slot.timetable, Opaque) or not slot.policy.enabled:
        return False
    if slot.policy.max_runs:  # it may have had them all
        return False
    try:
        tick = slot.timetable.latest_until(moment)
        if tick is None or tick <= max(record.mark, record.since):
            return False
        return slot.due_at(tick) < moment
    except Exception:  # noqa: BLE001 - a schedule may be user code, and beat tells that it fails
        return False
