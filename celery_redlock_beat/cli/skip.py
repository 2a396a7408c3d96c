"""``celery redlock skip``: leave one tick to come out; whether it still can, the ledger says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    print_json,
    say,
)
from celery_redlock_beat.cli._selection import name_argument
from celery_redlock_beat.cli._times import read_tick
from celery_redlock_beat.cli._words import instant, printable
from celery_redlock_beat.errors import TickRefused

if TYPE_CHECKING:
    from datetime import datetime

    from celery_redlock_beat.control import Control

MOST_HELD = 100


@click.command(
    cls=RedlockCommand,
    examples=("skip nightly next", "skip nightly 2030-01-31T02:30:00Z --note 'a holiday'"),
    exits={1: "it is no tick, is being sent or settled, or the ledger could not be asked"},
)
@name_argument
@click.argument("tick", metavar="ISO|next", callback=read_tick)
@note_option
@json_option
@click.pass_context
def skip(ctx: click.Context, *, name: str, tick: datetime | str, note: str, as_json: bool) -> None:
    """Leave one tick of an entry out: the next one, or that of an instant."""
    control = control_of(ctx)
    at = _next(control, name) if isinstance(tick, str) else tick
    view = control.skip(name, at, note=note)
    if as_json:
        print_json(ctx, {"entry": view, "tick": at})
    else:
        say(ctx, [f"to be skipped: {printable(view.name)}, tick {instant(at)}"])


def _next(control: Control, name: str) -> datetime:
    """Return the next tick that is not to be skipped already."""
    control.get(name)  # a pattern, too, would do for what follows
    for each in control.upcoming(MOST_HELD, name):
        if each.held != "skip":
            return each.tick
    raise TickRefused(f"entry {name!r} has no next tick that could be told")
