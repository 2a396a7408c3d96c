"""Names of entries for a shell that completes; at its best in a second, and never an error."""

from __future__ import annotations

import logging
from contextlib import redirect_stderr, redirect_stdout, suppress
from os import devnull
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from celery.app.utils import find_app

from celery_redlock_beat.control import Control
from celery_redlock_beat.diagnostics.schedules import load

if TYPE_CHECKING:
    from celery import Celery
    from click import Context, Parameter

PATIENCE = 1.0
"""Seconds: who waits longer for a list types on."""


def complete_names(ctx: Context, _param: Parameter, incomplete: str) -> list[str]:
    """Return the names that begin with what was typed: of all entries, or of those in code.

    Nothing is told of what fails, since a shell would show it in the middle of the line.
    """
    app = ctx.find_root().params.get("app")
    if not app:
        return []
    names: set[str] = set()
    search = Thread(target=_collect, args=(app, names), daemon=True)
    logging.disable()
    try:
        with Path(devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            search.start()
            search.join(PATIENCE)
    finally:
        logging.disable(logging.NOTSET)
    return sorted(each for each in names.copy() if each.startswith(incomplete))


def _collect(given: str | Celery, names: set[str]) -> None:
    with suppress(Exception, SystemExit):
        app = find_app(given) if isinstance(given, str) else given
        with suppress(Exception):
            names.update(load(app).names)  # known at once, and without a server
        names.update(view.name for view in Control(app).entries())
