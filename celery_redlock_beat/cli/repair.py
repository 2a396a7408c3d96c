"""``celery redlock repair``: show what would be done, ask, have it done, print the audit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import click

from celery_redlock_beat.cli._command import RedlockCommand, app_of, json_option, print_json
from celery_redlock_beat.control.access import whoever
from celery_redlock_beat.diagnostics.findings import instant, many, name_of, raw_text, span
from celery_redlock_beat.diagnostics.parsing import read_mark
from celery_redlock_beat.diagnostics.repairs import Refusal, Repair, Repairs
from celery_redlock_beat.ticks import SECOND, to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.store.audit import AuditRecord
    from celery_redlock_beat.ticks import Micros

    Instant = Micros | Literal["now"]

MOST_SHOWN = 20


def _mark(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Instant | None:
    """Read an instant with its offset from UTC, or ``now``, or nothing."""
    if value is None or value == "now":
        return "now" if value else None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = datetime.min  # noqa: DTZ901  refused, as every instant without an offset is
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value!r}: write it as 2030-01-31T12:00:00Z, or as 'now'")
    try:
        return to_micros(moment)
    except OverflowError:
        raise click.BadParameter(f"{value!r} is out of all bounds") from None


@click.command(
    cls=RedlockCommand,
    examples=("repair nightly --why 'NTP was down'", "repair --future --dry-run", "repair --log"),
)
@click.argument("entry", required=False)
@click.option(
    "--mark",
    metavar="ISO|now",
    callback=_mark,
    help="Up to when nothing is sent (again). Default: now.",
)
@click.option("--future", is_flag=True, help="All entries that are ahead of the server's clock.")
@click.option("--why", default="", help="The reason, which is kept in the audit.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--log", "show_log", is_flag=True, help="Show what was repaired before.")
@json_option
@click.pass_context
def repair(ctx: click.Context, /, *, show_log: bool, as_json: bool, **options: Any) -> None:
    """Set the mark of ENTRY: what is due up to it counts as settled.

    A mark that is ahead of the server's clock holds its entry back until then. What was done, by
    whom and why is kept. Nodes that run follow within a second.
    """
    repairs = Repairs(app_of(ctx))
    if show_log:
        _show_log(ctx, repairs, as_json=as_json)
    else:
        _repair(ctx, repairs, as_json=as_json, **options)


def _repair(
    ctx: click.Context,
    repairs: Repairs,
    *,
    entry: str | None,
    mark: Instant | None,
    future: bool,
    why: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    if future == bool(entry) or (future and mark):
        raise click.UsageError("name one ENTRY, or give --future alone")
    planned = _plan(repairs, entry, mark)
    if not as_json:
        _show(ctx, planned)
    done: Sequence[AuditRecord] = ()
    if planned and not dry_run:
        if not yes:
            question = f"Set {many(len(planned), 'mark', 'marks')}?"
            click.confirm(question, abort=True, err=as_json)
        done = repairs.carry_out(planned, whoever(), why)
    if as_json:
        print_json(ctx, {"planned": [*map(_planned, planned)], "done": [*map(_record, done)]})
        return
    for record in done:
        _show_record(ctx, record)


def _plan(repairs: Repairs, entry: str | None, mark: Instant | None) -> list[Repair]:
    if not entry:
        return repairs.plan_future()
    planned = repairs.plan(entry, mark)
    if isinstance(planned, Refusal):
        raise click.ClickException(planned.text)
    return [planned]


def _show(ctx: click.Context, planned: Sequence[Repair]) -> None:
    if not planned:
        ctx.obj.echo("No entry is ahead of the server's clock: there is nothing to repair.")
    for each in planned[:MOST_SHOWN]:
        ctx.obj.echo(name_of(each.entry.encode()))
        ctx.obj.echo(f"  from  {_told(each.before, each.now)}")
        ctx.obj.echo(f"  to    {_told(each.after, each.now)}")
        for consequence in each.consequences():
            ctx.obj.echo(f"  - {consequence}")
    if len(planned) > MOST_SHOWN:
        ctx.obj.echo(f"and {len(planned) - MOST_SHOWN:,} more")


def _told(mark: Micros | None, now: Micros) -> str:
    if mark is None:
        return "unreadable"
    if abs(mark - now) < SECOND:
        return f"{instant(mark)} (now)"
    away = f"in {span(mark - now)}" if mark > now else f"{span(now - mark)} ago"
    return f"{instant(mark)} ({away})"


def _show_log(ctx: click.Context, repairs: Repairs, *, as_json: bool) -> None:
    records = repairs.log()
    if as_json:
        print_json(ctx, {"planned": [], "done": [*map(_record, reversed(records))]})
        return
    for record in reversed(records):
        _show_record(ctx, record)
    if not records:
        ctx.obj.echo("Nothing was ever repaired.")


def _show_record(ctx: click.Context, record: AuditRecord) -> None:
    known = read_mark(record.before)
    before = instant(known.mark) if known else f"unreadable {raw_text(record.before)}"
    why = f": {name_of(record.why.encode())}" if record.why else ""
    ctx.obj.echo(
        f"{instant(record.at - record.at % SECOND)} {name_of(record.who.encode())} set "
        f"{name_of(record.entry.encode())} from {before} to {instant(record.after)}{why}"
    )


def _planned(each: Repair) -> dict[str, Any]:
    """Return what would be done as JSON can have it; a mark that cannot be read is null."""
    return {
        "entry": each.entry,
        "from": None if each.before is None else instant(each.before),
        "to": instant(each.after),
        "consequences": [*each.consequences()],
    }


def _record(record: AuditRecord) -> dict[str, Any]:
    known = read_mark(record.before)
    return {
        "entry": record.entry,
        "from": instant(known.mark) if known else None,
        "to": instant(record.after),
        "at": instant(record.at),
        "who": record.who,
        "why": record.why,
    }
