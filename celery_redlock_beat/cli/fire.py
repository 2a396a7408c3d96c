"""``celery redlock fire``: send entries now, beside their schedules; it sends nothing itself."""

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
    yes_option,
)
from celery_redlock_beat.cli._entry import check_done
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from celery_redlock_beat.control import Fired


@click.command(
    cls=RedlockCommand,
    examples=(
        "fire nightly",
        "fire nightly --key deploy-42",
        "fire --tag warm-up --note 'after the deploy'",
    ),
    exits={
        0: "it was sent; what a pattern matched and is paused is told, and left out",
        1: "one that was named is paused, or nothing was sent, or the ledger could not be asked",
    },
)
@selection_options
@click.option("--key", help="Send no second message of the same entry and key.")
@click.option("--force", is_flag=True, help="Also what is paused or disabled.")
@note_option
@yes_option
@json_option
@click.pass_context
def fire(
    ctx: click.Context,
    *,
    selection: Selection,
    key: str | None,
    force: bool,
    note: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Send entries once, now; their schedules do not move.

    With a --key it can be said again without harm, as after an error of the network. With --all, it
    asks first.
    """
    control = control_of(ctx)
    if selection.all:
        selection.confirm(control, "Send", yes=yes)
    fired = control.fire(*selection.names, **selection.asked, key=key, force=force, note=note)
    check_done(fired)
    if as_json:
        print_json(ctx, {"fired": fired})
    else:
        say(ctx, _lines(fired))


def _lines(fired: Sequence[Fired]) -> Iterator[str]:
    for each in fired:
        deed = "was sent before:" if each.already else "sent"
        yield f"{deed} {printable(each.entry)}, task id {each.task_id}"
