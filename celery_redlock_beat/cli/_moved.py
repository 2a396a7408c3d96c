"""Take over what another scheduler has, and tell what became of each entry; it reads none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.cli._seeded import remark_on
from celery_redlock_beat.cli._tables import Table, show
from celery_redlock_beat.cli._words import NOTHING, printable, second
from celery_redlock_beat.cli.import_ import REFUSED, planned
from celery_redlock_beat.control.seeding import CLAIMED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    import click

    from celery_redlock_beat.control import Control, Seeded
    from celery_redlock_beat.predecessors.move import Move

COLUMNS = ("name", "done", "last run", "remark")
MANY = 4
"""Of so many entries, the same remark is made once."""
SENT_SINCE = "it was sent here since its last run there, and goes on"


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of an entry: as ``import`` tells it, or ``seeded``, or ``left``.

    ``problem`` says why it was refused or left, ``warnings`` what will be otherwise, or was lost by
    the other scheduler already.
    """

    name: str
    done: str
    last_run: datetime | None
    problem: str = ""
    warnings: Sequence[str] = ()


def carry_out(
    control: Control, move: Move, note: str, *, replace: bool, dry_run: bool
) -> list[Moved]:
    """Store and seed entries, or only tell what would be done; return what became of each."""
    moved = _carried_out(control, move, note, replace=replace, dry_run=dry_run)
    return sorted(moved, key=lambda each: each.name)


def show_moved(ctx: click.Context, done: Sequence[Moved]) -> None:
    """Print a row for each entry; what many have in common is said once, below."""
    counted = Counter(text for each in done for text in each.warnings)
    common = {text: number for text, number in counted.items() if number >= MANY}
    rows = [_row(each, common) for each in done]
    show(ctx, Table(COLUMNS, rows, wide=("remark",)))
    for text, number in common.items():
        ctx.obj.echo(f"Of {number} entries: {printable(text)}.")


def exit_code(done: Sequence[Moved]) -> int:
    """Return 1 if one was refused."""
    return int(any(each.done == REFUSED for each in done))


def _carried_out(
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
    if seeded.problem.startswith(
        CLAIMED
    ):  # since the last run there, or it would begin there again
        return _moved(move, seeded.name, "left", SENT_SINCE)
    if seeded.problem:
        return _moved(move, seeded.name, REFUSED, seeded.problem)
    return _moved(move, seeded.name, seeded.done, "", remark_on(seeded))


def _moved(move: Move, name: str, done: str, problem: str, remark: str = "") -> Moved:
    ran = move.last_runs.get(name) or move.in_code.get(name)
    return Moved(name, done, ran, problem, [*move.warnings.get(name, ()), *filter(None, [remark])])


def _row(each: Moved, common: Collection[str]) -> list[str]:
    told = (each.problem, *(text for text in each.warnings if text not in common))
    remarks = "; ".join(printable(text) for text in told if text)
    return [printable(each.name), each.done, second(each.last_run), remarks or NOTHING]
