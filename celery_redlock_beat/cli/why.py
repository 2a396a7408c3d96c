"""``celery redlock why``: say why a tick is what it is; it finds nothing out itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    print_json,
    say,
)
from celery_redlock_beat.cli._selection import name_argument
from celery_redlock_beat.cli._tables import fact_lines
from celery_redlock_beat.cli._times import read_tick
from celery_redlock_beat.cli._words import about, instant, moment, printable
from celery_redlock_beat.control.reasons import OUTCOMES
from celery_redlock_beat.errors import NoSuchEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.control import Control, HistoryRecord, Why

RECENT = 100


@click.command(
    cls=RedlockCommand,
    examples=("why nightly", "why nightly next", "why nightly 2030-01-31T02:30:00Z"),
    exits={1: "the ledger could not be asked"},
)
@name_argument
@click.argument("tick", metavar="[ISO|next]", callback=read_tick, required=False)
@json_option
@click.pass_context
def why(ctx: click.Context, *, name: str, tick: datetime | str | None, as_json: bool) -> None:
    """Say why a tick was sent, late, skipped, or is still to come: the last one, or that of ISO."""
    control = control_of(ctx)
    told = control.why(name, tick if isinstance(tick, datetime) else _tick(control, name, tick))
    if as_json:
        print_json(ctx, told)
    else:
        say(ctx, _lines(told, datetime.now(UTC)))


def _tick(control: Control, name: str, which: str | None) -> datetime:
    """Return the newest tick that something became of, or is under way; else the next one."""
    try:
        view = control.get(name)
    except NoSuchEntry:
        records = control.history(name, number=RECENT)
        return next(each for each in [*filter(_is_outcome, records), *records]).tick
    known = [*view.open, *([view.last.tick] if view.last else [])]
    if known and which is None:
        return max(known)
    coming = control.upcoming(1, name)
    return coming[0].tick if coming else datetime.now(UTC)


def _is_outcome(record: HistoryRecord) -> bool:
    return record.action in OUTCOMES


def _lines(told: Why, now: datetime) -> Iterator[str]:
    yield f"{printable(told.entry)}, {moment(told.at, now)}: {told.answer}"
    yield f"  {printable(told.text)}"
    if told.record is not None:
        yield from fact_lines(list(_facts(told.record)))


def _facts(record: HistoryRecord) -> Iterator[tuple[str, str]]:
    yield "recorded", f"{instant(record.at)} {record.action}"
    yield "node", printable(record.node)
    yield "task id", record.task_id
    yield "about", about(record)
