"""``celery redlock disable``: switch stored entries off; it switches nothing itself."""

from __future__ import annotations

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    yes_option,
)
from celery_redlock_beat.cli._entry import tell_deeds
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.control import Origin


@click.command(
    cls=RedlockCommand,
    examples=("disable nightly", "disable 'trial-*' --note 'not yet'"),
    exits={1: "one is defined in code, or the ledger could not be asked"},
)
@selection_options
@note_option
@yes_option
@json_option
@click.pass_context
def disable(
    ctx: click.Context, *, selection: Selection, note: str, yes: bool, as_json: bool
) -> None:
    """Switch stored entries off; they stay stored, and send nothing.

    It is a change of their definition, which a pause is not. With --all, it asks first.
    """
    control = control_of(ctx)
    if selection.all:
        selection.confirm(control, "Disable", yes=yes, origin=Origin.STORED)
    views = control.disable(*selection.names, **selection.asked, note=note)
    tell_deeds(ctx, views, "disabled", as_json=as_json)
