"""Judge an app's configuration, and what keeps a server from being asked; pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import Finding, Severity

if TYPE_CHECKING:
    from celery import Celery

    from celery_redlock_beat.errors import ConfigurationError, LedgerUnavailable
    from celery_redlock_beat.store.client import Server


def wrong_setting(exc: ConfigurationError) -> Finding:
    """Return the error that ends beat's start."""
    return Finding(
        Severity.ERROR,
        "setting",
        "the configuration of the app",
        str(exc),
        "correct it: no node starts before",
    )


def eager(app: Celery) -> list[Finding]:
    """Tell that beat runs the tasks itself."""
    if not app.conf.task_always_eager:
        return []
    meaning = "beat runs the tasks that it knows itself, and sends no messages for them"
    advice = "take it out, unless this is a test"
    return [Finding(Severity.WARNING, "eager", "task_always_eager", meaning, advice)]


def memory(place: Server) -> Finding:
    """Return that there is no server to examine."""
    return Finding(
        Severity.HINT,
        "memory",
        "redlock_beat_url",
        f"the ledger is {place.label}, so there is nothing to examine",
        "name a Redis in production",
    )


def unavailable(place: Server, exc: LedgerUnavailable) -> Finding:
    """Return why the server cannot be asked."""
    return Finding(
        Severity.ERROR,
        "unavailable",
        place.label,
        f"{exc.problem}: nothing is sent",
        exc.advice or "see the server's log",
    )
