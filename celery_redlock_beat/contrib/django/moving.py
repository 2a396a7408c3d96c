"""Rows as documents of stored entries, for those who leave django-celery-beat; it stores none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from celery_redlock_beat.contrib.django.apart import rows_of
from celery_redlock_beat.contrib.django.begins import begins
from celery_redlock_beat.contrib.django.rows import (
    KINDS,
    document_of,
    fields_of,
    kind_of,
    period_of,
    runs_once,
)
from celery_redlock_beat.contrib.django.tables import in_one_line, rows_in
from celery_redlock_beat.documents import spans
from celery_redlock_beat.documents.entries import written
from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.predecessors.move import Move
from celery_redlock_beat.ticks import SECOND, to_micros
from celery_redlock_beat.timetables import once

if TYPE_CHECKING:
    from collections.abc import Collection

    from celery import Celery

CLEANUP = "celery.backend_cleanup"
NEVER_RAN = (
    "it has never run: its first run is at the next multiple of its period since 1970, and not one "
    "period after it was saved"
)
OVER = "it runs once, and has run or is disabled: add it when it is to run"


def move_of(model: Any, app: Celery, code: Collection[str]) -> Move:
    """Read all rows of a model, and return what becomes of them; ``code`` has entries of its own.

    Raises:
        ConfigurationError: The tables cannot be read.

    """
    rows = rows_in(model).select_related(*KINDS).order_by("name")
    try:
        models, unreadable = rows_of(lambda: list(rows), lambda: rows)
    except (DatabaseError, InterfaceError) as exc:
        raise unreadable_tables(exc) from exc
    move = Move(refused={error.entry: error.problem for error in unreadable})
    for row in models:
        try:
            _move(row, move, app, code)
        except EntryError as exc:
            move.refused[row.name] = exc.problem
        except ConfigurationError as exc:
            move.refused[row.name] = str(exc)
    return move


def unreadable_tables(error: Exception) -> ConfigurationError:
    """Return that the tables cannot be read, with the way out."""
    return ConfigurationError(
        f"the tables of django-celery-beat cannot be read ({in_one_line(error)}): look at "
        "DATABASES, and run 'manage.py migrate'"
    )


def _move(row: Any, move: Move, app: Celery, code: Collection[str]) -> None:
    name = row.name
    if name in code:
        _leave_in_code(row, move)
    elif name == CLEANUP:
        move.left[name] = "Celery has it by itself, where results do not expire by themselves"
    elif row.one_off and (row.total_run_count or not row.enabled):
        move.left[name] = OVER
    else:
        _store(row, move, app)


def _leave_in_code(row: Any, move: Move) -> None:
    begun = begins(row, None)
    if not row.enabled:
        move.warnings[row.name] = ["its row is disabled, and the entry in code runs all the same"]
    if begun is None:
        move.left[row.name] = "it is in code, and has never run"
    else:
        move.in_code[row.name] = begun


def _store(row: Any, move: Move, app: Celery) -> None:
    zones = getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True)
    document = document_of(row, app, zones=zones)
    fields = fields_of(row, document)
    at = None
    if runs_once(row) and isinstance(fields["schedule"], once):
        at = to_micros(fields["schedule"].at)
    begun = begins(row, at)
    if kind_of(row) == "interval" and at is None:
        if begun is None:
            move.warnings[row.name] = [NEVER_RAN]
        else:
            period = to_micros(begun) % (period_of(row) // spans.MICROSECOND)
            fields["phase"] = spans.number(period / SECOND)
    if begun is not None:
        move.last_runs[row.name] = begun
    move.documents[row.name] = json.loads(written(row.name, fields))
