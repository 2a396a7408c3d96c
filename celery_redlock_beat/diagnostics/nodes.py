"""Judge who lives and has which entries, here and in other ledgers; pure functions."""

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
from celery_redlock_beat.diagnostics.fleet import living
from celery_redlock_beat.diagnostics.keys import is_there
from celery_redlock_beat.ledger import HEARTBEAT_ALIVE, MAY_MISS
from celery_redlock_beat.store.contents import whole
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from celery_redlock_beat.diagnostics.parsing import Marks
    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.store.neighbours import Neighbour

ALIKE = 0.5
"""Which part of our entries another ledger must have to be called alike."""
CELERYS_OWN = b"celery."


def _is_known(contents: Contents) -> bool:
    return contents.keys["nodes"].kind == "none" or "nodes" in contents.zsets


def nobody(contents: Contents) -> Iterator[Finding]:
    """Tell that there is no ledger yet, or that no node lives."""
    if not is_there(contents):
        yield Finding(
            Severity.HINT,
            "no-ledger",
            contents.full("marks"),
            "there is no ledger here: no node has run with this server, database and namespace",
            "start a node: celery -A proj beat -S redlock",
        )
    elif not living(contents) and _is_known(contents):
        beats = contents.zset("nodes").values()
        last = f", the last one did {span(contents.now - whole(max(beats)))} ago" if beats else ""
        yield Finding(
            Severity.HINT,
            "no-node",
            contents.full("nodes"),
            f"no node lives{last}: nothing is sent",
            "start a node: celery -A proj beat -S redlock",
        )


def heartbeats_ahead(contents: Contents) -> Iterator[Finding]:
    """Tell of heartbeats ahead of the server's clock: a recovery waits for such nodes."""
    late = [at for at in contents.zset("nodes").values() if at > contents.now + SECOND]
    if late:
        yield Finding(
            Severity.HINT,
            "heartbeat-ahead",
            contents.full("nodes"),
            f"{many(len(late), 'heartbeat is', 'heartbeats are')} ahead of the server's clock, by "
            f"{span(whole(max(late)) - contents.now)} at most: it was set forward and back",
            "nothing: at worst, a recovery takes the whole of redlock_beat_hold_down",
            count=len(late),
        )


def missing(contents: Contents, marks: Marks) -> set[bytes]:
    """Return the entries that no living node has, as far as that can be known.

    One that was never seen may have come after we looked, unless it has been known for longer. What
    is stored is there until it is removed: nodes do not say that they have it.
    """
    if not living(contents) or "recovering" in marks.meta or "present" not in contents.zsets:
        return set()
    if "present" in contents.partial:
        return set()
    seen, stored = contents.zset("present"), contents.hash("entries")
    newest = min(max(contents.zset("nodes").values()), contents.now)
    return {
        entry
        for entry, record in marks.entries.items()
        if entry not in stored and newest - seen.get(entry, min(record.since, newest)) > MAY_MISS
    }


def gone_entries(
    contents: Contents, marks: Marks, left_out: Collection[bytes] = ()
) -> Iterator[Finding]:
    """Tell of entries that no living node has, but for those ``left_out``, which are told."""
    gone = sorted(missing(contents, marks).difference(left_out))
    if gone:
        yield Finding(
            Severity.HINT,
            "gone-entries",
            contents.full("present"),
            f"{many(len(gone), 'entry was', 'entries were')} in no node's schedule for "
            f"{span(MAY_MISS)} or more: not sent, and if it comes back, it catches nothing up",
            "nothing, if they were removed; otherwise look why the nodes left them out",
            tuple(_last_seen(gone, contents.zset("present"))),
            len(gone),
        )


def _last_seen(gone: Sequence[bytes], seen: Mapping[bytes, float]) -> Iterator[str]:
    for entry in islice(gone, MOST_EXAMPLES):
        last = f"last seen {instant(whole(seen[entry]))}" if entry in seen else "never seen"
        yield f"{name_of(entry)}: {last}"


def neighbours(
    contents: Contents, marks: Marks, others: Sequence[Neighbour], namespace: str
) -> Iterator[Finding]:
    """Tell of other ledgers with the same entries: perhaps one app in two namespaces."""
    ours = {entry for entry in marks.entries if not entry.startswith(CELERYS_OWN)}
    for other in others:
        same = ours & other.entries
        lives = other.heartbeat >= contents.now - HEARTBEAT_ALIVE
        if not lives or len(same) <= len(ours) * ALIKE or not same:
            continue
        place = f"{other.prefix}{{redlock:{other.namespace}}}:*"
        what = "key prefix" if other.namespace == namespace else "namespace"
        yield Finding(
            Severity.HINT,
            "other-ledger",
            place,
            f"nodes live with another {what}, and {len(same)} of our entries: if that is the same "
            "app, everything is sent twice",
            "give all nodes of one app the same redlock_beat_namespace and broker, and different "
            "apps different queues",
            tuple(name_of(entry) for entry in islice(sorted(same), MOST_EXAMPLES)),
            len(same),
        )
