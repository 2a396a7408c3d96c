"""``celery redlock resume``: let paused entries go on; what is caught up is not decided here."""

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


@click.command(cls=RedlockCommand, examples=("resume nightly", "resume --tag billing --catch-up"))
@selection_options
@click.option(
    "--catch-up", is_flag=True, help="Send what was due meanwhile, as each entry's catch_up says."
)
@note_option
@json_option
@click.pass_context
def resume(
    ctx: click.Context, *, selection: Selection, catch_up: bool, note: str, as_json: bool
) -> None:
    """Let paused entries go on with their next ticks."""
    views = control_of(ctx).resume(
        *selection.names, **selection.asked, catch_up=catch_up, note=note
    )
    tell_deeds(ctx, views, "resumed", as_json=as_json)
