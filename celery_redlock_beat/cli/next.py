"""``celery redlock next``: print when entries are due next; it computes no tick itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._ticks import lines_of, ticks_options
from celery_redlock_beat.cli.doctor import app_of
from celery_redlock_beat.diagnostics.schedules import MISSING, Question, Schedule, load
from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from datetime import datetime

    from celery_redlock_beat.timetables.zones import Zone


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@ticks_options(10, "In which zone they are shown. Default: that of each entry.")
@click.pass_context
def next(  # noqa: A001 - the command's name
    ctx: click.Context, *, names: tuple[str, ...], number: int, begin: datetime, zone: Zone | None
) -> None:
    """Show when entries are due next; no server is needed.

    Each NAME is an entry, or a pattern as 'report-*'; without one, all are shown. What was sent
    already and what is paused is not known here. The exit code is 1 if one of them is a bad entry,
    or the app could not add all of its own, and 2 if there is none of that name.
    """
    try:
        schedule = load(app_of(ctx))
    except ConfigurationError as exc:
        raise click.ClickException(str(exc)) from None
    chosen = _chosen(schedule, names)
    if not chosen:
        ctx.obj.echo("There are no entries.")
    asked = Question(begin, number, zone)
    for place, name in enumerate(chosen):
        for line in [*([""] if place else []), *lines_of(schedule.outlook(name, asked))]:
            ctx.obj.echo(line)
    if schedule.lacks_the_extra(chosen):
        ctx.obj.echo(f"\n{MISSING}")
    for failed in schedule.failed_handlers:
        click.echo(f"{failed.subject}: {failed.meaning}", err=True)
    is_bad = schedule.failed_handlers or not schedule.faults.keys().isdisjoint(chosen)
    ctx.exit(int(bool(is_bad)))


def _chosen(schedule: Schedule, patterns: tuple[str, ...]) -> list[str]:
    if not patterns:
        return schedule.names
    found: dict[str, None] = {}
    for pattern in patterns:
        matching = schedule.matching(pattern)
        if not matching:
            raise click.UsageError(schedule.no_such_name(pattern))
        found |= dict.fromkeys(matching)
    return list(found)
