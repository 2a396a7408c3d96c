"""Schedules as documents: what is written, what is read, and what is refused with which words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, schedule, solar
from dateutil import rrule as dateutil
from dateutil import tz

from celery_redlock_beat.documents.schedules import read, written, zone_name
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables import (
    Bounded,
    Interval,
    Opaque,
    Terms,
    cron,
    once,
    rrule,
    timetable_for,
)

APP = Celery("shop", set_as_current=False)
BERLIN = "Europe/Berlin"
REPEATED = datetime(2026, 10, 25, 2, 30, fold=1)
CRONTAB = {
    "kind": "crontab",
    "minute": "*",
    "hour": "*",
    "day_of_week": "*",
    "day_of_month": "*",
    "month_of_year": "*",
}
WRITTEN = [
    (30, {"kind": "interval", "every": 30}),
    (30.0, {"kind": "interval", "every": 30}),
    (0.25, {"kind": "interval", "every": 0.25}),
    (timedelta(hours=1), {"kind": "interval", "every": 3600}),
    (timedelta(microseconds=1), {"kind": "interval", "every": 1e-06}),
    (timedelta(days=200_000, microseconds=1), {"kind": "interval", "every": "17280000000s1us"}),
    (schedule(30), {"kind": "interval", "every": 30}),
    (
        schedule(timedelta(hours=8), relative=True),
        {"kind": "interval", "every": 28800, "relative": True},
    ),
    ("*/5 * * * *", {"kind": "cron", "expression": "*/5 * * * *"}),
    ("@every 90s", {"kind": "cron", "expression": "@every 90s"}),
    ("H H * * *", {"kind": "cron", "expression": "H H * * *"}),
    (
        cron("0 3 * * *", ZoneInfo(BERLIN)),
        {"kind": "cron", "expression": "0 3 * * *", "timezone": BERLIN},
    ),
    (
        cron("0 3 * * *", tz.gettz(BERLIN)),
        {"kind": "cron", "expression": "0 3 * * *", "timezone": BERLIN},
    ),
    (cron("0 3 * * *", UTC), {"kind": "cron", "expression": "0 3 * * *", "timezone": "UTC"}),
    (crontab(), CRONTAB),
    (
        crontab("*/5", "8-17", "mon-fri"),
        CRONTAB | {"minute": "*/5", "hour": "8-17", "day_of_week": "mon-fri"},
    ),
    (crontab(0, {1, 13}), CRONTAB | {"minute": 0, "hour": [1, 13]}),
    (crontab(minute=iter(range(60))), CRONTAB | {"minute": list(range(60))}),
    (solar("sunset", 52.5, -13), {"kind": "solar", "event": "sunset", "lat": 52.5, "lon": -13}),
    (once("2027-01-01T00:00"), {"kind": "once", "at": "2027-01-01T00:00:00"}),
    (
        once(REPEATED, BERLIN),
        {"kind": "once", "at": "2026-10-25T02:30:00", "fold": 1, "timezone": BERLIN},
    ),
    (once(REPEATED), {"kind": "once", "at": "2026-10-25T02:30:00", "fold": 1}),
    (
        once(REPEATED.replace(tzinfo=ZoneInfo(BERLIN))),
        {"kind": "once", "at": "2026-10-25T02:30:00+01:00"},
    ),
    ("FREQ=DAILY;BYHOUR=9", {"kind": "rrule", "rule": "FREQ=DAILY;BYHOUR=9"}),
    (
        rrule("FREQ=DAILY;COUNT=3", datetime(2027, 1, 1, 9, tzinfo=ZoneInfo(BERLIN))),
        {
            "kind": "rrule",
            "rule": "FREQ=DAILY;COUNT=3",
            "dtstart": "2027-01-01T09:00:00+01:00",
            "timezone": BERLIN,
        },
    ),
    (
        rrule("FREQ=DAILY;COUNT=3", date(2027, 1, 1)),
        {"kind": "rrule", "rule": "FREQ=DAILY;COUNT=3", "dtstart": "2027-01-01"},
    ),
]


def table(spec, name="report"):
    return timetable_for(spec, APP, Terms(name=name))


@pytest.mark.parametrize(("spec", "document"), WRITTEN)
def test_a_schedule_is_written_plainly_and_read_as_the_same_instants(spec, document):
    assert written(spec) == document
    assert table(read(document)) == table(spec)
    assert written(read(document)) == document


@pytest.mark.parametrize("dst", ["celery", "real"])
@pytest.mark.parametrize("minute", [0, "*", "0-59", set(range(60)), [0, 15, 30, 45], "*/15"])
def test_what_counts_as_a_star_stays_one(minute, dst):
    spec = crontab(minute)
    terms = Terms(dst=dst, timezone=BERLIN)
    assert timetable_for(read(written(spec)), APP, terms) == timetable_for(spec, APP, terms)


def test_rules_of_dateutil_are_written_as_text():
    rule = dateutil.rrule(dateutil.WEEKLY, dtstart=datetime(2027, 1, 4, 9), byweekday=dateutil.MO)
    rules = dateutil.rruleset()
    rules.rrule(rule)
    rules.exdate(datetime(2027, 1, 11, 9))
    for each in (rule, rules):
        assert written(each)["kind"] == "rrule"
        assert table(read(written(each))) == table(each)


def test_a_rule_with_a_zone_in_its_text_keeps_it():
    spec = rrule(f"DTSTART;TZID={BERLIN}:20270101T090000\nRRULE:FREQ=DAILY")
    assert table(read(written(spec))) == table(spec)


def test_clocked_of_django_celery_beat_becomes_a_once():
    class clocked:  # noqa: N801 - its name
        nowfun = None
        clocked_time = datetime(2027, 1, 1, 12)

        def is_due(self, last_run_at):
            raise NotImplementedError

    clocked.__module__, clocked.__qualname__ = "django_celery_beat.clockedschedule", "clocked"
    assert written(clocked()) == {"kind": "once", "at": "2027-01-01T12:00:00+00:00"}
    assert table(read(written(clocked()))) == table(clocked())


class Own(crontab):
    """A class of the user's own."""


def crontab_with(**attributes):
    spec = crontab(minute=0)
    vars(spec).update(attributes)
    return spec


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Own(), "class Own is code"),
        (Interval(1_000_000), "class Interval is code"),
        (Bounded(Interval(1_000_000)), "class Bounded is code"),
        (Opaque(Own()), "class Opaque is code"),
        (object(), "class object is code"),
        (None, "class NoneType is code"),
        (True, "class bool is code"),
        (crontab(nowfun=datetime.now), "'nowfun'"),
        (schedule(30, nowfun=datetime.now), "'nowfun'"),
        (cron("* * * * *", nowfun=datetime.now), "'nowfun'"),
        (crontab_with(tz=ZoneInfo("Asia/Tokyo")), "give the entry a 'timezone'"),
        (crontab_with(minute={5}), "make a new crontab"),
        (cron("* * * * *", timezone(timedelta(hours=2))), "UTC.02:00 has no IANA name"),
        (once("2027-01-01T00:00", tz.tzoffset("X", 7200)), "no IANA name"),
        (0, "more than 0"),
        (timedelta(-1), "more than 0"),
        (schedule(0), "more than 0"),
        (schedule(None), "no length"),
        (float("nan"), "finite number"),
        (1e300, "finite number"),
        ("every day", "cron expression"),
    ],
)
def test_what_only_code_can_have_is_not_written(spec, words):
    with pytest.raises(ConfigurationError, match=words):
        written(spec)


@pytest.mark.parametrize(
    ("document", "spec"),
    [
        (90, timedelta(seconds=90)),
        (0.5, timedelta(seconds=0.5)),
        ("*/5 * * * *", "*/5 * * * *"),
        ("@hourly", "@hourly"),
        ("FREQ=DAILY", "FREQ=DAILY"),
        ({"kind": "interval", "every": "1h30m"}, timedelta(minutes=90)),
        ({"kind": "interval", "every": 5, "relative": False}, 5),
        ({"kind": "interval", "every": 5, "relative": None}, 5),
        ({"kind": "crontab", "minute": "0", "hour": 3}, crontab(0, 3)),
        ({"kind": "crontab", "day_of_week": "fri-mon"}, crontab(day_of_week="fri-mon")),
        ({"kind": "once", "at": "2027-01-01T00:00", "fold": 0}, once("2027-01-01T00:00")),
        (
            {"kind": "rrule", "rule": "FREQ=DAILY;COUNT=2", "dtstart": "2027-01-01T08:00"},
            "DTSTART:20270101T080000 RRULE:FREQ=DAILY;COUNT=2",
        ),
    ],
)
def test_what_people_write_is_read(document, spec):
    assert table(read(document)) == table(spec)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "null; write a number of seconds"),
        (True, "a boolean; write"),
        ([], "a list; write"),
        (timedelta(1), "of the class timedelta; write"),
        ("", "it has 0 fields"),
        ("* * * *", "it has 4 fields"),
        (-5, "schedule.every = -5 is no time at all"),
        (1e300, "far too long"),
        ({}, "has no 'kind'; write one of 'interval'"),
        ({"kind": None}, "has no 'kind'"),
        ({"kind": "cronn", "expression": "@daily"}, "did you mean 'cron'"),
        ({"kind": 5}, "schedule.kind = 5 is unknown; write one of"),
        ({"kind": []}, "is unknown; write one of"),
        ({"kind": "interval"}, "has no 'every'; add that field"),
        ({"kind": "interval", "every": None}, "has no 'every'; add that field"),
        ({"kind": "interval", "every": 0}, "schedule.every = 0 is no time at all"),
        ({"kind": "interval", "every": 1e-7}, "is no time at all"),
        ({"kind": "interval", "every": True}, "schedule.every = True is no duration"),
        ({"kind": "interval", "every": "soon"}, "such as '90s'"),
        ({"kind": "interval", "every": "999999999999999d"}, "far too long"),
        ({"kind": "interval", "every": 5, "relative": "yes"}, "neither True nor False"),
        ({"kind": "interval", "evry": 5}, "unknown field 'evry'; did you mean 'every'?"),
        ({"kind": "cron", "expression": 5}, "schedule.expression = 5 is no text"),
        ({"kind": "cron", "expression": "@daily", "timezone": "Europe/Berln"}, BERLIN),
        ({"kind": "cron", "expression": "@daily", "timezone": 1}, "schedule.timezone = 1"),
        ({"kind": "crontab", "minute": "99"}, "schedule.minute = '99' is not valid: .* 0-59"),
        ({"kind": "crontab", "minute": 99}, "schedule.minute = 99 is not valid"),
        ({"kind": "crontab", "hour": "8-25"}, "schedule.hour = '8-25' is not valid"),
        ({"kind": "crontab", "hour": "*/0"}, "schedule.hour = '.*/0' is not valid"),
        ({"kind": "crontab", "day_of_week": "someday"}, "0-6 or sun-sat"),
        ({"kind": "crontab", "minute": ""}, "schedule.minute = '' is not valid"),
        ({"kind": "crontab", "minute": True}, "schedule.minute = True is no field"),
        ({"kind": "crontab", "minute": 1.5}, "is no field"),
        ({"kind": "crontab", "minute": []}, "is no field"),
        ({"kind": "crontab", "minute": ["1"]}, "is no field"),
        ({"kind": "crontab", "minute": [70]}, "schedule.minute = .70. is not valid"),
        ({"kind": "crontab", "minutes": "5"}, "did you mean 'minute'?"),
        ({"kind": "solar", "event": "sunsett", "lat": 1, "lon": 1}, "did you mean 'sunset'?"),
        ({"kind": "solar", "event": "sunset", "lat": 91, "lon": 1}, "lat must be .* -90 to 90"),
        ({"kind": "solar", "event": "sunset", "lat": "1", "lon": 1}, "schedule.lat = '1'"),
        ({"kind": "solar", "event": "sunset", "lat": 1}, "has no 'lon'"),
        ({"kind": "once", "at": "tomorrow"}, "schedule.at = 'tomorrow' is no instant"),
        ({"kind": "once", "at": 1_800_000_000}, "is no instant"),
        ({"kind": "once", "at": "2027-01-01T00:00", "fold": 2}, "neither 0 nor 1"),
        ({"kind": "once", "at": "2027-01-01T00:00", "fold": True}, "neither 0 nor 1"),
        ({"kind": "rrule", "rule": "FREQ=DAYLY"}, "DAILY"),
        ({"kind": "rrule", "rule": "FREQ=DAILY;COUNT=2"}, "counts from a start"),
        ({"kind": "rrule", "rule": "FREQ=DAILY", "dtstart": "soon"}, "schedule.dtstart = 'soon'"),
        ({"kind": "cron", 5: 1, "expression": "@daily"}, "unknown field 5"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_way_out(document, words):
    with pytest.raises(ConfigurationError, match=words):
        read(document)


def test_days_that_do_not_occur_are_told():
    document = {"kind": "crontab", "day_of_month": "30", "month_of_year": "2"}
    with pytest.raises(ConfigurationError, match="never fires"):
        table(read(document))


def test_a_zone_is_known_by_its_name():
    assert zone_name(BERLIN) == zone_name(ZoneInfo(BERLIN)) == BERLIN
    with pytest.raises(ConfigurationError, match="unknown time zone"):
        zone_name("Europe/Berln")
