"""``celery redlock explain``: print what an expression means; it reads none itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    is_app_given,
    json_option,
    print_json,
    say,
)
from celery_redlock_beat.cli._said import hinted
from celery_redlock_beat.cli._ticks import document_of, lines_of, ticks_options
from celery_redlock_beat.diagnostics.schedules import MISSING, Question, explained
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables import app_zone
from celery_redlock_beat.timetables.zones import UTC_ZONE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from celery_redlock_beat.diagnostics.schedules import Explanation
    from celery_redlock_beat.timetables.zones import Zone


@click.command(
    cls=RedlockCommand,
    examples=(
        "celery redlock explain '*/5 9-17 * * MON-FRI'",
        "celery redlock explain @hourly --timezone Europe/Berlin -n 3",
    ),
    exits={1: "it is no schedule"},
)
@click.argument("words", metavar="EXPR", nargs=-1, required=True)
@ticks_options(5, "In which zone it is told. Default: that of the app, if -A names one, or UTC.")
@click.option("--name", default="", help="The entry's name, which chooses what an H is.")
@json_option
@click.pass_context
def explain(
    ctx: click.Context,
    *,
    words: tuple[str, ...],
    number: int,
    begin: datetime,
    zone: Zone | None,
    name: str,
    as_json: bool,
) -> None:
    """Say what an expression means, and when it is due.

    EXPR is a cron string, an @nickname, or an RRULE; neither an app nor a server is needed. Quote
    it: a shell replaces stars by the names of files.
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
        raise click.ClickException(hinted(str(exc))) from None
    if as_json:
        print_json(ctx, {**document_of(words[0], told.outlook), "doubts": told.doubts})
    else:
        say(ctx, _lines(told))


def _lines(told: Explanation) -> Iterator[str]:
    yield from lines_of(told.outlook)
    yield from (f"  ! {doubt}" for doubt in told.doubts)
    if told.lacks_the_extra:
        yield f"\n{MISSING}"
