"""The one spelling of recurrence rules and dates that mean the same; it reads no text."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import to_datetime
from celery_redlock_beat.timetables.rule.parts import NUMBERS, WEEKDAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.timetables.rule.instants import RuleSet
    from celery_redlock_beat.timetables.rule.recurrence import Recurrence


def spelling(rules: RuleSet) -> str:
    """Return the text of rules and dates, which reads as the same in their zone."""
    return " ".join(_lines(rules))


def spelt(when: dt.date | Micros) -> str:
    """Return a local time, a day, or an instant as RFC 5545 writes it."""
    if isinstance(when, int):
        return spelt(to_datetime(when).replace(tzinfo=None)) + "Z"
    if isinstance(when, dt.datetime):
        when = when.replace(microsecond=0)
    return when.isoformat().replace("-", "").replace(":", "")


def _lines(rules: RuleSet) -> Iterator[str]:
    for start in sorted({rule.start for rule in (*rules.rules, *rules.exrules)}):
        yield f"DTSTART:{spelt(start)}"
        for name, group in (("RRULE", rules.rules), ("EXRULE", rules.exrules)):
            texts = {";".join(_parts(rule)) for rule in group if rule.start == start}
            yield from (f"{name}:{text}" for text in sorted(texts))
    if rules.dates or rules.again:
        yield f"RDATE:{','.join([*map(spelt, rules.dates), *map(spelt, rules.again)])}"
    days = {each for each in rules.exdates if type(each) is dt.date}
    if days:
        yield f"EXDATE;VALUE=DATE:{','.join(sorted(map(spelt, days)))}"
    if rules.exdates - days:
        yield f"EXDATE:{','.join(sorted(map(spelt, rules.exdates - days)))}"


def _parts(rule: Recurrence) -> Iterator[str]:
    yield f"FREQ={rule.freq}"
    if rule.interval > 1:
        yield f"INTERVAL={rule.interval}"
    if rule.count is not None:
        yield f"COUNT={rule.count}"
    until = rule.until if rule.until_at is None else rule.until_at
    if until is not None:
        yield f"UNTIL={spelt(until)}"
    if rule.wkst:
        yield f"WKST={WEEKDAYS[rule.wkst]}"
    for name in (*NUMBERS, "BYDAY"):
        if name == "BYDAY":
            values = [f"{number or ''}{WEEKDAYS[day]}" for day, number in rule.by.get(name, ())]
        else:
            values = [str(number) for number in rule.by.get(name, ())]
        if values:
            yield f"{name}={','.join(values)}"
