"""Judge what the living nodes tell of themselves, one beside the other; pure functions."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import MOST_EXAMPLES, Finding, Severity, many
from celery_redlock_beat.heartbeat import LONGEST_NAME
from celery_redlock_beat.store.contents import whole
from celery_redlock_beat.store.heartbeats import heartbeats
from celery_redlock_beat.ticks import SECOND, listed, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from celery_redlock_beat.store.contents import Contents
    from celery_redlock_beat.store.heartbeats import Heartbeat

DEPLOYED_BY = 600 * SECOND
"""How long nodes may differ after one has started: a deploy replaces them one by one."""
FAR = 1.0
"""How many seconds a node's own clock may be off."""


def living(contents: Contents) -> list[Heartbeat]:
    """Return the nodes with a live heartbeat that have not told that they leave, by name."""
    nodes = {_name(node): whole(at) for node, at in contents.zset("nodes").items()}
    told = {_name(node): text for node, text in contents.hash("beats").items()}
    alive = (each for each in heartbeats(nodes, told, contents.now) if each.is_alive)
    return sorted(alive, key=lambda each: each.node)


def _name(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def versions_differ(contents: Contents) -> Iterator[Finding]:
    """Tell that nodes run different releases."""
    told, is_old = _differing(contents, lambda node: node.version)
    if told:
        yield Finding(
            Severity.WARNING if is_old else Severity.HINT,
            "versions-differ",
            contents.full("beats"),
            f"nodes run {len(told)} different releases of celery-redlock-beat",
            "nothing while you deploy; otherwise install one release everywhere",
            tuple(_grouped(told)),
            len(told),
        )


def schedules_differ(contents: Contents) -> Iterator[Finding]:
    """Tell that the code of nodes has different entries."""
    told, is_old = _differing(contents, lambda node: node.schedule)
    if told:
        yield Finding(
            Severity.WARNING if is_old else Severity.HINT,
            "schedules-differ",
            contents.full("beats"),
            f"nodes have {len(told)} different schedules from their code: what an entry does "
            "depends on which of them gets its tick",
            "nothing while you deploy; otherwise run the same code everywhere, or give different "
            "apps different namespaces: redlock_beat_namespace",
            tuple(_grouped(told)),
            len(told),
        )


def _differing(
    contents: Contents, told_by: Callable[[Heartbeat], str]
) -> tuple[dict[str, list[Heartbeat]], bool]:
    """Return nodes by what they told, if that differs, and whether no deploy explains it."""
    groups: dict[str, list[Heartbeat]] = {}
    for node in living(contents):
        if told_by(node):
            groups.setdefault(told_by(node), []).append(node)
    if len(groups) < 2:  # noqa: PLR2004 - a difference
        return {}, False
    started = [node.started or 0 for group in groups.values() for node in group]
    return groups, max(started) < contents.now - DEPLOYED_BY


def _grouped(told: dict[str, list[Heartbeat]]) -> Iterator[str]:
    """Yield what most nodes told first."""
    order = sorted(told.items(), key=lambda item: (-len(item[1]), item[0]))
    for what, nodes in order[:MOST_EXAMPLES]:
        yield f"{shown(what)}: {listed([shown(each.node) for each in nodes], 1)}"


def clocks(contents: Contents) -> Iterator[Finding]:
    """Tell of nodes whose own clock is off: the ledger's decides what is due."""
    off = [each for each in living(contents) if each.offset and abs(each.offset) > FAR]
    if off:
        yield Finding(
            Severity.HINT,
            "node-clock",
            contents.full("beats"),
            f"{many(len(off), 'node has a clock', 'nodes have clocks')} more than a second off the "
            "server's: no tick depends on that, but logs do, and what Celery writes into messages, "
            "as for countdown and expires",
            "see that NTP works there",
            tuple(
                f"{shown(each.node)}: {abs(each.offset or 0):,.1f} s "
                f"{'ahead' if (each.offset or 0) > 0 else 'behind'}"
                for each in off[:MOST_EXAMPLES]
            ),
            len(off),
        )


def bad_entries(contents: Contents, told: Collection[bytes]) -> Iterator[Finding]:
    """Tell of entries that nodes left out, other than those that were ``told`` already."""
    others = {name.decode("utf-8", "surrogateescape")[:LONGEST_NAME] for name in told}
    nodes = [each for each in living(contents) if each.bad]
    named = Counter(name for each in nodes for name in each.bad_names if name not in others)
    unnamed = max((_unnamed(each, others) for each in nodes), default=0)
    if named or unnamed:
        yield Finding(
            Severity.ERROR,
            "bad-entries",
            contents.full("beats"),
            "nodes have left out entries that cannot be: these are not sent there",
            "see what is wrong: celery -A proj redlock check, and the logs of the nodes",
            tuple(
                f"{shown(name)}: left out by {many(number, 'node', 'nodes')}"
                for name, number in islice(sorted(named.items()), MOST_EXAMPLES)
            ),
            len(named) + unnamed,
        )


def _unnamed(node: Heartbeat, others: Collection[str]) -> int:
    return max(0, (node.bad or 0) - len({*node.bad_names, *others}))


def not_ready(contents: Contents) -> Iterator[Finding]:
    """Tell of living nodes that do not do all of their work, but for bad entries."""
    nodes = [
        each
        for each in living(contents)
        if each.ready is False and not (each.bad and len(each.problems) <= 1)
    ]
    if nodes:
        yield Finding(
            Severity.WARNING,
            "not-ready",
            contents.full("beats"),
            f"{many(len(nodes), 'node lives, and says', 'nodes live, and say')} that "
            f"{'it does' if len(nodes) == 1 else 'they do'} not do all of "
            f"{'its' if len(nodes) == 1 else 'their'} work",
            "see the logs of these nodes",
            tuple(
                f"{shown(each.node)}: {shown('; '.join(each.problems)) or 'it does not say why'}"
                for each in nodes[:MOST_EXAMPLES]
            ),
            len(nodes),
        )
