"""``celery redlock import-redbeat``: go on where RedBeat stopped; it changes nothing of RedBeat."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    note_option,
    print_json,
)
from celery_redlock_beat.cli._redbeat import opened, place_options
from celery_redlock_beat.cli._seeded import remark_on
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, printable, second
from celery_redlock_beat.cli.import_ import REFUSED, planned
from celery_redlock_beat.control import Origin
from celery_redlock_beat.control.seeding import CLAIMED
from celery_redlock_beat.predecessors.redbeat.moving import move_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from celery_redlock_beat.control import Control, Seeded
    from celery_redlock_beat.predecessors.redbeat.moving import Move

COLUMNS = ("name", "done", "last run", "remark")
MANY = 4
"""Of so many entries, the same remark is made once."""
SENT_SINCE = "it was sent here since RedBeat's last run, and goes on"


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of an entry of RedBeat: as ``import`` tells it, or ``seeded``, or ``left``.

    ``problem`` says why it was refused or left, ``warnings`` what will be otherwise, or was lost by
    RedBeat already.
    """

    name: str
    done: str
    last_run: datetime | None
    problem: str = ""
    warnings: Sequence[str] = ()


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
    moved = _carry_out(control, move, note, replace=replace, dry_run=dry_run)
    done = sorted(moved, key=lambda each: each.name)
    if holder:
        _warn_of_lock(holder)
    if as_json:
        print_json(ctx, {"dry_run": dry_run, "locked": bool(holder), "entries": done})
    elif done:
        _show(ctx, done)
    else:
        ctx.obj.echo(
            f"There is no RedBeat with the prefix {redbeat.keys.prefix} at {redbeat.label}."
        )
    ctx.exit(int(any(each.done == REFUSED for each in done)))


def _carry_out(
    control: Control, move: Move, note: str, *, replace: bool, dry_run: bool
) -> Iterator[Moved]:
    for name, problem in move.refused.items():
        yield _moved(move, name, REFUSED, problem)
    for name, problem in move.left.items():
        yield _moved(move, name, "left", problem)
    if dry_run:
        stored = planned(control, move.documents, replace=replace)
    else:
        stored = control.import_(
            move.documents, replace=replace, note=note, last_runs=move.last_runs
        )
    for each in stored:
        yield _moved(move, each.name, each.done, each.problem)
    if move.in_code:
        for seeded in control.seed(move.in_code, again=True, note=note, dry_run=dry_run):
            yield _begun(move, seeded)


def _begun(move: Move, seeded: Seeded) -> Moved:
    if seeded.problem == CLAIMED:  # since RedBeat's last run, or it would begin there again
        return _moved(move, seeded.name, "left", SENT_SINCE)
    if seeded.problem:
        return _moved(move, seeded.name, REFUSED, seeded.problem)
    return _moved(move, seeded.name, seeded.done, "", remark_on(seeded))


def _moved(move: Move, name: str, done: str, problem: str, remark: str = "") -> Moved:
    ran = move.last_runs.get(name) or move.in_code.get(name)
    return Moved(name, done, ran, problem, [*move.warnings.get(name, ()), *filter(None, [remark])])


def _warn_of_lock(holder: str) -> None:
    click.echo(
        f"Warning: {holder}, and it goes on sending: stop it, and import again before the first "
        "node starts; or set redlock_beat_interlock = 'redbeat', and the nodes wait for it",
        err=True,
    )


def _show(ctx: click.Context, done: Sequence[Moved]) -> None:
    """Print a row for each entry; what many have in common is said once, below."""
    counted = Counter(text for each in done for text in each.warnings)
    common = {text: number for text, number in counted.items() if number >= MANY}
    rows = [_row(each, common) for each in done]
    show(ctx, Table(COLUMNS, rows, wide=("remark",)))
    for text, number in common.items():
        ctx.obj.echo(f"Of {number} entries: {printable(text)}.")


def _row(each: Moved, common: Collection[str]) -> list[str]:
    told = (each.problem, *(text for text in each.warnings if text not in common))
    remarks = "; ".join(printable(text) for text in told if text)
    return [printable(each.name), each.done, second(each.last_run), remarks or NOTHING]
