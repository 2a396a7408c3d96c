"""A recurrence rule in words, part by part; it computes no instant."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.schedules.plain_cron import MOST_TIMES, clock, joined
from celery_redlock_beat.timetables.rule.text import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from celery_redlock_beat.timetables.rule.parts import Parts, Stamp
    from celery_redlock_beat.timetables.rule.text import RuleText

UNITS = {
    "YEARLY": "year",
    "MONTHLY": "month",
    "WEEKLY": "week",
    "DAILY": "day",
    "HOURLY": "hour",
    "MINUTELY": "minute",
    "SECONDLY": "second",
}
TIMES = {"BYHOUR": "hour", "BYMINUTE": "minute", "BYSECOND": "second"}
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
ENDINGS = {1: "st", 2: "nd", 3: "rd"}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NO_START = 1970  # the year in which a rule begins that does not say when
SHORTEST_RUN = 3


def rule_in_words(text: str) -> str:
    """Return what the canonical text of a ``Rule`` says, as a sentence."""
    told = read(text)
    sentence = "; ".join([*_what_counts(told), *_what_does_not(told)])
    return sentence[0].upper() + sentence[1:]


def _what_counts(told: RuleText) -> Iterator[str]:
    also = ""
    for parts, start in told.rules:
        yield also + _rule(parts, start)
        also = "also "
    if told.rdates:
        yield f"{also}on {_many(told.rdates)}"


def _what_does_not(told: RuleText) -> Iterator[str]:
    for parts, start in told.exrules:
        yield f"but not {_rule(parts, start)}"
    if told.exdates:
        yield f"but not on {_many(told.exdates)}"


def _rule(parts: Parts, start: Stamp | None) -> str:
    return ", ".join(_phrases(parts, start))


def _phrases(parts: Parts, start: Stamp | None) -> Iterator[str]:
    unit = UNITS[parts.freq]
    yield f"every {unit}" if parts.interval == 1 else f"every {parts.interval} {unit}s"
    yield from _days(parts)
    yield from _times(parts)
    if "BYSETPOS" in parts.by:
        which = joined(_ordinal(number) for number in parts.by["BYSETPOS"])
        yield f"of these only the {which} in each {unit}"
    if start and start.wall.year > NO_START:
        yield f"from {start.wall} on"
    if parts.count is not None:
        yield f"{parts.count} times in all"
    if parts.until:
        yield f"until {parts.until.wall}{' UTC' if parts.until.zone else ''}"


def _days(parts: Parts) -> Iterator[str]:
    """Yield what each part says of the day; a day must satisfy them all."""
    by, only = parts.by, ""
    if "BYMONTHDAY" in by:
        yield f"on {joined(_day(number, 'month') for number in by['BYMONTHDAY'])}"
        only = "but only "
    if "BYYEARDAY" in by:
        yield f"on {joined(_day(number, 'year') for number in by['BYYEARDAY'])}"
        only = "but only "
    if "BYWEEKNO" in by:
        yield f"in {joined(_week(number) for number in by['BYWEEKNO'])}"
    if "BYDAY" in by:
        whole = "month" if parts.freq == "MONTHLY" or "BYMONTH" in by else "year"
        yield f"{only}on {joined(_weekday(day, number, whole) for day, number in by['BYDAY'])}"
    if "BYMONTH" in by:
        yield f"only in {joined(MONTHS[number - 1] for number in by['BYMONTH'])}"


def _times(parts: Parts) -> Iterator[str]:
    """Yield the times of day where there are few of them, or else what each part says."""
    by = parts.by
    if TIMES.keys() <= by.keys():
        times = list(product(*(by[name] for name in TIMES)))
        if len(times) <= MOST_TIMES:
            yield f"at {joined(clock(*time) for time in times)}"
            return
    for name, unit in TIMES.items():
        if name in by and not (name == "BYSECOND" and by[name] == (0,)):
            numbers = by[name]
            yield f"at {unit}{'s' if len(numbers) > 1 else ''} {joined(_runs(numbers))}"


def _day(number: int, whole: str) -> str:
    day = f"day {number}" if number > 0 else f"the {_ordinal(number)} day"
    return f"{day} of the {whole}"


def _week(number: int) -> str:
    return f"week {number}" if number > 0 else f"the {_ordinal(number)} week"


def _weekday(day: int, number: int, whole: str) -> str:
    return f"the {_ordinal(number)} {WEEKDAYS[day]} of the {whole}" if number else WEEKDAYS[day]


def _ordinal(number: int) -> str:
    if number < 0:
        return "last" if number == -1 else f"{_ordinal(-number)} to last"
    if number < len(ORDINALS):
        return ORDINALS[number]
    teens = number % 100 // 10 == 1
    return f"{number}{'th' if teens else ENDINGS.get(number % 10, 'th')}"


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield ascending numbers, runs of them as ranges."""
    run: list[int] = []
    for number in [*numbers, -1]:
        if run and number != run[-1] + 1:
            if len(run) < SHORTEST_RUN:
                yield from map(str, run)
            else:
                yield f"{run[0]} to {run[-1]}"
            run = []
        run.append(number)


def _many(stamps: Iterable[Stamp]) -> str:
    told = [f"{stamp.wall:%Y-%m-%d}" if stamp.whole_day else str(stamp.wall) for stamp in stamps]
    return joined(told) if len(told) <= SHORTEST_RUN else f"{len(told)} dates"
