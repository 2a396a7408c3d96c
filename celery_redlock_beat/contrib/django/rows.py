"""What a row of django-celery-beat says, as the document of an entry; it asks no database.

It reads plain attributes, so that a project's own model will do.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from celery_redlock_beat.contrib.django.once import only_run
from celery_redlock_beat.documents import entries, spans
from celery_redlock_beat.errors import EntryError

KINDS = ("interval", "crontab", "solar", "clocked")
FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
OPTIONS = ("queue", "exchange", "routing_key", "priority")
MICROSECOND = dt.timedelta(microseconds=1)

Document = dict[str, Any]


def document_of(row: Any, app: Any, *, zones: bool) -> Document:
    """Return the document of the entry that a row describes.

    Arguments:
        row: The row of a periodic task, with its schedule.
        app: The Celery app, in whose zone a crontab is told that has none.
        zones: Whether a crontab is told in the zone of its row, as ``DJANGO_CELERY_BEAT_TZ_AWARE``
            says.

    Raises:
        EntryError: The row is a bad one; names the column.

    """
    document: Document = {"task": row.task, **_called(row)}
    if not row.enabled:
        document["enabled"] = False
    if getattr(row, "description", ""):
        document["description"] = row.description
    if row.start_time is not None:
        document["start"] = aware(row.start_time).isoformat()
    if row.expires is not None:
        # At that very instant django-celery-beat sends no longer.
        document["end"] = (aware(row.expires) - MICROSECOND).isoformat()
    kind, document["schedule"] = _schedule(row)
    if kind == "crontab" and zones and row.crontab.timezone:
        document["timezone"] = str(row.crontab.timezone)
    if runs_once(row):
        return _once(row, kind, document, app)
    return document


def fields_of(row: Any, document: Document) -> dict[str, Any]:
    """Return the fields of an entry of the document of its row.

    Raises:
        EntryError: A value cannot be; names the column.

    """
    try:
        return entries.fields_of(row.name, document)
    except EntryError as exc:
        kind = kind_of(row) or ""
        raise EntryError(row.name, exc.problem.replace("schedule.", f"{kind}.")) from None


def kind_of(row: Any) -> str | None:
    """Return which of its schedules a row has, or ``None``; the first, as django-celery-beat."""
    return next((kind for kind in KINDS if schedule_of(row, kind) is not None), None)


def schedule_of(row: Any, kind: str) -> Any:
    """Return a row's schedule of a kind, or ``None``, also where it was deleted past Django."""
    try:
        return getattr(row, kind, None)
    except ObjectDoesNotExist:
        return None


def runs_once(row: Any) -> bool:
    """Whether a row is due once only; a clocked time is, also where nobody said so."""
    return bool(row.one_off) or kind_of(row) == "clocked"


def aware(moment: dt.datetime) -> dt.datetime:
    """Return a moment of the database in UTC; a naive one is, as django-celery-beat takes it."""
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC)


def _called(row: Any) -> Document:
    """Return what the task is called with."""
    options = {key: getattr(row, key) for key in OPTIONS}
    options = {key: value for key, value in options.items() if value not in (None, "")}
    if row.expires is not None:
        options["expires"] = {"__type__": "datetime", "__value__": aware(row.expires).isoformat()}
    elif row.expire_seconds:
        options["expires"] = row.expire_seconds
    headers = _json(row, "headers", {})
    if headers:
        options["headers"] = headers
    called = {"args": _json(row, "args", []), "kwargs": _json(row, "kwargs", {})}
    return {key: value for key, value in {**called, "options": options}.items() if value}


def _json(row: Any, column: str, empty: Any) -> Any:
    text = getattr(row, column) or json.dumps(empty)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise EntryError(
            row.name, f"its {column!r} are no JSON ({exc}): write them as {json.dumps(empty)}"
        ) from None
    if value is not None and not isinstance(value, type(empty)):
        wanted = "a list" if isinstance(empty, list) else "an object"
        raise EntryError(row.name, f"its {column!r} must be {wanted} in JSON, as {empty}")
    return value


def _schedule(row: Any) -> tuple[str, Document]:
    kind = kind_of(row)
    if kind is None:
        raise EntryError(
            row.name, "it has no schedule: give it an interval, a crontab, a solar event or a time"
        )
    own = getattr(row, kind)
    if kind == "interval":
        return kind, {"kind": kind, "every": spans.written(period_of(row))}
    if kind == "crontab":
        return kind, {"kind": kind, **{name: getattr(own, name) for name in FIELDS}}
    if kind == "solar":
        lat, lon = float(own.latitude), float(own.longitude)
        return kind, {"kind": kind, "event": own.event, "lat": lat, "lon": lon}
    return kind, {"kind": "once", "at": aware(own.clocked_time).isoformat()}


def period_of(row: Any) -> dt.timedelta:
    """Return the period of a row that has an interval.

    Raises:
        EntryError: It has none that can be.

    """
    try:
        period = dt.timedelta(**{row.interval.period: row.interval.every})
    except (TypeError, OverflowError) as exc:
        raise EntryError(
            row.name,
            f"its interval is {row.interval.every!r} {row.interval.period!r}, which is no length "
            f"of time ({exc}): choose days, hours, minutes, seconds or microseconds",
        ) from None
    if period < MICROSECOND:
        raise EntryError(
            row.name,
            f"its interval is {row.interval.every} {row.interval.period}: give it 1 or more, or "
            "disable the row",
        )
    return period


def _once(row: Any, kind: str, document: Document, app: Any) -> Document:
    """Return the document of a row that runs once: it is due at the instant of its only run."""
    timed = fields_of(row, document)
    period = period_of(row) if kind == "interval" else None
    at = only_run(row, timed, period, app)
    rest = {key: each for key, each in document.items() if key not in ("start", "timezone")}
    return {**rest, "schedule": {"kind": "once", "at": at.isoformat()}}
