"""``celery redlock export``: write entries as a file that import reads; it changes none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import RedlockCommand, control_of
from celery_redlock_beat.cli._selection import Selection, selection_options
from celery_redlock_beat.cli._words import printable
from celery_redlock_beat.control import Origin, State
from celery_redlock_beat.diagnostics.findings import many
from celery_redlock_beat.documents.files import dump

if TYPE_CHECKING:
    from celery_redlock_beat.control import Control

    Documents = dict[str, dict[str, Any]]

STDOUT = Path("-")
CLEANUP = "celery.backend_cleanup"
"""Celery adds it by itself, so it cannot be moved out of the code."""


@click.command(
    cls=RedlockCommand,
    examples=(
        "export -o entries.json",
        "export --tag billing --format yaml",
        "export --code --format yaml -o entries.yaml",
    ),
    exits={1: "an entry cannot be told as data: the others are; or the ledger could not be asked"},
)
@selection_options
@click.option(
    "--format",
    "kind",
    type=click.Choice(["json", "yaml"]),
    help="Default: by the end of FILE's name, or else json.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--code", is_flag=True, help="Those from code, instead of the stored ones.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="- is stdout.",
)
@click.pass_context
def export(
    ctx: click.Context,
    *,
    selection: Selection,
    kind: str | None,
    as_json: bool,
    code: bool,
    output: Path | None,
) -> None:
    """Write stored entries as JSON or YAML, to stdout or a FILE: a backup, or one for git.

    With --code those from code are written, which is the way to move them into the ledger. What
    only code can have, and what is stored and cannot be read, is left out and told on stderr.
    """
    control = control_of(ctx)
    output = None if output == STDOUT else output
    documents, problems = (_from_code if code else _stored)(control, selection)
    chosen = "json" if as_json else kind or kind_of(output)
    text = dump(documents, "yaml" if chosen == "yaml" else "json")
    _write(ctx, text, output)
    for name, problem in problems.items():
        click.echo(f"left out {printable(name)}: {printable(problem)}", err=True)
    if output is not None:
        click.echo(f"wrote {many(len(documents), 'entry', 'entries')} to {output}", err=True)
    ctx.exit(int(bool(problems)))


def _stored(control: Control, selection: Selection) -> tuple[Documents, dict[str, str]]:
    """Return the documents of what is stored, and what is wrong with the rest."""
    documents = control.export(*selection.names, **selection.said)
    views = control.entries(
        *selection.names, **selection.said, origin=Origin.STORED, state=State.BAD
    )
    return documents, {view.name: view.problem for view in views if view.name not in documents}


def _from_code(control: Control, selection: Selection) -> tuple[Documents, dict[str, str]]:
    documents, problems = control.export_code()
    if CLEANUP not in selection.names:
        documents.pop(CLEANUP, None)
    if selection.names or selection.tag or selection.task:
        views = control.entries(*selection.names, **selection.said, origin=Origin.CODE)
        meant = {view.name for view in views}
        documents = {name: documents[name] for name in documents if name in meant}
        problems = {name: problems[name] for name in problems if name in meant}
    return documents, problems


def kind_of(path: Path | None) -> str:
    """Return the kind of a file by the end of its name."""
    return "yaml" if path is not None and path.suffix.lower() in (".yaml", ".yml") else "json"


def _write(ctx: click.Context, text: str, output: Path | None) -> None:
    if output is None:
        ctx.obj.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}") from None
