"""``celery redlock enable``: switch stored entries on; it switches nothing itself."""

from __future__ import annotations

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
)
from celery_redlock_beat.cli._entry import tell_deeds
from celery_redlock_beat.cli._selection import Selection, selection_options


@click.command(
    cls=RedlockCommand,
    examples=("enable nightly", "enable --tag billing"),
    exits={1: "one is defined in code, or the ledger could not be asked"},
)
@selection_options
@note_option
@json_option
@click.pass_context
def enable(ctx: click.Context, *, selection: Selection, note: str, as_json: bool) -> None:
    """Switch stored entries on again: they go on with their next ticks.

    It is a change of their definition; what was paused stays so.
    """
    control = control_of(ctx)
    views = control.enable(*selection.names, **selection.asked, note=note)
    tell_deeds(ctx, views, "enabled", as_json=as_json)
