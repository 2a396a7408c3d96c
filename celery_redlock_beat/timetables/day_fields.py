"""Where both day fields are restricted, which cron strings and Celery read differently; only tells.

It computes no day, and refuses none.
"""

from __future__ import annotations

from typing import Any

from celery.schedules import crontab

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables.cron import cron
from celery_redlock_beat.timetables.cron_expression import meaning
from celery_redlock_beat.timetables.crontab_fields import WHOLE


def both_day_fields_restricted(spec: Any) -> bool:
    """Return whether a cron string, ``cron`` or ``crontab`` restricts both of its day fields.

    A field of a cron string that begins with a star is not restricted, not even ``*/2``: with one
    of these, cron strings demand both, too.  What is neither restricts nothing.
    """
    if isinstance(spec, crontab):
        return all(getattr(spec, each) != WHOLE[each] for each in ("day_of_month", "day_of_week"))
    parts = _fields(spec)
    return bool(parts) and not (parts[-3].startswith("*") or parts[-1].startswith("*"))


def doubt_about_days(spec: Any) -> str | None:
    """Return a warning about a schedule that restricts both day fields, or ``None``."""
    if not both_day_fields_restricted(spec):
        return None
    if isinstance(spec, crontab):
        return (
            f"{spec!r} is due only on days that are in both day_of_month and day_of_week; where "
            "one of them is to suffice, write it as a cron string"
        )
    return (
        f"{_expression(spec)!r} is a cron string, and due on days that are in either its "
        "day-of-month or its day-of-week field; where a day must be in both, write it as a crontab"
    )


def _fields(spec: Any) -> list[str]:
    expression = _expression(spec)
    if not isinstance(expression, str):
        return []
    try:
        said = meaning(expression)
    except ConfigurationError:  # it is told by what reads it
        return []
    return said.split() if isinstance(said, str) else []


def _expression(spec: Any) -> Any:
    return spec.expression if isinstance(spec, cron) else spec
