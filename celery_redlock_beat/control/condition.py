"""Whether the fleet does its work: what was read, judged; it changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from celery_redlock_beat.assembly import micros
from celery_redlock_beat.control import fleet
from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.describing import state_of
from celery_redlock_beat.control.selection import Selection
from celery_redlock_beat.control.views import Health, State
from celery_redlock_beat.diagnostics.findings import instant, many, span
from celery_redlock_beat.entry_checks import is_storable
from celery_redlock_beat.errors import ConfigurationError, LedgerUnavailable
from celery_redlock_beat.ticks import SECOND, Micros, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from celery_redlock_beat.control.access import Access
    from celery_redlock_beat.control.selection import Finder, Found
    from celery_redlock_beat.control.views import NodeView
    from celery_redlock_beat.store.registry import Condition

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
    opened: Sequence[tuple[str, Micros]] = ()
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
            open=len(self.opened),
            oldest_open=moment(self.opened[0][1]) if self.opened else None,
            totals=self.totals,
        )


def health_of(access: Access, finder: Finder) -> Health:
    """Return how the fleet is; what cannot be read is a problem, and ends nothing.

    Raises:
        ConfigurationError: The ledger is in the memory of another process.
    """
    access.registry  # noqa: B018 - a ledger in memory is refused, and not told as a problem
    found = Findings()
    try:
        condition = access.registry.condition()
        found.now, found.totals = condition.now, condition.totals
        found.nodes = fleet.views(condition)
        found.problems += _of_ledger(condition)
        found.problems += _of_nodes(found.nodes, condition)
        found.warnings += _warnings(found.nodes, condition)
        found.opened = access.registry.opened()
        found.problems += _forlorn(access, found.opened, condition.now)
        found.problems += _ahead(access.registry.ahead(condition.now + AHEAD))
        entries = finder.find(Selection(everything=True))
        found.entries = _counted(entries)
        found.problems += _bad(entries)
        found.problems += _unreadable(access.registry.stored())
        found.warnings += _without_an_entry(access.registry.paused(), entries)
    except LedgerUnavailable as exc:
        found.problems.append(f"the ledger is away: {exc}")
    except ConfigurationError as exc:
        found.problems.append(f"beat would not start: {exc}")
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


def _forlorn(access: Access, opened: Sequence[tuple[str, Micros]], now: Micros) -> Iterator[str]:
    lease = micros(access.settings.lease)
    late = {entry for entry, ends in opened if ends < now - LEASES * lease}
    late -= set(access.registry.paused()) if late else set()
    if late:
        yield (
            f"{many(len(late), 'entry has', 'entries have')} an open tick that no node has taken "
            f"for {span(LEASES * lease)}: {_named(late)}; see the logs of the nodes"
        )


def _ahead(names: Sequence[str]) -> Iterator[str]:
    if names:
        yield (
            f"{many(len(names), 'entry is', 'entries are')} ahead of the server's clock, and "
            f"nothing is sent of it till then: {_named(names)}; see that the clock is right, then: "
            "celery redlock repair --future"
        )


def _bad(entries: Sequence[Found]) -> Iterator[str]:
    for each in islice((each for each in entries if each.known.is_bad), MOST_NAMED):
        origin, name = each.known.origin, shown(each.name)
        yield f"entry {name!r} ({origin}) cannot be sent: {each.known.problem}"
    number = sum(each.known.is_bad for each in entries)
    if number > MOST_NAMED:
        yield f"{many(number - MOST_NAMED, 'more entry', 'more entries')} cannot be sent"


def _unreadable(names: Sequence[str]) -> Iterator[str]:
    number = sum(not is_storable(name) for name in names)
    if number:
        yield (
            f"{many(number, 'stored entry', 'stored entries')} cannot be sent: the name is no "
            "UTF-8, and whoever wrote it has to delete it"
        )


def _without_an_entry(paused: Sequence[str], entries: Sequence[Found]) -> Iterator[str]:
    gone = set(paused) - {each.name for each in entries}
    if gone:
        yield (
            f"{many(len(gone), 'pause is', 'pauses are')} of no entry that is stored, or in the "
            f"code here: {_named(gone)}; resume what is not meant to come back paused"
        )


def _counted(entries: Sequence[Found]) -> dict[str, int]:
    counted = Counter(str(each.known.origin) for each in entries)
    for each in entries:
        counted[str(_state(each))] += 1
    return dict(counted)


def _state(found: Found) -> State:
    try:
        return state_of(found.known, found.look)
    except Exception:  # noqa: BLE001 - a timetable may be the user's own, and is told elsewhere
        return State.BAD


def _named(names: Sequence[str] | set[str]) -> str:
    first = ", ".join(repr(shown(name)) for name in sorted(names)[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{first} and {more} more" if more > 0 else first
