"""``celery redlock doctor``: print what an examination found; it examines nothing itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import RedlockCommand, app_of, json_option, print_json, say
from celery_redlock_beat.cli._findings import report_lines
from celery_redlock_beat.diagnostics import Report, Severity, examine, many

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_CODES = {Severity.ERROR: 2, Severity.WARNING: 1}


@click.command(
    cls=RedlockCommand,
    examples=("doctor", "doctor --json"),
    exits={0: "there are hints at most", 1: "there are warnings", 2: "there are errors"},
)
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Find out what is wrong with configuration, server and ledger.

    Nothing is changed.
    """
    report = examine(app_of(ctx))
    if as_json:
        print_json(ctx, as_dict(report))
    else:
        say(ctx, _lines(report, plain=ctx.obj.no_color))
    ctx.exit(exit_code(report))


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
