"""The phase of an interval that RedBeat's callers save, who know none; it asks nobody for the time.

RedBeat counts an interval from its last run, ours from the Unix epoch plus a phase. A phase that is
the last run modulo the period makes the first run come a period after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from celery.schedules import schedule

from celery_redlock_beat.ticks import SECOND, Micros

MICROSECOND = timedelta(microseconds=1)


def is_plain_interval(spec: Any) -> bool:
    """Answer whether it is an interval that a phase shifts: not one in step with the calendar."""
    if isinstance(spec, timedelta):
        return True
    return type(spec) is schedule and not spec.relative


def period_of(spec: Any) -> Micros:
    """Return the length of a plain interval."""
    span = spec if isinstance(spec, timedelta) else spec.run_every
    return int(span // MICROSECOND)


def with_phase(
    fields: Mapping[str, Any], before: Mapping[str, Any], last_run: Micros
) -> dict[str, Any]:
    """Return the fields of an entry with the phase that it is to have.

    ``before`` are those it has so far, empty if it is new. A phase that only those have said, or
    that was read from them, stays as long as the period does.
    """
    said = fields.get("phase")
    if said is not None and said != before.get("phase"):
        return dict(fields)
    rest = {key: value for key, value in fields.items() if key != "phase"}
    spec, old = fields.get("schedule"), before.get("schedule")
    if not is_plain_interval(spec) or period_of(spec) <= 0:
        return rest
    if is_plain_interval(old) and period_of(old) == period_of(spec):
        phase = before.get("phase")
        return rest if phase is None else {**rest, "phase": phase}
    return {**rest, "phase": last_run % period_of(spec) / SECOND}
