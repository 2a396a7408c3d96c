"""``celery redlock next``: print when entries are due next; it computes no tick itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import RedlockCommand, app_of, json_option, print_json, say
from celery_redlock_beat.cli._completion import complete_names
from celery_redlock_beat.cli._ticks import document_of, lines_of, ticks_options
from celery_redlock_beat.diagnostics.schedules import MISSING, Question, Schedule, load
from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from celery_redlock_beat.timetables.zones import Zone


@click.command(
    cls=RedlockCommand,
    examples=("next", "next newsletter -n 3", "next 'report-*' --from 2030-01-31 --timezone UTC"),
    exits={1: "one is a bad entry, or the app could not add all of its own"},
)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_names)
@ticks_options(10, "In which zone they are shown. Default: that of each entry.")
@json_option
@click.pass_context
def next(  # noqa: A001 - the command's name
    ctx: click.Context,
    *,
    names: tuple[str, ...],
    number: int,
    begin: datetime,
    zone: Zone | None,
    as_json: bool,
) -> None:
    """Show when entries are due next; no server is needed.

    Each NAME is an entry, or a pattern as 'report-*'; without one, all are shown. What was sent
    already, what is paused, and entries that are stored, are not known here: see show.
    """
    try:
        schedule = load(app_of(ctx))
    except ConfigurationError as exc:
        raise click.ClickException(str(exc)) from None
    chosen = _chosen(schedule, names)
    asked = Question(begin, number, zone)
    if as_json:
        outlooks = [document_of(name, schedule.outlook(name, asked)) for name in chosen]
        print_json(ctx, {"entries": outlooks})
    else:
        say(ctx, _lines(schedule, chosen, asked))
    for failed in schedule.failed_handlers:
        click.echo(f"{failed.subject}: {failed.meaning}", err=True)
    is_bad = schedule.failed_handlers or not schedule.faults.keys().isdisjoint(chosen)
    ctx.exit(int(bool(is_bad)))


def _lines(schedule: Schedule, chosen: list[str], asked: Question) -> Iterator[str]:
    if not chosen:
        yield "There are no entries."
    for place, name in enumerate(chosen):
        yield from [""] if place else []
        yield from lines_of(schedule.outlook(name, asked))
    if schedule.lacks_the_extra(chosen):
        yield f"\n{MISSING}"


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
