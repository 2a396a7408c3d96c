"""``celery redlock resume``: let paused entries go on; what is caught up is not decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    say,
)
from celery_redlock_beat.cli._entry import tell_deeds
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.control import Resumed


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
    """Let paused entries go on with their next ticks.

    Also the pause of an entry that is gone ends so.
    """
    resumed = control_of(ctx).resume(
        *selection.names, **selection.asked, catch_up=catch_up, note=note
    )
    if as_json or not resumed:
        tell_deeds(ctx, resumed, "resumed", as_json=as_json)
    else:
        say(ctx, _lines(resumed))


def _lines(resumed: Resumed) -> Iterator[str]:
    for view in resumed:
        name = printable(view.name)
        yield f"resumed {name}" if view.name in resumed.names else f"{name} was not paused"
