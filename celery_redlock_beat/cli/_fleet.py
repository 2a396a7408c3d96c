"""Warnings of what live nodes do meanwhile: they change nothing, and stop none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import app_of
from celery_redlock_beat.diagnostics.findings import many
from celery_redlock_beat.diagnostics.schedules.loading import Schedule

if TYPE_CHECKING:
    from celery_redlock_beat.control import Control


def warn_of_other_code(ctx: click.Context, control: Control) -> None:
    """Tell on stderr if there are such nodes: what only their code has is not known here."""
    theirs = [view.schedule for view in control.nodes() if view.alive and view.schedule]
    own = Schedule(app_of(ctx)).fingerprint if theirs else ""
    others = [each for each in theirs if each != own]
    if others:
        click.echo(
            f"Warning: {many(len(others), 'live node has', 'live nodes have')} another schedule in "
            "code than is here: what only they have was not meant; run it with their code",
            err=True,
        )


def warn_of_live_nodes(control: Control, what_then: str) -> None:
    """Tell on stderr if nodes live: what they send from now on misses what was written."""
    alive = sum(node.alive for node in control.nodes())
    if alive:
        click.echo(
            f"Warning: {many(alive, 'node lives', 'nodes live')}, and what they send from now on "
            f"{what_then}",
            err=True,
        )
