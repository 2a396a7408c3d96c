"""``celery redlock export-redbeat``: a way back to RedBeat; it deletes nothing there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    ask,
    control_of,
    json_option,
    print_json,
    yes_option,
)
from celery_redlock_beat.cli._fleet import warn_of_live_nodes
from celery_redlock_beat.cli._redbeat import opened, place_options
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, printable, second
from celery_redlock_beat.control import Origin, State
from celery_redlock_beat.control.access import Access
from celery_redlock_beat.diagnostics.findings import many
from celery_redlock_beat.predecessors.redbeat.leaving import Leaving, leaving_of
from celery_redlock_beat.predecessors.redbeat.writing import write
from celery_redlock_beat.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from celery_redlock_beat.cli._redbeat import RedBeat
    from celery_redlock_beat.control import Control
    from celery_redlock_beat.predecessors.redbeat.records import Record

COLUMNS = ("name", "done", "last run", "remark")
REFUSED = "refused"
THEIRS = "only RedBeat has it, and goes on with it"
OF_THEIR_CODE = "only RedBeat has it, and deletes it as it starts, unless it is in code by then"


@dataclass(frozen=True, slots=True)
class Exported:
    """What became of an entry: ``written``, ``refused``, or ``left`` as RedBeat has it.

    ``problem`` says why it was refused or left, ``warnings`` what RedBeat cannot do of it.
    """

    name: str
    done: str
    last_run: datetime | None
    problem: str = ""
    warnings: Sequence[str] = ()


@click.command(
    "export-redbeat",
    cls=RedlockCommand,
    examples=("export-redbeat --dry-run", "export-redbeat --yes"),
    exits={1: "RedBeat runs, so nothing was written; or one was refused: the others are written"},
)
@place_options
@click.option("--dry-run", is_flag=True, help="Tell what would be written, and write nothing.")
@yes_option
@json_option
@click.pass_context
def export_redbeat(
    ctx: click.Context,
    *,
    prefix: str | None,
    url: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write all entries for RedBeat, so that it goes on where the nodes stopped.

    Stop the nodes first, unless they have the interlock. Nothing that they sent is sent again by
    RedBeat, and intervals go on. What RedBeat cannot express is told, entry by entry. What RedBeat
    has and is not here stays as it is.
    """
    redbeat, control = opened(ctx, prefix, url), control_of(ctx)
    _refuse_while_held(redbeat)
    if not Settings.from_app(ctx.obj.app).interlock:  # by which RedBeat hears of what is sent
        warn_of_live_nodes(control, "is not known to RedBeat: stop all nodes, and export again")
    leaving = sorted(_leaving(ctx, control, redbeat), key=lambda each: each.name)
    ready = [each.written for each in leaving if each.written]
    if ready and not dry_run:
        told = f"{many(len(ready), 'entry', 'entries')} for the RedBeat at {redbeat.label}"
        ask(f"Write {told}?", yes=yes, otherwise=f"this writes {told}")
        write(redbeat.client, redbeat.keys, ready)
    done = [_exported(each) for each in leaving]
    if as_json:
        print_json(ctx, {"dry_run": dry_run, "entries": done})
    elif done:
        show(ctx, Table(COLUMNS, [_row(each) for each in done], wide=("remark",)))
    else:
        ctx.obj.echo("There are no entries.")
    ctx.exit(int(any(each.done == REFUSED for each in done)))


def _refuse_while_held(redbeat: RedBeat) -> None:
    holder = redbeat.holder()
    if holder:
        raise click.ClickException(
            f"{holder}: stop it first, and if it was killed, wait until its lock ends"
        )


def _leaving(ctx: click.Context, control: Control, redbeat: RedBeat) -> Iterator[Leaving]:
    stored, (code, problems) = control.export(), control.export_code()
    bad = control.entries(origin=Origin.STORED, state=State.BAD)
    problems |= {view.name: view.problem for view in bad if view.name not in stored}
    documents: Mapping[str, Mapping[str, Any]] = {**stored, **code}
    theirs = {record.name: record for record in redbeat.records()}
    static = ctx.obj.app.conf.beat_schedule
    for name, problem in problems.items():
        yield Leaving(name, problem=problem)
    for name in theirs.keys() - documents.keys() - problems.keys():
        if not theirs[name].is_gone:
            yield Leaving(name, last_run=theirs[name].last_run_at, notes=(_theirs(theirs[name]),))
    access = Access(ctx.obj.app)
    ctx.call_on_close(access.close)
    for look in access.looks([name for name in documents if name not in problems]):
        document, known = documents[look.entry], theirs.get(look.entry)
        is_static = look.entry in code and look.entry in static
        yield leaving_of(document, look, known, redbeat.zone, is_static=is_static)


def _exported(each: Leaving) -> Exported:
    if each.written:
        return Exported(each.name, "written", each.last_run, warnings=each.notes)
    if each.problem:
        return Exported(each.name, REFUSED, each.last_run, each.problem, each.notes)
    return Exported(each.name, "left", each.last_run, "".join(each.notes))


def _theirs(record: Record) -> str:
    return OF_THEIR_CODE if record.is_static else THEIRS


def _row(each: Exported) -> list[str]:
    remarks = "; ".join(printable(text) for text in (each.problem, *each.warnings) if text)
    return [printable(each.name), each.done, second(each.last_run), remarks or NOTHING]
