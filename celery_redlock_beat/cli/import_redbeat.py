"""``celery redlock import-redbeat``: go on where RedBeat stopped; it changes nothing of RedBeat."""

from __future__ import annotations

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    print_json,
)
from celery_redlock_beat.cli._moved import carry_out, exit_code, show_moved
from celery_redlock_beat.cli._redbeat import opened, place_options
from celery_redlock_beat.control import Origin
from celery_redlock_beat.predecessors.redbeat.moving import move_of


@click.command(
    "import-redbeat",
    cls=RedlockCommand,
    examples=(
        "import-redbeat --dry-run",
        "import-redbeat --note 'leaving RedBeat'",
        "import-redbeat --url redis://old:6379/1 --prefix shop:",
    ),
    exits={1: "one was refused: the others are there; or RedBeat's Redis could not be asked"},
)
@place_options
@click.option("--replace", is_flag=True, help="Also change those that are stored and differ.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@note_option
@json_option
@click.pass_context
def import_redbeat(
    ctx: click.Context,
    *,
    prefix: str | None,
    url: str | None,
    replace: bool,
    dry_run: bool,
    note: str,
    as_json: bool,
) -> None:
    """Take over RedBeat's entries where it stopped.

    What was added to RedBeat at run time becomes stored entries; those from code, which stay there,
    only begin after their last run. Nothing that RedBeat sent is sent again, what was due since is
    caught up, and intervals go on with their phase. Stop RedBeat first, or use the interlock.
    RedBeat's data stays as it is; if RedBeat has gone on, import again with --replace.
    """
    redbeat, control = opened(ctx, prefix, url), control_of(ctx)
    holder = redbeat.holder()
    code = {view.name for view in control.entries(origin=Origin.CODE)}
    move = move_of(redbeat.records(), code)
    done = carry_out(control, move, note, replace=replace, dry_run=dry_run)
    if holder:
        _warn_of_lock(holder)
    if as_json:
        print_json(ctx, {"dry_run": dry_run, "locked": bool(holder), "entries": done})
    elif done:
        show_moved(ctx, done)
    else:
        ctx.obj.echo(
            f"There is no RedBeat with the prefix {redbeat.keys.prefix} at {redbeat.label}."
        )
    ctx.exit(exit_code(done))


def _warn_of_lock(holder: str) -> None:
    click.echo(
        f"Warning: {holder}, and it goes on sending: stop it, and import again before the first "
        "node starts; or set redlock_beat_interlock = 'redbeat', and the nodes wait for it",
        err=True,
    )
