"""``celery redlock list``: print the entries and how they stand; it changes none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import RedlockCommand, control_of, json_option, print_json
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, printable, roughly
from celery_redlock_beat.control import Origin, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.control import EntryView

SINCE = ", at whole multiples since 1970-01-01 00:00 UTC"
"""What show tells of every interval."""
COLUMNS = ("name", "state", "origin", "task", "schedule", "next", "last")


@click.command(
    "list",
    cls=RedlockCommand,
    examples=("list", "list 'report-*' --state paused", "list --tag billing --json"),
)
@selection_options
@click.option(
    "--state", type=click.Choice([each.value for each in State]), help="Those in this state."
)
@click.option(
    "--origin",
    type=click.Choice([each.value for each in Origin]),
    help="Those from code, or stored ones.",
)
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    *,
    selection: Selection,
    state: str | None,
    origin: str | None,
    as_json: bool,
) -> None:
    """Show the entries, and how each stands.

    Each NAME is an entry, or a pattern as 'report-*'; without one, all are shown.
    """
    views = control_of(ctx).entries(*selection.names, **selection.said, state=state, origin=origin)
    if as_json:
        print_json(ctx, {"entries": views})
    elif views:
        show(ctx, table_of(views, datetime.now(UTC)))
    else:
        ctx.obj.echo("There are no such entries.")


def table_of(views: Sequence[EntryView], now: datetime) -> Table:
    """Return the table of entries."""
    return Table(COLUMNS, [_row(view, now) for view in views], wide=("task", "schedule"))


def _row(view: EntryView, now: datetime) -> list[str]:
    ahead = roughly(view.next, now) if view.next else NOTHING
    last = f"{view.last.outcome} {roughly(view.last.at, now)}" if view.last else NOTHING
    schedule = view.schedule.replace(SINCE, "")
    cells = [view.name, view.state, view.origin, view.task, schedule, ahead, last]
    return [printable(cell) or NOTHING for cell in cells]
