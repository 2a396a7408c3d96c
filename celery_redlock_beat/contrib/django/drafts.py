"""An entry of ``beat_schedule`` as a row of django-celery-beat; it asks and writes no table.

The columns are filled as django-celery-beat fills them. What has no column there stays in code.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery.schedules import crontab, maybe_schedule, schedule, solar
from kombu.utils.json import dumps

from celery_redlock_beat.contrib.django.rows import FIELDS, KINDS, MICROSECOND, schedule_of
from celery_redlock_beat.entry_checks import STOCK_KEYS, check_complete, check_keys
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.policies import with_policies
from celery_redlock_beat.ticks import shown
from celery_redlock_beat.timetables.kinds import is_span
from celery_redlock_beat.timetables.oneoff import clocked_at
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from celery import Celery

COLUMNS_OF_OPTIONS = ("queue", "exchange", "routing_key", "priority", "expire_seconds")
LONGEST_NAME = 200
PLACES = 6
"""Decimal places of a latitude."""
Columns = dict[str, Any]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Draft:
    """A row to be: its name, which kind of schedule, and the columns of that and of its own."""

    name: str
    kind: str
    schedule: Columns
    columns: Columns


def entries_of(app: Celery) -> dict[str, Any]:
    """Return the entries of ``beat_schedule``, and those that django-celery-beat adds by itself."""
    configured: Mapping[str, Any] = app.conf.beat_schedule
    if not app.conf.result_expires:
        return dict(configured)
    cleanup = {
        "task": "celery.backend_cleanup",
        "schedule": crontab("0", "4", "*"),
        "options": {"expire_seconds": 12 * 3600},
    }
    return {"celery.backend_cleanup": cleanup, **configured}


def drafted(
    app: Celery, known: Collection[str], fault: Callable[[EntryError], None]
) -> tuple[list[Draft], dict[str, Any]]:
    """Return the rows that ``beat_schedule`` asks for, and its entries that stay in code.

    ``known`` are the columns of a row; ``fault`` is told of a bad entry.
    """
    drafts, rest = [], {}
    for name, fields in entries_of(app).items():
        try:
            draft = draft_of(name, fields, app, known)
        except EntryError as exc:
            fault(exc)
            continue
        if draft is None:
            rest[name] = fields
        else:
            drafts.append(draft)
    return drafts, rest


def draft_of(name: str, fields: Any, app: Celery, known: Collection[str]) -> Draft | None:
    """Return an entry as a row; ``None``: it has what no column can hold.

    ``known`` are the columns of a row.

    Raises:
        EntryError: It misses a key, or has one that nobody knows.

    """
    fields = with_policies(fields)
    if isinstance(fields, Mapping):
        check_keys(name, {key: each for key, each in fields.items() if key not in known})
        check_complete(name, fields.get)
    if not isinstance(fields, Mapping) or not _fits(name, fields, known):
        return None
    timed = _timed(fields["schedule"], app)
    if timed is None:
        return None
    try:
        called = {
            "args": dumps(fields.get("args") or []),
            "kwargs": dumps(fields.get("kwargs") or {}),
        }
        options = _options(name, fields.get("options") or {})
    except (TypeError, ValueError):
        return None  # as Celery's BeatLazyFunc, which is called anew for each message
    rest = {key: each for key, each in fields.items() if key not in STOCK_KEYS - {"task"}}
    return Draft(name, *timed, {**rest, **called, **options})


def _fits(name: str, fields: Mapping[str, Any], known: Collection[str]) -> bool:
    if len(name) > LONGEST_NAME:  # as of a task that was added without a name, with many arguments
        return False
    columns = {key: each for key, each in fields.items() if key not in STOCK_KEYS}
    if columns.keys() - set(known) or isinstance(columns.get("expires"), str):
        return False
    return not fields.get("relative")


def _options(name: str, options: Mapping[str, Any]) -> Columns:
    dropped = options.keys() - {*COLUMNS_OF_OPTIONS, "headers"}
    if dropped:
        logger.warning(
            "entry %s: django-celery-beat has no column for its options %s, and leaves them out",
            shown(name),
            ", ".join(sorted(map(str, dropped))),
        )
    columns = {key: options.get(key) for key in COLUMNS_OF_OPTIONS}
    return {**columns, "headers": dumps(options.get("headers") or {})}


def _timed(spec: Any, app: Celery) -> tuple[str, Columns] | None:
    """Return the kind of a schedule and its columns, or ``None`` where no table has such ones."""
    if is_span(spec):
        spec = maybe_schedule(spec)
    at = clocked_at(spec)
    if at is not None:
        return "clocked", {"clocked_time": at}
    if isinstance(spec, crontab):
        return _crontab(spec, app)
    if getattr(spec, "nowfun", None) is not None or getattr(spec, "relative", False):
        return None
    if type(spec) is schedule:
        return "interval", _interval(spec.run_every)
    if type(spec) is solar:
        place = {"latitude": _degrees(spec.lat), "longitude": _degrees(spec.lon)}
        return "solar", {"event": spec.event, **place}
    return None


def _interval(period: dt.timedelta) -> Columns:
    if period % dt.timedelta(seconds=1):  # the column holds whole numbers
        return {"every": period // MICROSECOND, "period": "microseconds"}
    return {"every": period // dt.timedelta(seconds=1), "period": "seconds"}


def _crontab(spec: crontab, app: Celery) -> tuple[str, Columns] | None:
    if type(spec) is not crontab and type(spec).__name__ != "TzAwareCrontab":
        return None
    zone = zone_of(vars(spec).get("tz") or app.timezone).name
    try:
        place = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    fields = {each: _text(getattr(spec, f"_orig_{each}")) for each in FIELDS}
    return "crontab", {**fields, "timezone": place}


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple, AbstractSet)):
        return ",".join(map(str, sorted(value)))
    return str(value)


def _degrees(value: Any) -> Decimal:
    return round(Decimal(str(value)), PLACES)


def is_same(draft: Draft, row: Any) -> bool:
    """Whether a row is already as it should be."""
    for kind in KINDS:
        if (schedule_of(row, kind) is not None) != (kind == draft.kind):
            return False
    own = getattr(row, draft.kind)
    pairs = [(own, draft.schedule), (row, draft.columns)]
    return all(
        _equal(getattr(part, key), value)
        for part, columns in pairs
        for key, value in columns.items()
    )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(other, ZoneInfo):
        return str(one) == other.key
    return bool(one == other) or (one is None and other in ("", "{}"))
