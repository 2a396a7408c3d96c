"""Judge what the ledger lost, and what comes of that; pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import Finding, Severity, instant, many, span
from celery_redlock_beat.diagnostics.fleet import living
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.diagnostics.parsing import Marks
    from celery_redlock_beat.store.contents import Contents

LATE_RECOVERY = 10 * SECOND
IN_DOUBT = b"in_doubt:data_loss"
UNKNOWN = "unknown"
DAY = 86_400 * SECOND
NEW = 7 * DAY
"""How long it is told that a ledger began empty: a first start cannot be told from a loss."""


def recovery(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of a recovery that runs, or that nobody ends."""
    if "recovering" not in marks.meta:
        return
    ends = marks.number("hold_down") or 0
    subject = f"{contents.full('marks')}: recovering"
    if contents.now < ends + LATE_RECOVERY:
        yield Finding(
            Severity.HINT,
            "recovering",
            subject,
            "the server may have lost data, and nodes are telling it what they remember: nothing "
            f"is sent for at most {span(ends - contents.now)} more",
            "wait, and run doctor again",
        )
        return
    alive = living(contents)
    yield Finding(
        Severity.WARNING if alive else Severity.HINT,
        "recovery-stuck",
        subject,
        f"a recovery should have ended {span(contents.now - ends)} ago, and nothing is sent before "
        "it ends",
        "look for errors in the logs of the nodes: any of them should end it"
        if alive
        else "start a node: it ends it",
    )


def identity(contents: Contents, marks: Marks, present: str) -> Iterator[Finding]:
    """Tell that the server was restarted or replaced, and that no node has noticed yet."""
    known = marks.meta.get("identity", "")
    if known in ("", UNKNOWN) or present in ("", known) or "recovering" in marks.meta:
        return
    yield Finding(
        Severity.HINT,
        "identity",
        f"{contents.full('marks')}: identity",
        "the server was restarted, or another one took over, since a node last wrote to it",
        "nothing: the next node tells it what it remembers, before anything is sent",
    )


def in_doubt(contents: Contents) -> Iterator[Finding]:
    """Tell how many ticks nobody knows to be sent or not."""
    told = contents.hash("totals").get(IN_DOUBT, b"0")
    number = int(told) if told.isdigit() else 0
    if number:
        yield Finding(
            Severity.HINT,
            "in-doubt",
            f"{contents.full('totals')}: {IN_DOUBT.decode()}",
            f"{many(number, 'tick', 'ticks')} may have been sent or not, since the server lost "
            "data at some time: not sent again",
            "see which tasks ran at that time; the logs of the nodes name the ticks",
            count=number,
        )


def began_empty(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell that nobody remembered anything when the ledger began, not long ago."""
    began = marks.number("began")
    if began and "recovering" not in marks.meta and contents.now < began + NEW:
        yield Finding(
            Severity.HINT,
            "began-empty",
            f"{contents.full('marks')}: began",
            f"the ledger was empty at {instant(min(began, contents.now))}, and no node remembered "
            "anything: if there was one before, what it knew of ticks, pauses and stored entries "
            "is lost",
            "nothing, if it was the first start; otherwise: celery redlock import FILE, if you "
            "have an export",
        )
