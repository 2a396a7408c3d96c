"""Whether the fleet does its work: what was read, judged; it changes nothing.

A probe asks it again and again, in a process of its own. So it reads what nodes told of themselves,
and how much there is; it reads no entry, and loads no schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.assembly import micros
from celery_redlock_beat.control import fleet
from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.views import Health
from celery_redlock_beat.diagnostics.findings import instant, many, span
from celery_redlock_beat.errors import LedgerUnavailable
from celery_redlock_beat.ticks import SECOND, Micros, listed, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.views import NodeView
    from celery_redlock_beat.store.heartbeats import Heartbeat
    from celery_redlock_beat.store.registry import Condition, Numbers

DAY: Micros = 86_400 * SECOND
JUST_BEGUN: Micros = 60 * SECOND
AHEAD: Micros = SECOND
"""How far a mark may be ahead: after a failover, the new server's clock may be a little behind."""
LEASES = 10
MOST_NAMED = 5
EMPTY = (
    "if that is not its first start, marks, pauses and stored entries of before are unknown: "
    "import an export"
)


@dataclass
class Findings:
    """What was found, and the facts with it."""

    now: Micros | None = None
    nodes: Sequence[NodeView] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)
    open: int = 0
    oldest_open: Micros | None = None
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def health(self) -> Health:
        """Return what it comes to."""
        alive = [node for node in self.nodes if node.alive]
        is_alive = self.now is not None and bool(alive)
        return Health(
            alive=is_alive,
            ready=is_alive and not self.problems,
            problems=self.problems,
            warnings=self.warnings,
            now=None if self.now is None else moment(self.now),
            nodes=len(alive),
            entries=self.entries,
            open=self.open,
            oldest_open=None if self.oldest_open is None else moment(self.oldest_open),
            totals=self.totals,
        )


def health_of(access: Access) -> Health:
    """Return how the fleet is; what cannot be read is a problem, and ends nothing.

    Raises:
        ConfigurationError: The ledger is in the memory of another process.
    """
    access.registry  # noqa: B018 - a ledger in memory is refused, and not told as a problem
    found = Findings()
    try:
        condition = access.registry.condition()
        beats = fleet.beats_of(condition)
        alive = [beat for beat in beats if beat.is_alive]
        found.now, found.totals = condition.now, condition.totals
        found.nodes = fleet.views(beats, condition.now)
        found.problems += _of_ledger(condition)
        found.problems += _of_nodes(found.nodes, condition)
        found.problems += _bad(alive)
        found.warnings += _warnings(found.nodes, condition)
        numbers = access.registry.numbers()
        found.open, found.oldest_open = numbers.open, numbers.oldest
        found.entries = _counted(alive, numbers)
        found.problems += _forlorn(access, condition.now)
        found.problems += _ahead(access, condition)
    except LedgerUnavailable as exc:
        found.problems.append(f"the ledger is away: {exc}")
    return found.health()


def _of_ledger(condition: Condition) -> Iterator[str]:
    if condition.is_new:
        yield "the ledger is empty: no node has been here; start one"
    elif condition.is_recovering:
        yield "the server may have lost data, and nodes tell what they remember: that takes seconds"
    if condition.began and condition.now - condition.began < JUST_BEGUN:
        yield f"the ledger began empty {span(condition.now - condition.began)} ago: {EMPTY}"


def _of_nodes(nodes: Sequence[NodeView], condition: Condition) -> Iterator[str]:
    alive = [node for node in nodes if node.alive]
    if not alive and not condition.is_new:
        last = max(condition.nodes.values(), default=None)
        told = "" if last is None else f"; the last heartbeat was {span(condition.now - last)} ago"
        yield f"no node lives, so that nothing is sent: start one{told}"
    for node in alive:
        if node.ready is False or node.bad_entries:
            why = "; ".join(node.remarks) or "it does not say why: see its log"
            yield f"node {shown(node.id)} on {shown(node.host)} is not ready: {why}"


def _warnings(nodes: Sequence[NodeView], condition: Condition) -> Iterator[str]:
    for node in nodes:
        if node.alive and node.ready is not False and not node.bad_entries:
            yield from (f"node {shown(node.id)}: {remark}" for remark in node.remarks)
    since = condition.now - condition.began
    if condition.began and JUST_BEGUN <= since < DAY:
        yield f"the ledger began empty {instant(condition.began)}: {EMPTY}"


def _bad(alive: Sequence[Heartbeat]) -> Iterator[str]:
    """Yield which entries nodes leave out, from code and stored; each tells the first of them."""
    names = {name for beat in alive for name in beat.bad_names}
    number = max([len(names), *(beat.bad or 0 for beat in alive)])
    if number:
        which = f": {_named(names, number)}" if names else ""
        yield (
            f"{many(number, 'entry is bad, and is', 'entries are bad, and are')} not sent{which}; "
            "see celery redlock list --state bad, or the logs of the nodes"
        )


def _forlorn(access: Access, now: Micros) -> Iterator[str]:
    patience = LEASES * micros(access.settings.lease)
    late = access.registry.overdue(now - patience)
    if late:
        yield (
            f"{many(len(late), 'entry has', 'entries have')} an open tick that no node has taken "
            f"for {span(patience)}: {_named(late)}; see the logs of the nodes"
        )


def _ahead(access: Access, condition: Condition) -> Iterator[str]:
    # A mark is an instant that was over when it was set, and a fence no lower than its instant is
    # given with each grant and each change. So where the clock was set back, the last fence is
    # ahead of it as the marks are, and only then all marks are read. Not seen is what an operator's
    # repair set to the future, which was meant, and a mark of an entry that code made known after
    # the last grant of all; doctor looks at each of them.
    latest = condition.now + AHEAD
    names = access.registry.ahead(latest) if condition.fence > latest else []
    if names:
        yield (
            f"{many(len(names), 'entry is', 'entries are')} ahead of the server's clock, and "
            f"nothing is sent of it till then: {_named(names)}; see that the clock is right, then: "
            "celery redlock repair --future"
        )


def _counted(alive: Sequence[Heartbeat], numbers: Numbers) -> dict[str, int]:
    told = [beat.entries for beat in alive if beat.entries is not None]
    code = {"code": max(told)} if told else {}
    return {**code, "stored": numbers.stored, "paused": numbers.paused}


def _named(names: Collection[str], number: int | None = None) -> str:
    return listed([repr(shown(name)) for name in sorted(names)], MOST_NAMED, number)
