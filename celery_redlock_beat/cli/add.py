"""``celery redlock add``: store a new entry, and tell when it is due; it checks nothing itself."""

from __future__ import annotations

from typing import Any

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
)
from celery_redlock_beat.cli._definition import definition_options, fields_of
from celery_redlock_beat.cli._entry import answer


@click.command(
    cls=RedlockCommand,
    examples=(
        "add pulse --task proj.pulse --schedule 30s",
        "add nightly --task proj.report --schedule '30 2 * * *' --timezone Europe/Berlin",
        "add once --task proj.hello --schedule 2030-01-31T12:00:00Z --args '[1, 2]'",
        "add bills --task proj.bill --schedule @monthly --set catch_up=all --tag billing",
        """add odd --task proj.odd --schedule '{"kind": "cron", "expression": "H 9 * * *"}'""",
    ),
    exits={1: "there is such an entry already, or the ledger could not be asked"},
)
@click.argument("name")
@definition_options(required=True)
@note_option
@json_option
@click.pass_context
def add(ctx: click.Context, /, *, name: str, note: str, as_json: bool, **given: Any) -> None:
    """Store a new entry, which all nodes follow at once.

    It is sent from its next tick on: nothing of the past is caught up.
    """
    control = control_of(ctx)
    view = control.add(name, **fields_of(given), note=note)
    answer(ctx, control, view, deed="added", as_json=as_json)
