"""``celery redlock remove``: remove stored entries, after asking; it looks for none itself."""

from __future__ import annotations

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    print_json,
    say,
    yes_option,
)
from celery_redlock_beat.cli._entry import check_done
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._words import printable
from celery_redlock_beat.control import Origin


@click.command(
    cls=RedlockCommand,
    examples=("remove nightly", "remove 'trial-*' --yes --note 'the trial is over'"),
    exits={1: "one is defined in code, the answer was no, or the ledger could not be asked"},
)
@selection_options
@note_option
@yes_option
@json_option
@click.pass_context
def remove(
    ctx: click.Context, *, selection: Selection, note: str, yes: bool, as_json: bool
) -> None:
    """Remove stored entries; when it has answered, nothing of them is enqueued any more.

    It asks first. An entry that is defined in code cannot be removed here: pause it, or take it out
    there.
    """
    control = control_of(ctx)
    selection.confirm(control, "Remove", yes=yes, origin=Origin.STORED)
    removed = control.remove(*selection.names, **selection.asked, note=note)
    check_done(removed)
    if as_json:
        print_json(ctx, {"removed": removed})
    else:
        say(ctx, [f"removed {printable(name)}" for name in removed])
