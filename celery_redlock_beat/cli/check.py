"""``celery redlock check``: print what is wrong with the schedule; it checks nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import RedlockCommand, app_of, json_option, print_json, say
from celery_redlock_beat.cli._findings import report_lines
from celery_redlock_beat.cli.doctor import as_dict
from celery_redlock_beat.diagnostics import Severity, many
from celery_redlock_beat.diagnostics.schedules import ScheduleReport, check_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(
    cls=RedlockCommand,
    examples=("check", "check --strict --json"),
    exits={0: "all is good, or only warned of", 1: "something is bad"},
)
@click.option("--strict", is_flag=True, help="Let warnings fail, too.")
@json_option
@click.pass_context
def check(ctx: click.Context, *, strict: bool, as_json: bool) -> None:
    """Find bad settings and bad entries; no server is needed.

    For a build. The schedule is loaded as beat loads it, with what add_periodic_task adds, and
    nothing is sent.
    """
    report = check_schedule(app_of(ctx))
    if as_json:
        print_json(ctx, {**as_dict(report), "entries": report.entries})
    else:
        say(ctx, _lines(report, plain=ctx.obj.no_color))
    failing = (Severity.ERROR, Severity.WARNING) if strict else (Severity.ERROR,)
    ctx.exit(int(any(finding.severity in failing for finding in report.findings)))


def _lines(report: ScheduleReport, *, plain: bool) -> Iterator[str]:
    yield from report_lines(report, plain=plain)
    yield _summary(report)


def _summary(report: ScheduleReport) -> str:
    others = report.count(Severity.ERROR) - report.bad_entries
    if report.entries is None:
        return f"{many(others, 'error', 'errors')}: the entries were not looked at"
    parts = [
        many(report.entries, "entry", "entries"),
        f"{report.bad_entries:,} bad",
        many(report.count(Severity.WARNING), "warning", "warnings"),
    ]
    return ", ".join([*parts, many(others, "other error", "other errors")] if others else parts)
