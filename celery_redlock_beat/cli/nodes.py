"""``celery redlock nodes``: print the nodes as their heartbeats told; it reaches none of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import RedlockCommand, control_of, json_option, print_json
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, length, printable, roughly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.control import NodeView

COLUMNS = (
    "node",
    "state",
    "heartbeat",
    "version",
    "ready",
    "late",
    "clock",
    "entries",
    "remarks",
)


@click.command(
    cls=RedlockCommand,
    examples=("nodes", "nodes --json"),
    exits={0: "a node is alive", 1: "no node is alive, or the ledger could not be asked"},
)
@json_option
@click.pass_context
def nodes(ctx: click.Context, *, as_json: bool) -> None:
    """Show the nodes, as their last heartbeats told, and what is odd about one beside the others.

    The column late is the longest delay of the last minute, and clock how far the node's own clock
    is from the ledger's.
    """
    views = control_of(ctx).nodes()
    if as_json:
        print_json(ctx, {"nodes": views})
    elif views:
        show(ctx, table_of(views, datetime.now(UTC)))
    else:
        ctx.obj.echo("No node has run yet: start one with celery -A proj beat -S redlock")
    ctx.exit(0 if any(view.alive for view in views) else 1)


def table_of(views: Sequence[NodeView], now: datetime) -> Table:
    """Return the table of nodes."""
    return Table(COLUMNS, [_row(view, now) for view in views], wide=("remarks", "node"))


def state_of(view: NodeView) -> str:
    """Return whether a node is alive, left by itself, or is gone."""
    if view.alive:
        return "alive"
    return "left" if view.left else "gone"


def _row(view: NodeView, now: datetime) -> list[str]:
    bad = f", {view.bad_entries:,} bad" if view.bad_entries else ""
    cells = [
        view.id,
        state_of(view),
        roughly(view.heartbeat, now),
        view.version,
        "" if view.ready is None else ("yes" if view.ready else "no"),
        "" if view.lateness is None else length(view.lateness),
        "" if view.offset is None else length(view.offset),
        "" if view.entries is None else f"{view.entries:,}{bad}",
        "; ".join(view.remarks),
    ]
    return [printable(cell) or NOTHING for cell in cells]
