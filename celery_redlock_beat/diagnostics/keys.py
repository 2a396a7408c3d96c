"""Judge the ledger's keys as such: types, TTLs, what was lost, what cannot be read; pure."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import MOST_EXAMPLES, Finding, Severity, many, span
from celery_redlock_beat.diagnostics.parsing import odd_fields
from celery_redlock_beat.ledger import ESSENTIAL
from celery_redlock_beat.store.contents import KINDS, SENTINEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.diagnostics.parsing import Marks, Unreadable
    from celery_redlock_beat.store.contents import Contents

FORMAT = "1"
MAY_EXPIRE = ("nodes", "beats")
KEEPERS = tuple(name for name in ESSENTIAL if name != "marks")
NOT_FOLLOWED = (
    "what is stored, removed, paused or resumed is not followed, and commands that do so are "
    "refused; all else goes on"
)
WITHOUT = {
    "entries": NOT_FOLLOWED,
    "gone": NOT_FOLLOWED,
    "changes": "stored entries are not sent, and commands that change them are refused; entries "
    "from code go on",
    "last": "how the entries ended last is not kept; all else goes on",
    "history": "the history is not kept; all else goes on",
    "beats": "what nodes tell of themselves is not kept; all else goes on",
    "audit": "celery redlock repair is refused; all else goes on",
    "fired": "celery redlock fire is refused; all else goes on",
}
"""What goes wrong where a key of another type is in the place of ours; else nothing is sent."""
LESSER = ("last", "history", "beats", "audit", "fired")
"""Keys that no tick needs."""
ADVICE = {
    "entry": "set the mark yourself: celery redlock repair ENTRY --mark now",
    "skips": "delete the field with HDEL, and name the ticks again: celery redlock skip NAME TICK",
    "marks": "nothing: nodes that live, or the next change of theirs, write it anew",
    "beats": "nothing: a node that lives writes it anew",
    "grants": "if you know who wrote it, have that stopped; then delete the field with HDEL",
    "open": "if you know who wrote it, have that stopped; then delete the member with ZREM",
    "totals": "delete the field with HDEL: its count begins anew",
}


def is_there(contents: Contents) -> bool:
    """Answer whether there is a ledger at all."""
    return any(key.kind != "none" for key in contents.keys.values())


def foreign_types(contents: Contents) -> Iterator[Finding]:
    """Tell of a key of ours that holds something else than we put there."""
    for name, key in contents.keys.items():
        lesser = name in LESSER
        if key.kind not in (KINDS[name], "none"):
            yield Finding(
                Severity.WARNING if lesser else Severity.ERROR,
                "foreign-type",
                key.full,
                f"the key is ours, and holds a {key.kind} instead of a {KINDS[name]}: "
                f"somebody else writes to it, and {WITHOUT.get(name, 'nothing is sent')}",
                "find out who writes it, then delete or rename it: nothing else of the ledger is "
                "lost",
            )


def expiring(contents: Contents) -> Iterator[Finding]:
    """Tell of a key that the server is going to delete."""
    for name, key in contents.keys.items():
        lesser = name in LESSER
        if key.ttl >= 0 and name not in MAY_EXPIRE:
            yield Finding(
                Severity.WARNING if lesser else Severity.ERROR,
                "expires",
                key.full,
                f"the key has a TTL, which we never set: the server deletes it in "
                f"{span(key.ttl * 1000)}, and what it holds is lost",
                f"PERSIST {key.full}, and find out who set it",
            )


def lost(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of keys that were deleted or evicted; nodes that live mend that."""
    if not is_there(contents) or "recovering" in marks.meta:
        return
    gone = ["marks"] if contents.keys["marks"].kind == "none" else []
    fields = {name: contents.zset(name) or contents.hash(name) for name in KEEPERS}
    for name in KEEPERS:
        looked_at = contents.keys[name].kind == "none" or fields[name]
        if looked_at and name not in contents.partial and SENTINEL not in fields[name]:
            gone.append(name)
    if gone:
        yield Finding(
            Severity.ERROR,
            "lost-key",
            ", ".join(contents.full(name) for name in gone),
            "the key was deleted or evicted, or its first field was: what it held is lost. Nothing "
            "is sent until nodes have told what they remember, which they do within a second",
            "start a node if none runs, and find out who deletes keys: see maxmemory-policy, and "
            "look for FLUSHDB, DEL and UNLINK",
        )


def other_format(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of records that another release wrote."""
    found = marks.meta.get("format")
    if marks.meta and found != FORMAT and "marks" not in contents.partial:
        yield Finding(
            Severity.ERROR,
            "format",
            f"{contents.full('marks')}: format",
            f"the ledger is kept in format {found!r}, and this release knows {FORMAT!r} only"
            if found
            else "the ledger does not tell its format: another release wrote it",
            "run the release that wrote it on every node, or choose another "
            "redlock_beat_namespace, which begins with an empty ledger",
        )


def unreadable(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of fields that mean nothing: they are left alone until an operator mends them."""
    kinds: dict[str, list[Unreadable]] = {}
    for each in (*marks.unreadable, *odd_fields(contents)):
        kinds.setdefault(each.kind, []).append(each)
    for kind, found in kinds.items():
        is_entry = kind == "entry"
        yield Finding(
            Severity.ERROR if is_entry else Severity.WARNING,
            "unreadable" if is_entry else "unreadable-field",
            contents.full(found[0].key),
            f"{many(len(found), 'record', 'records')} cannot be read: such an entry sends nothing"
            if is_entry
            else f"{many(len(found), 'field', 'fields')} cannot be read, and nobody looks at them",
            ADVICE[kind],
            tuple(str(each) for each in islice(found, MOST_EXAMPLES)),
            len(found),
        )


def unread(contents: Contents) -> Iterator[Finding]:
    """Tell what doctor itself could not look at."""
    if contents.unread:
        commands = ", ".join(contents.unread)
        yield Finding(
            Severity.HINT,
            "not-looked-at",
            commands,
            "our user may not look at all of the ledger, so what is wrong there is not told",
            f"allow {' '.join(f'+{name.lower()}' for name in contents.unread)} to the user that "
            "runs doctor",
        )
    for name in contents.partial:
        yield Finding(
            Severity.HINT,
            "not-looked-at",
            contents.full(name),
            "the key has so many fields that only a part of them was looked at",
            "nothing: what was looked at is judged",
        )
