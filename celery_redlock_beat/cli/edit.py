"""``celery redlock edit``: change a stored entry by options, or in an editor; it checks nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    WrongUsage,
    control_of,
    json_option,
    note_option,
)
from celery_redlock_beat.cli._definition import definition_options, fields_of
from celery_redlock_beat.cli._editing import edited
from celery_redlock_beat.cli._entry import answer
from celery_redlock_beat.cli._selection import name_argument
from celery_redlock_beat.cli._streams import is_terminal
from celery_redlock_beat.control import Origin
from celery_redlock_beat.errors import NotStored

if TYPE_CHECKING:
    from celery_redlock_beat.control import Control, EntryView


@click.command(
    cls=RedlockCommand,
    examples=(
        "edit nightly",
        "edit nightly --schedule '45 2 * * *'",
        "edit nightly --set catch_up=all --set jitter=null --note 'as of ticket 7'",
    ),
    exits={1: "it was changed meanwhile, is in code, or the ledger could not be asked"},
)
@name_argument
@definition_options(required=False)
@note_option
@json_option
@click.pass_context
def edit(ctx: click.Context, /, *, name: str, note: str, as_json: bool, **given: Any) -> None:
    """Change a stored entry: what the options say, or in $EDITOR without any.

    What was due before the change is not caught up. If somebody else changed it meanwhile, nothing
    is done, and both are shown; what was typed in an editor is kept in a file.
    """
    control = control_of(ctx)
    changes = fields_of(given)
    if changes:
        changed: EntryView | None = control.update(name, **changes, note=note)
    else:
        changed = _in_editor(control, name, note)
    if changed is None:
        answer(ctx, control, control.get(name), deed="did not change", as_json=as_json)
    else:
        answer(ctx, control, changed, deed="changed", as_json=as_json)


def _in_editor(control: Control, name: str, note: str) -> EntryView | None:
    """Have the document changed until it is good, and put it into the place of that revision."""
    view = control.get(name)
    if view.origin is not Origin.STORED:
        raise NotStored(f"entry {name!r} is defined in code: edit it there")
    if not is_terminal(sys.stdin):
        raise WrongUsage("nothing was done: there is no terminal to edit on, so give options")

    def take(document: Any) -> EntryView:
        return control.replace(name, document, revision=view.revision, note=note)

    return edited(name, view.definition, take)
