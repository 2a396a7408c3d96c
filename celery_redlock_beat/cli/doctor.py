"""``celery redlock doctor``: print what an examination found; it examines nothing itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._findings import report_lines
from celery_redlock_beat.diagnostics import Report, Severity, examine, many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery import Celery

EXIT_CODES = {Severity.ERROR: 2, Severity.WARNING: 1}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program.")
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Find out what is wrong with configuration, server and ledger.

    Nothing is changed. The exit code is 0 if there are hints at most, 1 if there are warnings, and
    2 if there are errors.
    """
    report = examine(app_of(ctx))
    if as_json:
        ctx.obj.echo(json.dumps(as_dict(report), indent=2))
    else:
        for line in _lines(report, plain=ctx.obj.no_color):
            ctx.obj.echo(line)
    ctx.exit(exit_code(report))


def app_of(ctx: click.Context) -> Celery:
    """Return the app that ``celery -A`` was given; without one, end with what to type."""
    app: Celery = ctx.obj.app
    if not (is_app_given(ctx) or app.conf.get("redlock_beat_url") or app.conf.broker_url):
        raise click.UsageError(f"there is no app: write celery -A proj redlock {ctx.info_name}")
    return app


def is_app_given(ctx: click.Context) -> bool:
    """Answer whether ``celery`` was given an app with ``-A``."""
    return ctx.find_root().params.get("app") is not None


def exit_code(report: Report) -> int:
    """Return the code by the worst finding."""
    return max((EXIT_CODES.get(each.severity, 0) for each in report.findings), default=0)


def as_dict(report: Report) -> dict[str, object]:
    """Return a report as ``--json`` prints it."""
    return {
        "facts": dict(report.facts),
        "findings": [asdict(finding) for finding in report.findings],
        "counts": {f"{severity}s": report.count(severity) for severity in Severity},
    }


def _lines(report: Report, *, plain: bool) -> Iterator[str]:
    yield from report_lines(report, plain=plain)
    if not report.findings:
        yield "Nothing is wrong."
        return
    yield ", ".join(many(report.count(each), each, f"{each}s") for each in Severity)
