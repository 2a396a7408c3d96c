"""``celery redlock import``: store the entries of a file; it checks none itself."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    WrongUsage,
    control_of,
    json_option,
    note_option,
    print_json,
)
from celery_redlock_beat.cli._said import hinted
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, printable
from celery_redlock_beat.control import Imported, Origin
from celery_redlock_beat.control.importing import STORED_OTHERWISE
from celery_redlock_beat.documents.files import load
from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.control import Control

    Documents = Mapping[str, Mapping[str, Any]]

COLUMNS = ("name", "done", "problem")
YAML = (".yaml", ".yml")
REFUSED = "refused"


@click.command(
    "import",
    cls=RedlockCommand,
    examples=(
        "import entries.yaml --dry-run",
        "import entries.json --replace --note 'from git'",
        "import - < entries.json",
    ),
    exits={1: "one was refused: the others are stored", 2: "the file cannot be read"},
)
@click.argument("file", type=click.File("rb"))
@click.option("--replace", is_flag=True, help="Also change those that are stored and differ.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@click.option("--format", "kind", type=click.Choice(["json", "yaml"]), help="Default: it is seen.")
@note_option
@json_option
@click.pass_context
def import_(
    ctx: click.Context,
    *,
    file: IO[bytes],
    replace: bool,
    dry_run: bool,
    kind: str | None,
    note: str,
    as_json: bool,
) -> None:
    """Store the entries of a FILE, as export writes it; - is stdin.

    One that is bad, in code, or stored and different (without --replace) is refused, and does not
    stop the others. Entries that are not in the file stay as they are.
    """
    documents, done = _read(file, kind)
    control = control_of(ctx)
    if dry_run:
        done += planned(control, documents, replace=replace)
    elif documents:
        done += control.import_(documents, replace=replace, note=note)
    if as_json:
        print_json(ctx, {"dry_run": dry_run, "entries": done})
    elif done:
        show(ctx, Table(COLUMNS, [_row(each) for each in done], wide=("problem",)))
    else:
        ctx.obj.echo("There are no entries in it.")
    ctx.exit(int(any(each.done == REFUSED for each in done)))


def _read(file: IO[bytes], kind: str | None) -> tuple[Documents, list[Imported]]:
    """Return the documents in a file, and what cannot be one."""
    text = file.read()
    is_yaml = kind == "yaml" if kind else _is_yaml(file.name, text)
    try:
        loaded = load(text, "yaml" if is_yaml else "json")
    except ConfigurationError as problem:
        raise WrongUsage(f"{file.name}: {problem}") from None
    documents = {name: json.loads(each) for name, each in loaded.documents.items()}
    return documents, [
        Imported(name, REFUSED, hinted(each)) for name, each in loaded.problems.items()
    ]


def _is_yaml(name: str, text: bytes) -> bool:
    name = name.lower()
    if name.endswith((*YAML, ".json")):
        return name.endswith(YAML)
    return not text.lstrip().startswith(b"{")


def planned(control: Control, documents: Documents, *, replace: bool) -> list[Imported]:
    """Return what an import would do, but for what only storing itself can find."""
    views = {view.name: view for view in control.entries()}
    plan = []
    for name, document in documents.items():
        view = views.get(name)
        if view is None:
            plan.append(Imported(name, "added"))
        elif view.origin is not Origin.STORED:
            plan.append(Imported(name, REFUSED, "it is defined in code"))
        elif view.definition == document:
            plan.append(Imported(name, "same"))
        elif replace:
            plan.append(Imported(name, "changed"))
        else:
            plan.append(Imported(name, REFUSED, STORED_OTHERWISE))
    return plan


def _row(each: Imported) -> list[str]:
    return [printable(each.name), each.done, printable(each.problem) or NOTHING]
