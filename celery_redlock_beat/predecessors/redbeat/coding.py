"""RedBeat's JSON as plain data, instants and arguments, and back; it knows no kind of schedule."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from celery_redlock_beat.documents.json_text import type_of
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import shown

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.timetables.zones import Zone

TYPE = "__type__"
SCHEDULES = ("interval", "crontab", "rrule", "weekday")
"""What RedBeat's decoder makes objects of, besides datetimes."""
PARTS = ("year", "month", "day", "hour", "minute", "second", "microsecond")
ONLY_UTC = "UTC"


def parsed(what: str, text: bytes | str | None) -> dict[str, Any]:
    """Return a JSON object of RedBeat as plain data; ``what`` names it in errors.

    Raises:
        ConfigurationError: It is none.

    """
    try:
        data = json.loads(text or "")
    except (ValueError, RecursionError):
        told = "is empty" if not text else f"is no JSON: {shown(repr(text))}"
        raise ConfigurationError(f"its {what} {told}; write it anew, or delete it") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"its {what} must be an object, and is {type_of(data)}")
    return data


def moment(what: str, data: Any) -> dt.datetime:
    """Return the aware datetime of RedBeat's object; ``what`` names it in errors.

    Its zone is a name, or an offset in seconds; without one it is UTC. A fold is not kept.

    Raises:
        ConfigurationError: It is none.

    """
    if not isinstance(data, Mapping) or data.get(TYPE) != "datetime":
        raise ConfigurationError(f"its {what} is {shown(repr(data))}, which is no datetime")
    parts = {key: value for key, value in data.items() if key not in {TYPE, "timezone"}}
    try:
        return dt.datetime(**parts, tzinfo=_zone(data.get("timezone", ONLY_UTC)))
    except (TypeError, ValueError, OverflowError, OSError, ZoneInfoNotFoundError) as problem:
        raise ConfigurationError(
            f"its {what} is {shown(repr(dict(data)))}, which cannot be read: {problem}"
        ) from None


def _zone(told: Any) -> dt.tzinfo:
    if isinstance(told, int | float) and not isinstance(told, bool):
        return dt.timezone(dt.timedelta(seconds=told))
    return ZoneInfo(told)


def settled(when: dt.datetime, now: dt.datetime) -> dt.datetime:
    """Return an instant of the past, in UTC: of a time that was shown twice, the later one.

    RedBeat does not keep which of the two it was, and what was sent must not be sent again.
    """
    first, second = (when.replace(fold=fold).astimezone(dt.UTC) for fold in (0, 1))
    return second if first < second <= now else first


def argument(where: str, value: Any) -> Any:
    """Return what RedBeat would call a task with; ``where`` names it in errors.

    Raises:
        ConfigurationError: It is a schedule, which no message can carry.

    """
    if isinstance(value, list):
        return [argument(where, each) for each in value]
    if not isinstance(value, Mapping):
        return value
    if value.get(TYPE) == "datetime":
        return moment(where, value)
    if value.get(TYPE) in SCHEDULES:
        raise ConfigurationError(
            f"its {where} has an object of the type {value[TYPE]!r}, and no message can carry a "
            "schedule: leave it out"
        )
    return {key: argument(where, each) for key, each in value.items()}


def written_moment(when: dt.datetime) -> dict[str, Any]:
    """Return an aware datetime as RedBeat writes it: with the name of its zone, or an offset.

    Where a name would leave open which of two equal times is meant, it is the offset.
    """
    offset = when.utcoffset() or dt.timedelta(0)
    zone: Any = getattr(when.tzinfo, "key", None)
    if zone is None or when.fold:
        zone = offset.total_seconds()
    return {TYPE: "datetime", **{part: getattr(when, part) for part in PARTS}, "timezone": zone}


def run_at(at: Micros, zone: Zone) -> dict[str, Any]:
    """Return the instant of a run as RedBeat keeps it: as the clocks of the app show it.

    Celery compares the fields of a crontab with those of the last run as it is told.
    """
    return written_moment(zone.local(at))


def written_argument(value: Any) -> Any:
    """Return an argument as RedBeat keeps it.

    Raises:
        ConfigurationError: RedBeat's JSON does not have it.

    """
    if isinstance(value, dt.datetime):
        return written_moment(value)
    if isinstance(value, list | tuple):
        return [written_argument(each) for each in value]
    if isinstance(value, Mapping):
        return {key: written_argument(each) for key, each in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__qualname__
    raise ConfigurationError(
        f"it is called with a value of the class {kind}, which RedBeat's JSON does not have"
    )
