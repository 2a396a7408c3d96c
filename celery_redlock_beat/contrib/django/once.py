"""When a row that runs once runs, the same for every node; it asks no clock and no database.

A row that was saved again is due at another instant, and so is run again. That is why one-off rows
need no count of their runs.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.utils.timezone import get_default_timezone

from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.ticks import LATEST, Micros, to_datetime, to_micros
from celery_redlock_beat.timetables import Opaque, Terms, timetable_for

if TYPE_CHECKING:
    from collections.abc import Mapping


def only_run(
    row: Any, fields: Mapping[str, Any], period: dt.timedelta | None, app: Any
) -> dt.datetime:
    """Return the instant of the only run of a row, as django-celery-beat would have it.

    It counts from the last run, or else from when the row was saved; from ``start_time`` where that
    is given, and it has never run. What would have been due before it was saved is due as of that.

    Raises:
        EntryError: There is no such instant.

    """
    saved = to_micros(saved_at(row))
    start = None if row.start_time is None else _micros(row.start_time)
    if row.last_run_at is not None:
        first = _after(row.name, fields, period, _micros(row.last_run_at), app)
    elif start is None:
        first = _after(row.name, fields, period, saved, app)
    else:
        first = start if period else _after(row.name, fields, period, start - 1, app)
    return to_datetime(max(first, saved, start or 0))


def _after(
    name: str, fields: Mapping[str, Any], period: dt.timedelta | None, moment: Micros, app: Any
) -> Micros:
    if period is not None:
        return min(moment + period // dt.timedelta(microseconds=1), LATEST)
    terms = Terms(name=name, timezone=fields.get("timezone"))
    table = timetable_for(fields["schedule"], app, terms)
    at = None if isinstance(table, Opaque) else table.next_after(moment)
    if at is None and not isinstance(table, Opaque):
        at = table.latest_until(moment)  # one instant, which is over
    if at is None:
        raise EntryError(name, "its schedule never fires: correct it, or disable the row")
    return at


def saved_at(row: Any) -> dt.datetime:
    """Return when a row was saved; Django alone writes that, without ``USE_TZ`` in its own zone."""
    saved: dt.datetime = row.date_changed
    return saved if saved.tzinfo else saved.replace(tzinfo=get_default_timezone())


def _micros(moment: dt.datetime) -> Micros:
    return to_micros(moment.replace(tzinfo=moment.tzinfo or dt.UTC))
