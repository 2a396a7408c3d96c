"""How the fleet stands at one instant, and that as tables for a screen; it shows none itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from celery_redlock_beat.cli import _words as words
from celery_redlock_beat.cli._tables import Table
from celery_redlock_beat.cli.health import verdict
from celery_redlock_beat.cli.nodes import state_of
from celery_redlock_beat.control import State
from celery_redlock_beat.control.reasons import OUTCOMES
from celery_redlock_beat.errors import LedgerError
from celery_redlock_beat.observers.facts import LATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from celery_redlock_beat.control import (
        Control,
        EntryView,
        Health,
        HistoryRecord,
        NodeView,
    )

OVERDUE = timedelta(microseconds=LATE)
ROWS = 10
"""Of each table, where no screen limits them."""
AROUND = 3
"""Lines of a table beside its rows: title, header, and the gap."""
NODE = ("node", "state", "heartbeat", "late", "remarks")
SHOWN = (*OUTCOMES, "fired")


@dataclass(frozen=True, slots=True)
class Next:
    """The next tick of an entry."""

    tick: datetime
    entry: str
    task: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What is due next, what came about last, and who is late, at work, and paused."""

    now: datetime
    health: Health
    upcoming: Sequence[Next] = ()
    recent: Sequence[HistoryRecord] = ()
    late: Sequence[EntryView] = ()
    nodes: Sequence[NodeView] = ()
    paused: Sequence[EntryView] = ()
    problems: Sequence[str] = field(default_factory=list)


def look(control: Control, rows: int) -> Picture:
    """Return how it stands, with at most so many ticks and records; a ledger away is told."""
    health = control.health()
    now = health.now or datetime.now(UTC)
    if health.now is None:
        return Picture(now, health)
    try:
        views = control.entries()
        return Picture(
            now,
            health,
            _next_of(views)[:rows],
            [each for each in control.history(number=3 * rows) if each.action in SHOWN][:rows],
            [view for view in views if any(now - each > OVERDUE for each in view.open)],
            control.nodes(),
            [view for view in views if view.state is State.PAUSED],
        )
    except LedgerError as error:  # it went away in between
        return Picture(now, health, problems=[str(error)])


def _next_of(views: Sequence[EntryView]) -> list[Next]:
    """Return the next tick of each entry, in order: one that is due all the time hides no other."""
    found = [Next(view.next, view.name, view.task) for view in views if view.next is not None]
    return sorted(found, key=lambda each: (each.tick, each.entry))


def head_of(picture: Picture) -> Iterator[str]:
    """Yield the lines above the tables."""
    health = picture.health
    entries = words.counts(health.entries)
    yield f"{words.second(picture.now)}  {verdict(health)}  entries: {entries}  open: {health.open}"
    for each in (*health.problems, *picture.problems):
        yield f"problem: {words.printable(each)}"
    yield from (f"warning: {words.printable(each)}" for each in health.warnings)


def tables_of(picture: Picture, height: int | None = None) -> list[Table]:
    """Return the tables that have rows; together no higher than ``height`` lines, if possible."""
    tables = [
        Table(("due", "entry", "task"), _upcoming(picture), "Due next", ("task",)),
        Table(("at", "entry", "action", "late", "node"), _recent(picture), "Came about", ("node",)),
        Table(("since", "entry", "task"), _late(picture), "Late", ("task",)),
        Table(NODE, _nodes(picture), "Nodes", ("remarks", "node")),
        Table(("entry", "paused"), _paused(picture), "Paused", ("paused",)),
    ]
    tables = [table for table in tables if table.rows]
    return _cut(tables, ROWS if height is None else _share(tables, height))


def _share(tables: Sequence[Table], height: int) -> int:
    """Return how many rows each table may have: the short ones leave room for the long ones."""
    left = height - AROUND * len(tables)
    rest = sorted(len(table.rows) for table in tables)
    while rest and rest[0] <= left // len(rest):
        left -= rest.pop(0)
    return max(left // len(rest), 1) if rest else height


def _cut(tables: Sequence[Table], rows: int) -> list[Table]:
    return [
        replace(table, rows=table.rows[:rows], title=f"{table.title} ({rows} of {len(table.rows)})")
        if len(table.rows) > rows
        else table
        for table in tables
    ]


def _upcoming(picture: Picture) -> list[list[str]]:
    return [
        [words.roughly(each.tick, picture.now), *map(words.printable, (each.entry, each.task))]
        for each in picture.upcoming
    ]


def _recent(picture: Picture) -> list[list[str]]:
    return [
        [
            words.roughly(each.at, picture.now),
            words.printable(each.entry),
            each.action,
            words.length(each.lateness) if each.action == "sent" else each.reason,
            each.node,
        ]
        for each in picture.recent
    ]


def _late(picture: Picture) -> list[list[str]]:
    return [
        [words.roughly(min(view.open), picture.now), words.printable(view.name), view.task]
        for view in picture.late
    ]


def _nodes(picture: Picture) -> list[list[str]]:
    return [
        [
            view.id,
            state_of(view),
            words.roughly(view.heartbeat, picture.now),
            "" if view.lateness is None else words.length(view.lateness),
            words.printable("; ".join(view.remarks)),
        ]
        for view in picture.nodes
    ]


def _paused(picture: Picture) -> list[list[str]]:
    return [
        [words.printable(view.name), words.paused(view.paused) if view.paused else ""]
        for view in picture.paused
    ]
