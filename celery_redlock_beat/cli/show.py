"""``celery redlock show``: print all that is known of one entry; it changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    print_json,
    say,
)
from celery_redlock_beat.cli._entry import document, full
from celery_redlock_beat.cli._selection import name_argument
from celery_redlock_beat.cli._tables import fact_lines
from celery_redlock_beat.cli._words import printable


@click.command(cls=RedlockCommand, examples=("show nightly", "show nightly -n 20 --json"))
@name_argument
@click.option(
    "-n",
    "number",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    help="How many ticks to come.",
)
@json_option
@click.pass_context
def show(ctx: click.Context, *, name: str, number: int, as_json: bool) -> None:
    """Show one entry: its definition, how it stands, and what is next."""
    control = control_of(ctx)
    view = control.get(name)
    coming = control.upcoming(number, view.name) if number else []
    if as_json:
        print_json(ctx, document(view, coming))
        return
    say(ctx, [printable(view.name), *fact_lines(list(full(view, coming, datetime.now(UTC))))])
