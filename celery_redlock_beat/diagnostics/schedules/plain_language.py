"""A timetable in words, in one line; it computes no instant, and asks no schedule of a user's."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.diagnostics.findings import instant
from celery_redlock_beat.diagnostics.schedules.cron_fields import fields_of
from celery_redlock_beat.diagnostics.schedules.plain_cron import can_read, in_words
from celery_redlock_beat.diagnostics.schedules.plain_rule import rule_in_words
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import Bounded, Interval, Once, Opaque, Relative, Rule, Solar
from celery_redlock_beat.timetables.asked import Asked
from celery_redlock_beat.timetables.zones import DAY

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros, Timetable

MISSING = "To read cron schedules in words: pip install 'celery-redlock-beat[explain]'"
UNITS = (("day", DAY), ("hour", 3600 * SECOND), ("minute", 60 * SECOND), ("second", SECOND))


def reading_of(table: Timetable | Opaque) -> str | None:
    """Return what a timetable says, or ``None`` where nobody here can tell."""
    fields = fields_of(_inner(table))
    if fields:
        return in_words(fields) if can_read() else None
    return _reading(_inner(table))


def lacks_the_extra(table: Timetable | Opaque) -> bool:
    """Answer whether it could be read if the extra ``explain`` were installed."""
    return fields_of(_inner(table)) is not None and not can_read()


def duration(micros: Micros) -> str:
    """Return a duration exactly, in the largest unit that leaves no fraction."""
    name, size = next((each for each in UNITS if micros % each[1] == 0), UNITS[-1])
    whole, rest = divmod(micros, size)
    number = f"{whole}.{rest:06}".rstrip("0") if rest else str(whole)  # only seconds leave a rest
    return f"{number} {name if micros == size else f'{name}s'}"


def _inner(table: Any) -> Any:
    return table.inner if isinstance(table, Bounded) else table


def _every(period: Micros) -> str:
    return f"Every {duration(period).removeprefix('1 ')}"


def _shifted(phase: Micros) -> str:
    return f", plus {duration(phase)}" if phase else ""


@singledispatch
def _reading(_: object) -> str | None:
    return None


@_reading.register
def _(table: Interval) -> str:
    since = "at whole multiples since 1970-01-01 00:00 UTC"
    return f"{_every(table.period)}, {since}{_shifted(table.phase)}"


@_reading.register
def _(table: Relative) -> str:
    every = _every(table.period)
    if table.period < DAY:
        return f"{every}, counted anew from each local midnight{_shifted(table.phase)}"
    since = ", counted in whole days since 1970-01-01" if table.period > DAY else ""
    return f"{every} at local midnight{_shifted(table.phase)}{since}"


@_reading.register
def _(table: Solar) -> str:
    first, _, rest = table.event.partition("_")
    event = f"{rest} {first}" if first in ("dawn", "dusk") else table.event.replace("_", " ")
    return f"At {event}, at latitude {table.lat:g} and longitude {table.lon:g}"


@_reading.register
def _(table: Once) -> str:
    return f"Once, at {instant(table.at)}"


@_reading.register
def _(table: Rule) -> str:
    return rule_in_words(table.text)


@_reading.register
def _(table: Opaque) -> str:
    kind = type(table.schedule)
    who = "the entry's own class" if kind is Asked else kind.__qualname__
    return f"Only {who} knows when it is due"
