"""``celery redlock import-shelve``: begin where stock beat stopped; it stores no entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    WrongUsage,
    control_of,
    json_option,
    note_option,
    print_json,
)
from celery_redlock_beat.cli._seeded import show_seeded
from celery_redlock_beat.cli._words import printable
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors import shelve_file

if TYPE_CHECKING:
    from datetime import tzinfo

    from celery_redlock_beat.predecessors.shelve_file import ShelveFile


@click.command(
    "import-shelve",
    cls=RedlockCommand,
    examples=(
        "import-shelve celerybeat-schedule --dry-run",
        "import-shelve /var/lib/celery/celerybeat-schedule",
    ),
    exits={1: "one was refused: the others are seeded", 2: "the file cannot be read"},
)
@click.argument("file", type=click.Path(), required=False)
@click.option("--again", is_flag=True, help="Also where ticks were claimed: it has sent since.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@note_option
@json_option
@click.pass_context
def import_shelve(
    ctx: click.Context, *, file: str | None, again: bool, dry_run: bool, note: str, as_json: bool
) -> None:
    """Let entries begin where stock beat stopped, as its schedule FILE says.

    FILE is what beat was given with --schedule; by default it is the app's own. Stop stock beat
    first, and do this before the first node starts: nothing that it sent is sent again, what was
    due since is caught up, and intervals go on with their phase. An entry is refused once a tick of
    it was claimed; if you had gone back to stock beat, stop the nodes, and say --again. The file
    stays as it is.
    """
    control, app = control_of(ctx), ctx.obj.app
    found = _read(file or str(app.conf.beat_schedule_filename), app.timezone)
    seeded = control.seed(found.last_runs, again=again, note=note, dry_run=dry_run)
    if as_json:
        print_json(ctx, {"dry_run": dry_run, "entries": seeded, "unreadable": found.unreadable})
    else:
        show_seeded(ctx, seeded)
    if found.unreadable:
        told = ", ".join(map(printable, found.unreadable))
        click.echo(f"Warning: in a zone that cannot be told, so not seeded: {told}", err=True)
    ctx.exit(int(bool(found.unreadable) or any(each.done == "refused" for each in seeded)))


def _read(file: str, zone: tzinfo) -> ShelveFile:
    try:
        return shelve_file.read(file, zone)
    except FileNotFoundError:
        raise WrongUsage(f"there is no file {file}: give that of beat's --schedule") from None
    except ConfigurationError as problem:
        raise WrongUsage(str(problem)) from None
