"""How a finding is printed; it judges nothing."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.diagnostics import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.diagnostics import Report

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.HINT: "cyan"}
INDENT = " " * 9


def report_lines(report: Report, *, plain: bool) -> Iterator[str]:
    """Yield the lines of a report but its last, the summary, which each command has its own of."""
    for name, value in report.facts.items():
        yield f"{name:<8} {value}"
    for finding in report.findings:
        yield ""
        yield from lines_of(finding, plain=plain)
    yield ""


def lines_of(finding: Finding, *, plain: bool) -> Iterator[str]:
    """Yield the lines of a finding, in colours unless they are to be ``plain``."""
    severity = f"{finding.severity:<8}"
    if not plain:
        severity = click.style(severity, fg=COLOURS[finding.severity], bold=True)
    yield f"{severity} {finding.name}: {finding.subject}"
    yield from _wrapped(finding.meaning)
    for example in finding.examples:
        yield f"{INDENT}  - {example}"
    if finding.examples and finding.count > len(finding.examples):
        yield f"{INDENT}  - and {finding.count - len(finding.examples):,} more"
    if finding.advice:
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
