"""Which of a RedBeat's entries become stored ones, and which only begin here; it moves none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.predecessors.move import Move

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from celery_redlock_beat.predecessors.redbeat.records import Record

OF_CELERY = "celery.backend_cleanup"
"""Celery adds it by itself where results expire, so that RedBeat does not know it as a static."""
NOT_IN_CODE = "it came from code, which has it no more: RedBeat's next start would have deleted it"
NO_CLEANUP = "Celery adds it by itself where results have to be cleaned up, and does not here"
NEVER_RUN = "RedBeat never ran it: it begins with its next tick"
SWITCHED_OFF = "it is disabled in RedBeat, and enabled in code, which counts"


def move_of(records: Sequence[Record], code: Collection[str]) -> Move:
    """Return what to do with records; ``code`` has the names of the entries that are in code."""
    move = Move()
    for record in records:
        if record.name in code:
            _begin(move, record)
        elif record.is_static or record.name == OF_CELERY:
            move.left[record.name] = NOT_IN_CODE if record.is_static else NO_CLEANUP
        elif record.is_gone:
            move.left[record.name] = record.problem
        elif record.problem:
            move.refused[record.name] = record.problem
            move.warnings[record.name] = record.warnings
        else:
            move.documents[record.name] = record.document
            move.warnings[record.name] = record.warnings
            if record.last_run_at is not None:
                move.last_runs[record.name] = record.last_run_at
    return move


def _begin(move: Move, record: Record) -> None:
    """Let an entry from code begin: what RedBeat keeps of its definition does not count."""
    if record.last_run_at is None:
        move.left[record.name] = NEVER_RUN
    else:
        move.in_code[record.name] = record.last_run_at
    if not record.enabled:
        move.warnings[record.name] = (SWITCHED_OFF,)
