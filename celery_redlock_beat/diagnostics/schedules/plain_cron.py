"""Cron fields in words: parts come from cron-descriptor, where they are true; it reads no text.

cron-descriptor is an extra. Between its releases it tells whole expressions differently, and some
falsely (``*/7``, ``0 9-17``, ``FRI,MON#2``, both day fields), so it is only given one field at a
time, spelt in a way that all releases read right.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.diagnostics.schedules.cron_fields import (
    DAYS,
    HOURS,
    MONTHS,
    SIXTY,
    WEEKDAYS,
    CronFields,
    as_ranges,
    listed,
    spelled,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FEW_TIMES, MOST_TIMES = 4, 12
PLACES = ("SECONDS", "MINUTES", "HOURS", "DAYOFMONTH", "MONTH", "DAYOFWEEK")
_PREFIX = re.compile(r"^, (only in |only on |on )?")
_RANGE = re.compile(r"(\d+)-(\d+)(?:/(\d+))?")


def can_read() -> bool:
    """Answer whether the extra ``explain`` is installed."""
    return find_spec("cron_descriptor") is not None


def in_words(fields: CronFields) -> str:
    """Return when it fires, as a sentence; only where ``can_read``."""
    parts = [_time(fields), _day(fields)]
    if len(fields.months) < len(MONTHS):
        months = listed(fields.months, MONTHS, around=True)
        parts.append(f"only in {_without_prefix('MONTH', months)}")
    text = ", ".join(part for part in parts if part)
    return text[0].upper() + text[1:]


def _time(fields: CronFields) -> str:
    if len(fields.seconds) > 1:
        return ", ".join(_spans(fields))
    (second,), minutes, hours = fields.seconds, fields.minutes, fields.hours
    times = [(hour, minute, second) for hour in sorted(hours) for minute in sorted(minutes)]
    if len(times) <= FEW_TIMES:
        return f"at {joined(clock(*time) for time in times)}"
    if len(minutes) == 1 and (found := _RANGE.fullmatch(_even_hours(hours))):
        every = f"every {found[3]} hours" if found[3] else "every hour"
        return f"{every} from {clock(*times[0])} to {clock(*times[-1])}"
    if len(times) <= MOST_TIMES and _is_list(minutes) and _is_list(hours):
        return f"at {joined(clock(*time) for time in times)}"
    return ", ".join(_spans(fields)) or "every hour"


def _spans(fields: CronFields) -> Iterator[str]:
    """Yield what is told of seconds, minutes and hours, each on its own."""
    seconds, minutes, hours = fields.seconds, fields.minutes, fields.hours
    on_the_minute = seconds == {0}
    if not on_the_minute:
        yield _described("SECONDS", spelled(seconds, SIXTY))
    if len(seconds) > 1 and len(minutes) == 1:
        yield f"during minute {min(minutes)} of the hour"
    elif minutes == {0}:
        if not (on_the_minute and len(hours) == len(HOURS)):
            yield "at 0 minutes past the hour"
    elif on_the_minute or len(minutes) < len(SIXTY):
        yield _described("MINUTES", spelled(minutes, SIXTY))
    if len(hours) < len(HOURS):
        # Over midnight it would be told of the wrong day, were not all days alike.
        around = fields.any_day and fields.any_weekday and len(fields.months) == len(MONTHS)
        yield _described("HOURS", as_ranges(hours, HOURS, around=around))


def _day(fields: CronFields) -> str:
    days = "" if fields.any_day else joined(_days(fields))
    weekdays = "" if fields.any_weekday else f"on {joined(_weekdays(fields))}"
    if days and weekdays:
        return f"{days}, {'but only' if fields.both else 'and also'} {weekdays}"
    if fields.both and (days or weekdays):
        return days or weekdays
    # Nothing is left out; of two fields of which either suffices, one has all.
    return "every day" if len(fields.hours) < len(HOURS) else ""


def _days(fields: CronFields) -> Iterator[str]:
    if fields.days:
        yield _described("DAYOFMONTH", spelled(fields.days, DAYS)).removeprefix(", ")
    for day in fields.last_days:
        yield _described("DAYOFMONTH", day).removeprefix(", ")


def _weekdays(fields: CronFields) -> Iterator[str]:
    if fields.weekdays:
        yield _without_prefix("DAYOFWEEK", listed(fields.weekdays, WEEKDAYS, around=True))
    for day in fields.nth_weekdays:
        yield _without_prefix("DAYOFWEEK", day)


def _without_prefix(place: str, field: str) -> str:
    return _PREFIX.sub("", _described(place, field))


@cache
def _described(place: str, field: str) -> str:
    """Have one field described, as if there were no other."""
    library: Any = import_module("cron_descriptor")
    fields = [field if each == place else "*" for each in PLACES]
    # Its own Options would ask the machine which language it speaks.
    english = SimpleNamespace(
        casing_type=library.CasingTypeEnum.LowerCase,
        verbose=False,
        day_of_week_start_index_zero=True,
        use_24hour_time_format=True,
        locale_code="en_US",
        locale_location=None,
    )
    descriptor = library.ExpressionDescriptor(" ".join(fields), english)
    return str(descriptor.get_description(library.DescriptionTypeEnum[place]))


def _even_hours(hours: frozenset[int]) -> str:
    """Return hours as one range, with its step if it has one, or as something else."""
    return spelled(hours, HOURS).replace("*/", f"{min(hours)}-{max(hours)}/")


def _is_list(values: frozenset[int]) -> bool:
    field = spelled(values, SIXTY)
    return not (field.startswith("*") or _RANGE.fullmatch(field))


def clock(hour: int, minute: int, second: int) -> str:
    """Return a time of day, with its second if it has one."""
    seconds = f":{second:02}" if second else ""
    return f"{hour:02}:{minute:02}{seconds}"


def joined(parts: Iterable[str]) -> str:
    """Return an enumeration."""
    *first, last = parts
    comma = "," if len(first) > 1 else ""  # as the library does
    return f"{', '.join(first)}{comma} and {last}" if first else last
