"""Judge the stored entries: which are bad, and what was written by hand; pure functions."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import (
    MOST_EXAMPLES,
    Finding,
    Severity,
    many,
    name_of,
)
from celery_redlock_beat.diagnostics.fleet import living
from celery_redlock_beat.store.contents import FEED, SENTINEL
from celery_redlock_beat.store.pairs import at_one_revision
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery_redlock_beat.diagnostics.parsing import Marks
    from celery_redlock_beat.diagnostics.taking_in import TakenIn
    from celery_redlock_beat.store.contents import Contents

BY_HAND = {
    ("entries", True): "an entry that was written by hand",
    ("entries", False): "an entry that was deleted by hand",
    ("paused", True): "a pause that was written by hand",
    ("paused", False): "a pause that was deleted by hand",
}


def stored(contents: Contents) -> dict[bytes, bytes]:
    """Return the texts of the stored entries, by raw name."""
    return {name: text for name, text in contents.hash("entries").items() if name != SENTINEL}


def bad(contents: Contents, taken: TakenIn) -> Iterator[Finding]:
    """Tell of stored entries that cannot be sent."""
    if taken.bad:
        yield Finding(
            Severity.ERROR,
            "bad-stored-entries",
            contents.full("entries"),
            f"{many(len(taken.bad), 'stored entry is', 'stored entries are')} left out by every "
            "node, and not sent: the others go on",
            "celery redlock edit NAME, or celery redlock remove NAME",
            tuple(
                f"{name_of(name)}: {shown(problem)}"
                for name, problem in islice(sorted(taken.bad.items()), MOST_EXAMPLES)
            ),
            len(taken.bad),
        )
    if taken.partial:
        yield Finding(
            Severity.HINT,
            "not-looked-at",
            contents.full("entries"),
            "there are so many stored entries that only a part of them was judged",
            "nothing: the nodes judge all of them, and log those that are bad",
        )


def hidden(contents: Contents, taken: TakenIn) -> Iterator[Finding]:
    """Tell of stored entries whose names the code has as well."""
    if taken.hidden:
        yield Finding(
            Severity.WARNING,
            "stored-and-in-code",
            contents.full("entries"),
            f"{many(len(taken.hidden), 'stored entry has', 'stored entries have')} the name of an "
            "entry from code, which is the one that runs",
            "remove one of them: celery redlock remove NAME, or the one in the code",
            tuple(map(name_of, islice(sorted(taken.hidden), MOST_EXAMPLES))),
            len(taken.hidden),
        )


def not_noticed(contents: Contents, marks: Marks) -> Iterator[Finding]:
    """Tell of what was written or deleted by hand, and what no running node has noticed yet."""
    if "recovering" in marks.meta or "changes" not in contents.zsets:
        return
    found = [
        f"{name_of(name)}: {BY_HAND[key, is_there]}"
        for key in FEED
        for name, is_there in sorted(_apart(contents, key).items())
    ]
    if found:
        yield Finding(
            Severity.WARNING if living(contents) else Severity.HINT,
            "not-noticed",
            contents.full("changes"),
            f"{many(len(found), 'change was', 'changes were')} made by hand, and no running node "
            "has noticed",
            "run doctor again: nodes that live notice it within a second, and otherwise their "
            "logs say why not. Commands such as celery redlock add, edit and remove tell every "
            "node",
            tuple(found[:MOST_EXAMPLES]),
            len(found),
        )


def _apart(contents: Contents, key: str) -> Mapping[bytes, bool]:
    """Return what the key and the feed disagree on, and whether the key has it."""
    texts, scores, prefix = contents.hash(key), contents.zset("changes"), FEED[key]
    if SENTINEL not in texts:  # it is lost, or not ours
        return {}
    apart: dict[bytes, bool] = {}
    if "changes" not in contents.partial:
        apart |= {name: True for name in texts if name and prefix + name not in scores}
    if key not in contents.partial:
        listed = {member[len(prefix) :] for member in scores if member.startswith(prefix)}
        apart |= dict.fromkeys(listed - texts.keys(), False)
    return apart


def by_hand(contents: Contents) -> Iterator[Finding]:
    """Tell of stored entries of which nodes may have another text."""
    scores, prefix = contents.zset("changes"), FEED["entries"]
    found = [
        name
        for name, text in stored(contents).items()
        if prefix + name in scores and not at_one_revision(text, scores[prefix + name])
    ]
    if found:
        yield Finding(
            Severity.HINT,
            "written-by-hand",
            contents.full("entries"),
            f"{many(len(found), 'stored entry was', 'stored entries were')} written by hand, past "
            "celery redlock: nodes noticed it if it was new, and notice no change by hand",
            "celery redlock edit NAME, and save it: that tells every node",
            tuple(map(name_of, islice(sorted(found), MOST_EXAMPLES))),
            len(found),
        )
