"""Judge who lives, what a recovery does, and what was counted; pure functions."""

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
from celery_redlock_beat.diagnostics.keys import is_there
from celery_redlock_beat.ledger import HEARTBEAT_ALIVE, MAY_MISS
from celery_redlock_beat.store.contents import whole
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from celery_redlock_beat.diagnostics.parsing import Marks
    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.store.neighbours import Neighbour

LATE_RECOVERY = 10 * SECOND
IN_DOUBT = b"in_doubt:data_loss"
UNKNOWN = "unknown"
ALIKE = 0.5
"""Which part of our entries another ledger must have to be called alike."""
CELERYS_OWN = b"celery."


def living(contents: Contents) -> int:
    """Return how many nodes have a live heartbeat."""
    oldest = contents.now - HEARTBEAT_ALIVE
    return sum(at >= oldest for at in contents.zset("nodes").values())


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


def gone_entries(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of entries that no living node has."""
    if not living(contents) or "recovering" in marks.meta or "present" not in contents.zsets:
        return
    seen = contents.zset("present")
    newest = min(max(contents.zset("nodes").values()), contents.now)
    gone = [entry for entry in marks.entries if newest - seen.get(entry, 0) > MAY_MISS]
    if gone and "present" not in contents.partial:
        yield Finding(
            Severity.HINT,
            "gone-entries",
            contents.full("present"),
            f"{many(len(gone), 'entry was', 'entries were')} in no node's schedule for "
            f"{span(MAY_MISS)} or more: not sent, and if it comes back, it catches nothing up",
            "nothing, if they were removed; otherwise look why the nodes left them out",
            tuple(_last_seen(gone, seen)),
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
