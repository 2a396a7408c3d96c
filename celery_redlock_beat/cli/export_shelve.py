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
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import printable, second
from celery_redlock_beat.control import Origin
from celery_redlock_beat.diagnostics.findings import many
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors import shelve_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from celery import Celery

    from celery_redlock_beat.control import Control


@click.command(
    "export-shelve",
    cls=RedlockCommand,
    examples=("export-shelve celerybeat-schedule",),
    exits={2: "there is a file of this name already"},
)
@click.argument("file", type=click.Path(), default="celerybeat-schedule")
@json_option
@click.pass_context
def export_shelve(ctx: click.Context, *, file: str, as_json: bool) -> None:
    """Write a schedule FILE with which stock beat goes on where the nodes stopped.

    Stop the nodes first. Stock beat takes all but the last runs from its own schedule, in which
    there may be no cron string and no policy of ours; stored entries it does not have.
    """
    control = control_of(ctx)
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
    alive = sum(node.alive for node in control.nodes())
    if alive:
        click.echo(
            f"Warning: {many(alive, 'node lives', 'nodes live')}, and what they send from now on "
            "is not in the file: stop all nodes, and write it again",
            err=True,
        )
    stored = control.entries(origin=Origin.STORED)
    if stored:
        told = many(len(stored), "entry is", "entries are")
        click.echo(f"Warning: {told} stored, and stock beat does not have them", err=True)


def _write(file: str, app: Celery, last_runs: Mapping[str, datetime]) -> None:
    try:
        shelve_file.write(file, app, last_runs)
    except FileExistsError:
        raise WrongUsage(f"there is a file {file}: remove it, or give another name") from None
    except ConfigurationError as problem:
        raise WrongUsage(str(problem)) from None
