"""``celery redlock export-shelve``: a way back to stock beat; it changes nothing in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    WrongUsage,
    app_of,
    control_of,
    json_option,
    print_json,
)
from celery_redlock_beat.cli._fleet import warn_of_live_nodes
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import listed, printable, second
from celery_redlock_beat.control import Origin
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors import shelve_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.control import Control


@click.command(
    "export-shelve",
    cls=RedlockCommand,
    examples=("export-shelve celerybeat-schedule",),
    exits={2: "there is a file of this name already"},
)
@click.argument("file", type=click.Path(), required=False)
@json_option
@click.pass_context
def export_shelve(ctx: click.Context, *, file: str | None, as_json: bool) -> None:
    """Write a schedule FILE with which stock beat goes on where the nodes stopped.

    Stop the nodes first. Stock beat takes all but the last runs from its own schedule, in which
    there may be no cron string and no policy of ours; stored entries it does not have, and it sends
    what is paused here. Its Python must have the kind of database that this one writes.
    """
    control = control_of(ctx)
    file = file or str(ctx.obj.app.conf.beat_schedule_filename)
    _warn(control)
    last_runs = control.last_runs()
    _write(file, app_of(ctx), last_runs)
    entries = [{"name": name, "last_run": at} for name, at in sorted(last_runs.items())]
    if as_json:
        print_json(ctx, {"file": file, "entries": entries})
    else:
        rows = [[printable(name), second(at)] for name, at in sorted(last_runs.items())]
        show(ctx, Table(("name", "last run"), rows))


def _warn(control: Control) -> None:
    warn_of_live_nodes(control, "is not in the file: stop all nodes, and write it again")
    views = control.entries()
    stored = [each.name for each in views if each.origin is Origin.STORED]
    _tell(stored, "does not have what is stored")
    _tell([each.name for each in views if each.paused], "sends what is paused here")
    _tell([each.name for each in views if each.open], "sends what nobody finished here")


def _tell(names: Sequence[str], what: str) -> None:
    """Warn of what stock beat does with entries that are stored, paused, or not finished."""
    if names:
        click.echo(f"Warning: stock beat {what}: {listed(names)}", err=True)


def _write(file: str, app: Celery, last_runs: Mapping[str, datetime]) -> None:
    try:
        shelve_file.write(file, app, last_runs)
    except FileExistsError:
        raise WrongUsage(f"there is a file {file}: remove it, or give another name") from None
    except ConfigurationError as problem:
        raise WrongUsage(str(problem)) from None
