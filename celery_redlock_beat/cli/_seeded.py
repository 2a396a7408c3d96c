"""What became of entries that another scheduler sent before, as a table; it asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, printable, second

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from celery_redlock_beat.control import Seeded

COLUMNS = ("name", "done", "last run", "first tick", "remark")
NOTICED = 0.001
"""Seconds that a first tick may be off without a remark."""


def show_seeded(ctx: click.Context, seeded: Sequence[Seeded]) -> None:
    """Print a row for each entry."""
    if seeded:
        show(ctx, Table(COLUMNS, [_row(each) for each in seeded], wide=("remark",)))
    else:
        ctx.obj.echo("No entry was ever sent.")


def remark_on(seeded: Seeded) -> str:
    """Return why it was refused, or by how much its first tick shifts."""
    if seeded.problem:
        return printable(seeded.problem)
    if abs(seeded.shift) < NOTICED:
        return ""
    seconds = f"{abs(seeded.shift):,.3f}".rstrip("0").rstrip(".")
    return f"shifts by {seconds} s: {'later' if seeded.shift > 0 else 'earlier'}"


def _row(each: Seeded) -> list[str]:
    times = second(each.last_run), second(each.next)
    return [printable(each.name), each.done, *times, remark_on(each) or NOTHING]
