"""Run a command of ours in this process, with an app, as Celery's own group would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from celery import Celery
from celery.bin.base import CLIContext
from click.testing import CliRunner

from celery_redlock_beat.cli import redlock

if TYPE_CHECKING:
    from click.testing import Result


def run_redlock(*words: str, app: Celery | None = None) -> Result:
    """Run ``celery [-A proj] redlock <words>``; without an app, ``-A`` is left out."""

    @click.group
    @click.option("-A", "--app")
    @click.pass_context
    def celery(ctx: click.Context, **_: object) -> None:
        plain = app or Celery(set_as_current=False)  # as Celery has it, whatever ran here before
        ctx.obj = CLIContext(app=plain, no_color=True, workdir=None)

    celery.add_command(redlock)
    before = [] if app is None else ["-A", "proj"]
    return CliRunner().invoke(celery, [*before, "redlock", *words])
