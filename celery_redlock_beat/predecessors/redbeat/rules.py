"""A recurrence rule in RedBeat's JSON as the text of RFC 5545; it computes no tick.

RedBeat keeps an offset where the rule had a zone, so it goes on with that offset for ever.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.redbeat.coding import TYPE
from celery_redlock_beat.ticks import SECOND, shown, to_micros
from celery_redlock_beat.timetables import rrule
from celery_redlock_beat.timetables.rule.parts import FREQUENCIES, WEEKDAYS
from celery_redlock_beat.timetables.zones import UTC_ZONE, Zone

NUMBERS = {
    "bysetpos": "BYSETPOS",
    "bymonth": "BYMONTH",
    "bymonthday": "BYMONTHDAY",
    "byyearday": "BYYEARDAY",
    "byweekno": "BYWEEKNO",
    "byhour": "BYHOUR",
    "byminute": "BYMINUTE",
    "bysecond": "BYSECOND",
}
KNOWN = (
    *("freq", "dtstart", "dtstart_tz", "interval", "wkst", "count", "until", "until_tz"),
    *NUMBERS,
    *("byeaster", "byweekday"),
)
MONTHLY = FREQUENCIES.index("MONTHLY")
ALONE = {
    210: "Asia/Tehran",
    270: "Asia/Kabul",
    330: "Asia/Kolkata",
    345: "Asia/Kathmandu",
    390: "Asia/Yangon",
    525: "Australia/Eucla",
    570: "Australia/Darwin",
    -570: "Pacific/Marquesas",
}
"""Zones by the offset, in minutes, that they have had for long, where it is not of whole hours."""
FARTHEST_EAST, FARTHEST_WEST = 14, -12
LOST_NUMBER = (
    "RedBeat keeps no number of a weekday: where the second Monday was meant (MO(+2)), it has been "
    "every Monday; see its BYDAY"
)

Found = tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]


def rule_of(said: Mapping[str, Any], zone: Zone) -> Found:
    """Return the ``schedule`` of a document, what else it says, and what is worth telling.

    ``zone`` is the app's.

    Raises:
        ConfigurationError: It cannot be told in RFC 5545, or RedBeat could not read it either.

    """
    for key in said:
        if key not in KNOWN:
            raise ConfigurationError(
                f"its rule has an unknown key {shown(repr(key))}: known are {', '.join(KNOWN)}"
            )
    if said.get("byeaster") is not None:
        raise ConfigurationError("its rule has 'byeaster', which is not in RFC 5545: write dates")
    parts = dict(_parts(said))
    start, until = _instant(said, "dtstart"), _instant(said, "until")
    if "COUNT" in parts and until is not None:
        if _ends_by_count(parts, start, until):
            until = None
        else:
            del parts["COUNT"]
    if until is not None:
        parts["UNTIL"] = f"{until.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}"
    schedule = {"kind": "rrule", "rule": ";".join(f"{name}={parts[name]}" for name in parts)}
    warnings = [LOST_NUMBER] if _may_lack_numbers(said, parts) else []
    if start is None:
        warnings.append("its rule has no dtstart: RedBeat began it anew whenever it read it")
        return schedule, {}, tuple(warnings)
    place, doubts = _place(start, zone)
    wall = start.replace(tzinfo=None, microsecond=0).isoformat()
    return {**schedule, "dtstart": wall, "timezone": place}, {}, (*warnings, *doubts)


def _parts(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    freq = _freq(said.get("freq"))
    yield "FREQ", freq
    for key in ("interval", "count"):
        if said.get(key) is not None:
            yield key.upper(), str(_whole(key, said[key]))
    if said.get("wkst") is not None:
        yield "WKST", _day(said["wkst"], FREQUENCIES.index("DAILY"))
    for key, name in NUMBERS.items():
        if numbers := _listed(said.get(key)):
            yield name, ",".join(str(_whole(key, each)) for each in numbers)
    if days := _listed(said.get("byweekday")):
        yield "BYDAY", ",".join(_day(each, FREQUENCIES.index(freq)) for each in days)
    elif said.get("byweekno"):
        yield "BYDAY", ",".join(WEEKDAYS)  # as dateutil means it, where RFC 5545 says nothing


def _freq(told: Any) -> str:
    freq = told.upper() if isinstance(told, str) else told
    if type(freq) is int and 0 <= freq < len(FREQUENCIES):
        freq = FREQUENCIES[freq]
    if freq not in FREQUENCIES:
        known = ", ".join(FREQUENCIES)
        raise ConfigurationError(
            f"its rule has the freq {shown(repr(told))}: write one of {known}, or 0 to 6"
        )
    return str(freq)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _whole(key: str, value: Any) -> int:
    if type(value) is not int:
        raise ConfigurationError(f"its rule has {key} = {shown(repr(value))}, no whole number")
    return value


def _day(value: Any, level: int) -> str:
    """Return a weekday; its number counts only in a month or a year, as in dateutil."""
    number = None
    if isinstance(value, Mapping) and value.get(TYPE) == "weekday":
        value, number = value.get("wkday", value.get("weekday")), value.get("n")
    if type(value) is not int or not 0 <= value < len(WEEKDAYS):
        raise ConfigurationError(
            f"its rule has the weekday {shown(repr(value))}: write 0 (Monday) to 6"
        )
    if number and level <= MONTHLY:
        return f"{_whole('n', number)}{WEEKDAYS[value]}"
    return WEEKDAYS[value]


def _may_lack_numbers(said: Mapping[str, Any], parts: Mapping[str, str]) -> bool:
    days = _listed(said.get("byweekday"))
    if not days or FREQUENCIES.index(parts["FREQ"]) > MONTHLY:
        return False
    return not any(isinstance(day, Mapping) and day.get("n") for day in days)


def _instant(said: Mapping[str, Any], key: str) -> dt.datetime | None:
    """Return an instant of seconds since the epoch, with its offset in minutes."""
    at, minutes = said.get(key), said.get(f"{key}_tz") or 0
    if at is None:
        return None
    try:
        place = dt.timezone(dt.timedelta(minutes=minutes))
        return dt.datetime.fromtimestamp(at, place)
    except (TypeError, ValueError, OverflowError, OSError):
        raise ConfigurationError(
            f"its rule has {key} = {shown(repr(at))} with {key}_tz = {shown(repr(minutes))}: these "
            "must be seconds since 1970, and an offset from UTC in minutes"
        ) from None


def _ends_by_count(parts: Mapping[str, str], start: dt.datetime | None, until: dt.datetime) -> bool:
    """Answer whether its count ends a rule before its end: RFC 5545 knows only one of them."""
    if start is None:
        raise ConfigurationError("its rule has a count and no dtstart: give it one")
    text = ";".join(f"{name}={value}" for name, value in parts.items() if name != "COUNT")
    # The offset is the same throughout, so that local times count as if they were in UTC.
    first, last = (_as_utc(each.astimezone(start.tzinfo)) for each in (start, until))
    table = rrule(text, first, UTC_ZONE.tz).timetable()
    found = table.count_between(to_micros(first) - SECOND, to_micros(last) + 1)
    if found.number < int(parts["COUNT"]) and not found.exact:
        raise ConfigurationError("its rule has both a count and an end: leave one of them out")
    return found.number >= int(parts["COUNT"])


def _as_utc(when: dt.datetime) -> dt.datetime:
    return when.replace(tzinfo=dt.UTC, microsecond=0)


def _place(start: dt.datetime, zone: Zone) -> tuple[str, tuple[str, ...]]:
    """Return a zone that has for ever the offset of a start, and what is lost by that."""
    offset = start.utcoffset() or dt.timedelta(0)
    minutes, rest = divmod(offset, dt.timedelta(minutes=1))
    if not offset:
        lost = () if zone == UTC_ZONE else (_no_zone("UTC"),)
        return "UTC", lost
    hours, part = divmod(minutes, 60)
    if not rest and not part and FARTHEST_WEST <= hours <= FARTHEST_EAST:
        name = f"Etc/GMT{-hours:+d}"
    elif not rest and minutes in ALONE:
        name = ALONE[minutes]
    elif start.astimezone(zone.tz).utcoffset() == offset:
        return zone.name, (f"its offset {start:%Z} is taken for the zone {zone.name}",)
    else:
        raise ConfigurationError(
            f"its rule begins at an offset of {offset} from UTC, which no zone has for ever: write "
            "it anew, with the zone that is meant"
        )
    return name, (_no_zone(f"{start:%Z}"),)


def _no_zone(told: str) -> str:
    return (
        f"RedBeat keeps an offset ({told}) and no zone of a rule: if a zone with summer time was "
        "meant, it is an hour off for a part of the year; give it that timezone"
    )
