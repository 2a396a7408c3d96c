"""Judge marks and open ticks against the server's clock; pure functions."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import (
    MOST_EXAMPLES,
    Finding,
    Severity,
    instant,
    many,
    name_of,
    span,
)
from celery_redlock_beat.diagnostics.parsing import is_open, tick_of
from celery_redlock_beat.store.contents import SENTINEL
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.diagnostics.parsing import Marked, Marks
    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.ticks import Micros

TOLERANCE = SECOND
"""How far a mark may be ahead: after a failover, the new server's clock may be a little behind."""
FORLORN_LEASES = 20
SHORTEST_FORLORN = 60 * SECOND
LONGEST_BACK_OFF = 600 * SECOND


def ahead_of(marks: Marks, now: Micros) -> dict[bytes, Marked]:
    """Return the records of the entries that wait for a clock to come to where it has been."""
    return {
        entry: record
        for entry, record in marks.entries.items()
        if max(record.mark, record.since) > now + TOLERANCE
    }


def ahead(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of marks ahead of the server's clock: it was set forward and back."""
    found = ahead_of(marks, contents.now)
    if found:
        yield Finding(
            Severity.ERROR,
            "marks-ahead",
            contents.full("marks"),
            f"{many(len(found), 'entry is', 'entries are')} ahead of the server's clock, which was "
            "set forward and back: what is due before these instants is not sent",
            "see that the server's clock is right, then: celery redlock repair --future",
            tuple(_told(found, contents.now)),
            len(found),
        )


def _told(found: dict[bytes, Marked], now: Micros) -> Iterator[str]:
    order = sorted(found.items(), key=lambda item: max(item[1].mark, item[1].since), reverse=True)
    for entry, record in order[:MOST_EXAMPLES]:
        end = max(record.mark, record.since)
        yield f"{name_of(entry)}: runs again after {instant(end)}, in {span(end - now)}"


def orphans(contents: Contents, lease: Micros, alive: int) -> Iterator[Finding]:
    """Tell of open ticks that nobody takes, though their leases ended long ago."""
    since = contents.now - max(FORLORN_LEASES * lease, SHORTEST_FORLORN)
    paused = contents.hash("paused")
    found: dict[bytes, float] = {}
    for member, ends in contents.zset("open").items():
        tick = tick_of(member)
        if tick and ends < since and tick[0] <= contents.now and tick[1] not in paused:
            found[member] = ends
    if not found:
        return
    yield Finding(
        Severity.WARNING if alive else Severity.HINT,
        "orphans",
        contents.full("open"),
        f"{many(len(found), 'tick is', 'ticks are')} open, and no node has taken "
        f"{'it' if len(found) == 1 else 'them'} since the lease ended",
        "look for errors in the logs of the nodes: each of them should take or settle it"
        if alive
        else "start a node: it takes or settles it",
        tuple(_ticks(found, contents.now)),
        len(found),
    )


def leases_ahead(contents: Contents, lease: Micros) -> Iterator[Finding]:
    """Tell of leases that end later than any would."""
    farthest = contents.now + lease + LONGEST_BACK_OFF
    found = {
        member: ends
        for member, ends in contents.zset("open").items()
        if member != SENTINEL and ends > farthest
    }
    if found:
        yield Finding(
            Severity.WARNING,
            "lease-ahead",
            contents.full("open"),
            f"{many(len(found), 'open tick has a lease', 'open ticks have leases')} that no clock "
            "which is right would give: the server's was set forward and back",
            "start a node if none runs: it ends such leases at once",
            tuple(_ticks(found, contents.now)),
            len(found),
        )


def unpaired(contents: Contents) -> Iterator[Finding]:
    """Tell of grants and open ticks that have lost each other."""
    opened, grants = contents.zset("open"), contents.hash("grants")
    if not ("open" in contents.zsets and "grants" in contents.hashes):
        return
    lonely = [member for member in opened if member not in grants and tick_of(member)]
    if lonely and "grants" not in contents.partial:
        yield Finding(
            Severity.HINT,
            "open-without-grant",
            contents.full("grants"),
            f"of {many(len(lonely), 'open tick', 'open ticks')} the grant is gone: somebody "
            "deleted fields",
            "nothing: a node takes it over as new when its lease ends",
            tuple(_named(lonely)),
            len(lonely),
        )
    forgotten = [
        member for member, text in grants.items() if is_open(text) and member not in opened
    ]
    if forgotten and "open" not in contents.partial:
        yield Finding(
            Severity.WARNING,
            "grant-without-open",
            contents.full("open"),
            f"{many(len(forgotten), 'tick was', 'ticks were')} granted, neither sent nor skipped, "
            "and nobody looks for it: somebody deleted members",
            "to have the entry catch up, set its mark back before that tick: "
            "celery redlock repair ENTRY --mark ISO",
            tuple(_named(forgotten)),
            len(forgotten),
        )


def _ticks(found: dict[bytes, float], now: Micros) -> Iterator[str]:
    oldest = sorted(found.items(), key=lambda item: item[1])
    for (_, ends), name in zip(oldest, _named(member for member, _ in oldest), strict=False):
        if ends == float("inf"):
            yield f"{name}, the lease never ends"
        elif ends > now:
            yield f"{name}, the lease ends in {span(int(ends) - now)}"
        else:
            yield f"{name}, the lease ended {span(now - int(ends))} ago"


def _named(members: Iterator[bytes] | list[bytes]) -> Iterator[str]:
    for member in islice(members, MOST_EXAMPLES):
        at, entry = tick_of(member) or (0, member)
        yield f"{name_of(entry)} @ {instant(at)}"
