"""``celery redlock doctor``: print what an examination found; it examines nothing itself."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.diagnostics import Finding, Report, Severity, examine, many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery import Celery

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.HINT: "cyan"}
EXIT_CODES = {Severity.ERROR: 2, Severity.WARNING: 1}
INDENT = " " * 9


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
        ctx.obj.echo(json.dumps(_as_dict(report), indent=2))
    else:
        for line in _lines(report, plain=ctx.obj.no_color):
            ctx.obj.echo(line)
    ctx.exit(exit_code(report))


def app_of(ctx: click.Context) -> Celery:
    """Return the app that ``celery -A`` was given; without one, end with what to type."""
    app: Celery = ctx.obj.app
    given = ctx.find_root().params.get("app")
    if given is None and not (app.conf.get("redlock_beat_url") or app.conf.broker_url):
        raise click.UsageError(f"there is no app: write celery -A proj redlock {ctx.info_name}")
    return app


def exit_code(report: Report) -> int:
    """Return the code by the worst finding."""
    return max((EXIT_CODES.get(each.severity, 0) for each in report.findings), default=0)


def _as_dict(report: Report) -> dict[str, object]:
    return {
        "facts": dict(report.facts),
        "findings": [asdict(finding) for finding in report.findings],
        "counts": {f"{severity}s": report.count(severity) for severity in Severity},
    }


def _lines(report: Report, *, plain: bool) -> Iterator[str]:
    for name, value in report.facts.items():
        yield f"{name:<8} {value}"
    for finding in report.findings:
        yield ""
        yield from _told(finding, plain=plain)
    yield ""
    if not report.findings:
        yield "Nothing is wrong."
        return
    yield ", ".join(many(report.count(each), each, f"{each}s") for each in Severity)


def _told(finding: Finding, *, plain: bool) -> Iterator[str]:
    severity = f"{finding.severity:<8}"
    if not plain:
        severity = click.style(severity, fg=COLOURS[finding.severity], bold=True)
    yield f"{severity} {finding.name}: {finding.subject}"
    yield from _wrapped(finding.meaning)
    for example in finding.examples:
        yield f"{INDENT}  - {example}"
    if finding.examples and finding.count > len(finding.examples):
        yield f"{INDENT}  - and {finding.count - len(finding.examples):,} more"
    yield f"{INDENT}→ {finding.advice}"  # on one line: it may hold a command to copy


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=100,
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
