"""RedBeat's JSON of schedules and datetimes, to objects and back; it reads no server.

As RedBeat 2.x writes and reads it, but for one thing: a weekday with a number, as the second Monday
of a month, keeps that number as ``n``, which RedBeat reads as well and drops when it writes.
"""

from __future__ import annotations

import json
from calendar import timegm
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from celery.schedules import crontab, schedule
from dateutil.rrule import weekday

from celery_redlock_beat.contrib.redbeat.rules import arguments_of
from celery_redlock_beat.contrib.redbeat.schedules import rrule
from celery_redlock_beat.timetables import rrule as Rule  # noqa: N812 - a class, named as Celery's

MINUTE = timedelta(minutes=1)
CRONTAB = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
MOMENT = ("year", "month", "day", "hour", "minute", "second", "microsecond")
RULE = (
    *("freq", "interval", "wkst", "count", "bysetpos", "bymonth", "bymonthday", "byyearday"),
    *("byeaster", "byweekno", "byweekday", "byhour", "byminute", "bysecond"),
)
INSTANTS = ("dtstart", "until")


def to_timestamp(dt: datetime) -> int:
    """Return the whole seconds since the epoch of an aware datetime; a naive one counts as UTC."""
    return timegm(dt.utctimetuple())


def from_timestamp(seconds: float, tz_minutes: float = 0) -> datetime:
    """Return the aware datetime of seconds since the epoch, so many minutes east of Greenwich."""
    return datetime.fromtimestamp(seconds, _offset(timedelta(minutes=tz_minutes)))


def get_utcoffset_minutes(dt: datetime) -> float:
    """Return the offset of a datetime from UTC in minutes, 0 for a naive one."""
    return (dt.utcoffset() or timedelta(0)) / MINUTE


class RedBeatJSONEncoder(json.JSONEncoder):
    """Write datetimes, intervals, crontabs, rules and weekdays as RedBeat does."""

    def default(self, o: Any) -> Any:
        """Return an object of RedBeat's ``__type__`` as plain data."""
        for kind, write in _WRITERS.items():
            if isinstance(o, kind):
                return write(o)
        return super().default(o)


class RedBeatJSONDecoder(json.JSONDecoder):
    """Read what ``RedBeatJSONEncoder`` and RedBeat write; objects of other types stay dicts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, object_hook=self.dict_to_object, **kwargs)

    def dict_to_object(self, d: dict[str, Any]) -> Any:
        """Return what a JSON object stands for; without a known ``__type__`` it is itself."""
        read = _READERS.get(d.get("__type__", ""))
        if read is None:
            return d
        return read({key: value for key, value in d.items() if key != "__type__"})


def _written_moment(moment: datetime) -> dict[str, Any]:
    fields = {name: getattr(moment, name) for name in MOMENT}
    return {"__type__": "datetime", **fields, "timezone": _written_zone(moment)}


def _written_zone(moment: datetime) -> Any:
    offset = moment.utcoffset()
    if offset is None:
        return "UTC"
    return getattr(moment.tzinfo, "key", None) or offset.total_seconds()


def _written_crontab(spec: crontab) -> dict[str, Any]:
    return {"__type__": "crontab", **{name: getattr(spec, f"_orig_{name}") for name in CRONTAB}}


def _written_rule(spec: Rule) -> dict[str, Any]:
    said = arguments_of(spec)
    fields = {name: said[name] for name in RULE}
    for name in INSTANTS:
        if said[name]:
            fields[name] = to_timestamp(said[name])
            fields[f"{name}_tz"] = get_utcoffset_minutes(said[name])
    return {"__type__": "rrule", **fields}


def _written_weekday(day: weekday) -> dict[str, Any]:
    number = {"n": day.n} if day.n else {}
    return {"__type__": "weekday", "wkday": day.weekday, **number}


def _written_interval(spec: schedule) -> dict[str, Any]:
    every = spec.run_every.total_seconds()
    return {"__type__": "interval", "every": every, "relative": bool(spec.relative)}


def _read_moment(said: dict[str, Any]) -> datetime:
    zone = said.pop("timezone", "UTC")
    tz = _zone(zone) if isinstance(zone, str) else _offset(timedelta(seconds=zone))
    return datetime(**said, tzinfo=tz)


def _read_interval(said: dict[str, Any]) -> schedule:
    return schedule(run_every=said["every"], relative=bool(said.get("relative")))


def _read_rule(said: dict[str, Any]) -> Any:
    for name in INSTANTS:
        offset = said.pop(f"{name}_tz", 0)
        if said.get(name) is not None:
            said[name] = from_timestamp(said[name], offset)
    return rrule(**said)


def _offset(offset: timedelta) -> timezone:
    return timezone(offset) if offset else UTC


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


_WRITERS: dict[Any, Any] = {
    datetime: _written_moment,
    crontab: _written_crontab,  # before the interval, which it is by inheritance
    Rule: _written_rule,
    weekday: _written_weekday,
    schedule: _written_interval,
}
_READERS: dict[str, Any] = {
    "datetime": _read_moment,
    "interval": _read_interval,
    "crontab": lambda said: crontab(**said),
    "weekday": lambda said: weekday(**said),
    "rrule": _read_rule,
}
