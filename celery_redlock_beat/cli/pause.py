"""``celery redlock pause``: hold entries back; it holds nothing back itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    yes_option,
)
from celery_redlock_beat.cli._entry import tell_deeds
from celery_redlock_beat.cli._fleet import warn_of_other_code
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._times import until_option

if TYPE_CHECKING:
    from datetime import datetime, timedelta


@click.command(
    cls=RedlockCommand,
    examples=(
        "pause nightly --note 'the database moves'",
        "pause --tag billing --until 2h",
        "pause --all --yes --until 2030-01-31T12:00:00Z",
    ),
)
@selection_options
@until_option
@note_option
@yes_option
@json_option
@click.pass_context
def pause(
    ctx: click.Context,
    *,
    selection: Selection,
    until: datetime | timedelta | None,
    note: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Hold entries back, from code or stored: from then on nothing of them is enqueued.

    What is due meanwhile is counted as skipped (paused). What is paused already gets the new end
    and note. With --all, it asks first, and means what is stored and what the code here has now:
    what is added later runs.
    """
    control = control_of(ctx)
    if selection.all:
        selection.confirm(control, "Pause", yes=yes)
    views = control.pause(*selection.names, **selection.asked, note=note, until=until)
    if selection.all:
        warn_of_other_code(ctx, control)
    tell_deeds(ctx, views, "paused", as_json=as_json)
