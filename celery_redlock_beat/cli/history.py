"""``celery redlock history``: print what came about, and what comes about; it keeps no record."""

from __future__ import annotations

import json
from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    print_json,
)
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, about, instant, printable, second
from celery_redlock_beat.control import as_dict
from celery_redlock_beat.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from celery_redlock_beat.control import HistoryRecord

COLUMNS = ("at", "entry", "action", "tick", "node", "about")
FIRST = "0-0"
PAUSE = 0.5
"""Seconds between two looks when it is followed."""


@click.command(
    cls=RedlockCommand,
    examples=("history", "history nightly -n 100", "history 'report-*' --follow --json"),
)
@selection_options
@click.option(
    "-n",
    "number",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="How many records, the newest of all.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes about, until Ctrl-C.")
@json_option
@click.pass_context
def history(
    ctx: click.Context, *, selection: Selection, number: int, follow: bool, as_json: bool
) -> None:
    """Show what came about, the newest last: what was sent, skipped, paused, fired, and so on.

    With --follow, --json prints one document per record, each on a line of its own. A ledger that
    is away is told on stderr, and asked again.
    """
    control = control_of(ctx)

    def newest(many: int) -> list[HistoryRecord]:
        return list(control.history(*selection.names, **selection.said, number=many))

    found = newest(max(number, 1))
    records = found[:number][::-1]
    if follow:
        last = found[0].id if found else FIRST
        with suppress(KeyboardInterrupt):
            _follow(ctx, newest, records, last, as_json=as_json)
    elif as_json:
        print_json(ctx, {"records": records})
    elif records:
        show(ctx, table_of(records))
    else:
        ctx.obj.echo("Nothing has come about, as far as the history goes back.")


def table_of(records: Sequence[HistoryRecord]) -> Table:
    """Return the table of records."""
    return Table(COLUMNS, [row(each) for each in records], wide=("node", "about"))


def row(record: HistoryRecord) -> list[str]:
    """Return a record as the cells of a table."""
    cells = [second(record.at), record.entry, record.action, _tick(record), record.node]
    return [*(printable(cell) or NOTHING for cell in cells), about(record)]


def _tick(record: HistoryRecord) -> str:
    return instant(record.tick) if record.tick.timestamp() else NOTHING


def _follow(
    ctx: click.Context,
    newest: Callable[[int], list[HistoryRecord]],
    records: Sequence[HistoryRecord],
    last: str,
    *,
    as_json: bool,
) -> None:
    is_away = False
    while True:
        for record in records:
            if as_json:
                ctx.obj.echo(json.dumps(as_dict(record), default=list))
            else:
                ctx.obj.echo("  ".join(row(record)).rstrip())
            last = max(last, record.id, key=order_of)
        sleep(PAUSE)
        try:
            records = list(since(last, newest))
        except LedgerError as error:
            if not is_away:
                click.echo(f"Warning: {error}; it goes on when that is over", err=True)
            records, is_away = [], True
        else:
            is_away = False


def since(last: str, newest: Callable[[int], list[HistoryRecord]]) -> Iterator[HistoryRecord]:
    """Yield what is newer than a record, in order, of what tells the newest so many."""
    many = 100
    while True:
        found = newest(many)
        fresh = [each for each in found if order_of(each.id) > order_of(last)]
        if len(fresh) < many:
            yield from reversed(fresh)
            return
        many *= 10


def order_of(record: str) -> tuple[int, ...]:
    """Return what puts the ids of records in their order."""
    return tuple(map(int, record.split("-")))
