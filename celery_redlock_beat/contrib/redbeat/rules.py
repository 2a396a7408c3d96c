"""A rule of ours as the arguments of RedBeat's ``rrule``, and back; it makes no schedule.

RedBeat's arguments are those of python-dateutil, by which the text of RFC 5545 is written.
"""

from __future__ import annotations

import datetime as dt
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from dateutil import rrule as dateutil

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.redbeat.rules import ALONE, FARTHEST_EAST, FARTHEST_WEST
from celery_redlock_beat.timetables.rule.objects import text_of
from celery_redlock_beat.timetables.rule.parts import FREQUENCIES, WEEKDAYS
from celery_redlock_beat.timetables.rule.spelling import spelt
from celery_redlock_beat.timetables.rule.text import read
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.timetables import rrule
    from celery_redlock_beat.timetables.rule.parts import Parts, Stamp
    from celery_redlock_beat.timetables.rule.text import RuleText

ARGUMENTS = (
    *("freq", "dtstart", "interval", "wkst", "count", "until", "bysetpos", "bymonth"),
    *("bymonthday", "byyearday", "byeaster", "byweekno", "byweekday", "byhour", "byminute"),
    "bysecond",
)
NUMBERED = re.compile(r"[+-]?[0-9]+(?=MO|TU|WE|TH|FR|SA|SU)")
MINUTE = dt.timedelta(minutes=1)


def frequency_of(freq: int | str) -> int:
    """Return python-dateutil's number of a frequency, which may be its name in any case.

    Raises:
        ConfigurationError: There is no such frequency.

    """
    name = freq.upper() if isinstance(freq, str) else freq
    if name in FREQUENCIES:
        return FREQUENCIES.index(str(name))
    if type(name) is int and name in range(len(FREQUENCIES)):
        return name
    raise ConfigurationError(
        f"freq = {freq!r} is no frequency: write one of {', '.join(FREQUENCIES)}"
    )


def dateutil_rule(said: Mapping[str, Any]) -> dateutil.rrule:
    """Return python-dateutil's rule of the arguments, whose instants are aware.

    Of ``count`` and ``until``, which exclude each other in RFC 5545, what ends first is kept.

    Raises:
        ConfigurationError: There is no such rule.

    """
    try:
        if said["count"] is None or said["until"] is None:
            return dateutil.rrule(**said)
        ending = dateutil.rrule(**{**said, "count": None})
        number = sum(1 for _ in islice(ending, said["count"]))
        return dateutil.rrule(**{**said, "count": number, "until": None})
    except (ValueError, TypeError, AttributeError, IndexError) as problem:
        raise ConfigurationError(f"these arguments make no recurrence rule: {problem}") from None


def parts_of(rule: dateutil.rrule) -> str:
    """Return the parts of a rule as RFC 5545 writes them, numbers of weekdays included.

    Where that is stricter, they say what python-dateutil means: a number counts only in a month or
    a year, and a week without days is all of its days.
    """
    told = text_of(rule)
    parts = told[0].partition("RRULE:")[2] if told else ""
    if not re.match("FREQ=(YEARLY|MONTHLY)", parts):
        parts = NUMBERED.sub("", parts)
    if "BYWEEKNO=" in parts and "BYDAY=" not in parts:
        parts = f"{parts};BYDAY={','.join(WEEKDAYS)}"
    return parts


def in_named_zone(moment: dt.datetime) -> dt.datetime:
    """Return the same time in a zone that has a name where its own is a mere offset from UTC.

    A document can only have zones that have a name. An offset that no zone has for ever stays.
    """
    if not isinstance(moment.tzinfo, dt.timezone) or not moment.utcoffset():
        return moment
    minutes, rest = divmod(moment.tzinfo.utcoffset(None), MINUTE)
    hours, part = divmod(minutes, 60)
    name = None if rest else ALONE.get(minutes)
    if not rest and not part and FARTHEST_WEST <= hours <= FARTHEST_EAST:
        # Of these names, the signs are as POSIX has them: west of Greenwich is plus.
        name = f"Etc/GMT{-hours:+d}"
    return moment.replace(tzinfo=zone_of(name).tz) if name else moment


def arguments_of(spec: rrule) -> dict[str, Any]:
    """Return RedBeat's arguments of a rule of ours.

    Raises:
        ConfigurationError: It consists of several rules or dates, for which RedBeat has no words.

    """
    own = vars(spec)
    if "freq" in own:
        return {name: own[name] for name in ARGUMENTS}
    text = _read(spec)
    if len(text.rules) != 1 or text.exrules or text.rdates or text.exdates:
        raise ConfigurationError(
            "its recurrence rule has several rules, or dates beside it, for which RedBeat has no "
            "words; make an entry of each"
        )
    (parts, stamp), place = text.rules[0], zone_of(spec.timezone or spec.app.timezone).tz
    start = _moment(stamp, place)
    if isinstance(spec.dtstart, dt.datetime) and spec.dtstart.tzinfo:
        start = spec.dtstart.astimezone(place)
    return {**_said_in(parts), "dtstart": start, "until": _moment(parts.until, place, last=True)}


def _read(spec: rrule) -> RuleText:
    if spec.dtstart is None:
        return read(spec.rule)
    start = spec.dtstart.replace(tzinfo=None) if isinstance(spec.dtstart, dt.datetime) else None
    return read(f"DTSTART:{spelt(start or spec.dtstart)} {spec.rule}")


def _moment(stamp: Stamp | None, place: dt.tzinfo, *, last: bool = False) -> dt.datetime | None:
    """Return the datetime of a stamp; ``last``: of a day without a time, its last second."""
    if stamp is None:
        return None
    wall = stamp.wall
    if stamp.whole_day and last:
        wall = wall.replace(hour=23, minute=59, second=59)
    return wall.replace(tzinfo=zone_of(stamp.zone).tz if stamp.zone else place)


def _said_in(parts: Parts) -> dict[str, Any]:
    by = {name.lower(): list(values) for name, values in parts.by.items()}
    days = by.pop("byday", None)
    if days is not None:
        by["byweekday"] = [dateutil.weekday(day, number or None) for day, number in days]
    said = dict.fromkeys(ARGUMENTS) | by
    freq, wkst = FREQUENCIES.index(parts.freq), parts.wkst or None
    return {
        **said,
        "freq": freq,
        "interval": parts.interval,
        "wkst": wkst,
        "count": parts.count,
    }
