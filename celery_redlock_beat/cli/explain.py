"""``celery redlock explain``: print what an expression means; it reads none itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._ticks import lines_of, ticks_options
from celery_redlock_beat.cli.doctor import is_app_given
from celery_redlock_beat.diagnostics.schedules import MISSING, Question, explained
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables import app_zone
from celery_redlock_beat.timetables.zones import UTC_ZONE

if TYPE_CHECKING:
    from datetime import datetime

    from celery_redlock_beat.timetables.zones import Zone


@click.command()
@click.argument("words", metavar="EXPR", nargs=-1, required=True)
@ticks_options(5, "In which zone it is told. Default: that of the app, if -A names one, or UTC.")
@click.option("--name", default="", help="The entry's name, which chooses what an H is.")
@click.pass_context
def explain(
    ctx: click.Context,
    *,
    words: tuple[str, ...],
    number: int,
    begin: datetime,
    zone: Zone | None,
    name: str,
) -> None:
    """Say what an expression means, and when it is due.

    EXPR is a cron string, an @nickname, or an RRULE; neither an app nor a server is needed. Quote
    it: a shell replaces stars by the names of files. The exit code is 1 if it is no schedule.
    """
    if len(words) > 1:
        raise click.UsageError(
            f"these are {len(words)} words, and EXPR is one: quote it, as in "
            f"celery redlock {ctx.info_name} '*/5 9-17 * * MON-FRI'"
        )
    try:
        default = app_zone(ctx.obj.app) if is_app_given(ctx) else UTC_ZONE
        told = explained(words[0], name, Question(begin, number, zone), default)
    except ConfigurationError as exc:
        raise click.ClickException(str(exc)) from None
    for line in lines_of(told.outlook):
        ctx.obj.echo(line)
    for doubt in told.doubts:
        ctx.obj.echo(f"  ! {doubt}")
    if told.lacks_the_extra:
        ctx.obj.echo(f"\n{MISSING}")
