"""Schedules as users write them, of every kind and drawn at random; nothing is asked of them."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial

from celery.schedules import crontab, schedule, solar
from hypothesis import settings
from hypothesis import strategies as st

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import to_datetime
from celery_redlock_beat.timetables import Terms, once
from celery_redlock_beat.timetables.cron_expression import meaning
from celery_redlock_beat.timetables.solar import EVENTS
from support.turns import DAY, HOUR, MINUTE, SECOND, Turn, around

SCALE = int(os.environ.get("REDLOCK_EXAMPLES", "1"))
MINUTES = ["*", "*/15", "*/7", "0", "30", "59", "5,35", "0-10"]
HOURS = ["*", "*/2", "0", "1", "2", "3", "23", "0-3", "1,2,3", "5"]
DAYS = ["*", "*", "*", "1", "29", "30,31", "1-7", "*/2", "25-31"]
MONTHS = ["*", "*", "*", "2", "3,4", "10-12", "JAN-JUN"]
WEEKDAYS = ["*", "*", "*", "0", "1-5", "SAT,SUN"]
SECONDS = ["", "", "", "0", "*/20", "59"]
ONLY_IN_STRINGS = {
    "minute": ["H", "H/20", "H(0-29)"],
    "hour": ["H", "H(0-3)", "H/6"],
    "day": ["L", "LW", "H"],
    "month": ["H"],
    "weekday": ["5L", "MON#2", "SUN#5", "FRI", "7", "H"],
}
RULES = [
    "FREQ=SECONDLY;INTERVAL=20",
    "FREQ=MINUTELY;INTERVAL=7",
    "FREQ=HOURLY;BYMINUTE=0,30",
    "FREQ=DAILY",
    "FREQ=DAILY;BYHOUR=0,2;BYMINUTE=30",
    "FREQ=DAILY;INTERVAL=3;BYHOUR=1",
    "FREQ=WEEKLY;BYDAY=SA,SU;BYHOUR=23;BYMINUTE=59",
    "FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=2",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=YEARLY;BYMONTH=3,10;BYDAY=SU",
    "FREQ=DAILY;COUNT=20\nEXRULE:FREQ=WEEKLY;BYDAY=MO",
]


def examples(number: int) -> settings:
    """Return settings for so many examples, or a multiple of them in a long run."""
    return settings(deadline=None, max_examples=number * SCALE)


def _period(longest: int) -> st.SearchStrategy[timedelta]:
    usual = (SECOND // 4, 10 * SECOND, 7 * MINUTE, 90 * MINUTE, 5 * HOUR, 12 * HOUR, DAY)
    chosen = st.one_of(st.integers(1, SECOND), st.integers(1, longest), st.sampled_from(usual))
    return chosen.map(_microseconds)


def _microseconds(number: int) -> timedelta:
    return timedelta(microseconds=number)


def _phases(turn: Turn) -> st.SearchStrategy[Terms]:
    # A date that begins an hour late is shorter than the longest phases of a day.
    phases = st.one_of(st.none(), st.integers(0, 40 * DAY), st.integers(23 * HOUR, DAY))
    return phases.map(lambda phase: Terms(timezone=turn.zone, phase=phase))


def intervals(turn):
    return st.tuples(_period(400 * DAY), _phases(turn))


def relatives(turn):
    days = st.integers(1, 40).map(timedelta)
    periods = st.one_of(_period(DAY), days)
    return st.tuples(periods.map(lambda period: schedule(period, relative=True)), _phases(turn))


def _fields(*lists):
    return st.tuples(*map(st.sampled_from, lists))


def cron_strings(turn):
    lists = (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)
    fields = _fields(
        SECONDS,
        *(each + more for each, more in zip(lists, ONLY_IN_STRINGS.values(), strict=True)),
    )
    nicknames = st.sampled_from(["@hourly", "@daily", "@weekly", "@monthly", "@yearly"])
    strings = st.one_of(*[fields.map(" ".join)] * 9, nicknames)
    return st.tuples(strings.filter(_fires), _named(turn))


def _fires(string):
    try:
        return bool(meaning(string))
    except ConfigurationError:
        return False


def _named(turn):
    names = st.sampled_from(["report", "clean up", "billing.monthly"])
    return names.map(lambda name: Terms(name=name, timezone=turn.zone))


def crontabs(turn, dst):
    fields = _fields(MINUTES, HOURS, WEEKDAYS, DAYS, MONTHS)
    return st.tuples(
        fields.filter(lambda each: (each[3], each[4]) != ("30,31", "2")).map(_crontab),
        st.just(Terms(timezone=turn.zone, dst=dst)),
    )


def _crontab(fields):
    return crontab(*fields)


def solars(turn):
    # In the north the sun rises and sets about midnight, and in the summer does not at all.
    lats = st.one_of(st.floats(-60, 60), st.floats(60, 72))
    schedules = st.builds(solar, st.sampled_from(sorted(EVENTS)), lats, st.floats(-180, 180))
    return st.tuples(schedules, st.just(Terms(timezone=turn.zone)))


def onces(turn):
    return st.tuples(around(turn).map(to_datetime).map(once), st.just(Terms(timezone=turn.zone)))


def rules(turn):
    starts = around(turn).map(to_datetime).map("{:%Y%m%dT%H%M%S}".format)
    texts = st.tuples(starts, st.sampled_from(RULES)).map(_rule)
    return st.tuples(texts, st.just(Terms(timezone=turn.zone)))


def _rule(parts):
    start, rule = parts
    needs_start = any(part in rule for part in ("INTERVAL", "COUNT"))
    return f"DTSTART:{start}\nRRULE:{rule}" if needs_start else rule


KINDS = {
    "Interval": intervals,
    "Relative": relatives,
    "Cron": cron_strings,
    "CeleryCrontab": partial(crontabs, dst="celery"),
    "RealCrontab": partial(crontabs, dst="real"),
    "Solar": solars,
    "Once": onces,
    "Rule": rules,
}
"""For each kind of timetable, the pairs of a schedule and its terms near a turn."""
