"""What schedules say in words; each reading was compared with the days and times by hand."""

from __future__ import annotations

import locale

import pytest
from celery.schedules import crontab, solar

from celery_redlock_beat.diagnostics.schedules import plain_cron
from celery_redlock_beat.diagnostics.schedules.plain_language import (
    duration,
    lacks_the_extra,
    reading_of,
)
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import (
    Bounded,
    CeleryCrontab,
    Cron,
    Interval,
    Once,
    Opaque,
    RealCrontab,
    Relative,
    Rule,
    Solar,
)
from celery_redlock_beat.timetables.zones import DAY, UTC_ZONE

HOUR = 3600 * SECOND
AT = 1_900_000_000 * SECOND

EXPRESSIONS = {
    "* * * * *": "Every minute",
    "*/5 * * * *": "Every 5 minutes",
    "*/7 * * * *": "Every 7 minutes, minutes 0 through 56 past the hour",
    "*/40 * * * *": "At 0 and 40 minutes past the hour",
    "0 * * * *": "Every hour",
    "5 * * * *": "At 5 minutes past the hour",
    "0-59 * * * *": "Every minute",
    "5/15 * * * *": "At 5, 20, 35, and 50 minutes past the hour",
    "10-20/3 * * * *": "At 10, 13, 16, and 19 minutes past the hour",
    "1-59/2 * * * *": "Every 2 minutes, minutes 1 through 59 past the hour",
    "30 2 * * *": "At 02:30, every day",
    "0 */6 * * *": "At 00:00, 06:00, 12:00, and 18:00, every day",
    "0 */2 * * *": "Every 2 hours from 00:00 to 22:00, every day",
    "0 */5 * * *": "Every 5 hours from 00:00 to 20:00, every day",
    "0 9-17 * * *": "Every hour from 09:00 to 17:00, every day",
    "30 9-17 * * MON-FRI": "Every hour from 09:30 to 17:30, on Monday through Friday",
    "*/5 9-17 * * 1-5": "Every 5 minutes, between 09:00 and 17:59, on Monday through Friday",
    "0,30 9,17 * * *": "At 09:00, 09:30, 17:00, and 17:30, every day",
    "15,45 8,13,21 * * *": "At 08:15, 08:45, 13:15, 13:45, 21:15, and 21:45, every day",
    "*/10 3,4,8 * * *": (
        "Every 10 minutes, at 03:00 through 04:59 and 08:00 through 08:59, every day"
    ),
    "* 3 * * *": "Every minute, between 03:00 and 03:59, every day",
    "0 0 1 * *": "At 00:00, on day 1 of the month",
    "0 0 1,15 * *": "At 00:00, on day 1 and 15 of the month",
    "0 0 */2 * *": "At 00:00, every 2 days, between day 1 and 31 of the month",
    "0 0 L * *": "At 00:00, on the last day of the month",
    "0 0 LW * *": "At 00:00, on the last weekday of the month",
    "0 0 1-7,L * *": (
        "At 00:00, between day 1 and 7 of the month and on the last day of the month"
    ),
    "0 0 * * 7": "At 00:00, on Sunday",
    "0 0 * * 6-7": "At 00:00, on Saturday and Sunday",
    "0 0 * * */2": "At 00:00, on Tuesday, Thursday, Saturday, and Sunday",
    "0 0 * * 0-6": "At 00:00, every day",
    "0 0 * * 5L": "At 00:00, on the last Friday of the month",
    "0 0 * * FRI,MON#2": "At 00:00, on Friday and the second Monday of the month",
    "0 0 * 1,6 *": "At 00:00, every day, only in January and June",
    "0 0 * */3 *": "At 00:00, every day, only in January, April, July, and October",
    "0 0 29 2 *": "At 00:00, on day 29 of the month, only in February",
    # Both day fields: either suffices, unless one begins with a star.
    "0 0 13 * FRI": "At 00:00, on day 13 of the month, and also on Friday",
    "59 23 31 12 5": "At 23:59, on day 31 of the month, and also on Friday, only in December",
    "0 0 */2 * 1-5": (
        "At 00:00, every 2 days, between day 1 and 31 of the month, "
        "but only on Monday through Friday"
    ),
    "0 0 1-31 * 5": "At 00:00, every day",
    "0 0 1 * 0-6": "At 00:00, every day",
    # With the second in front.
    "* * * * * *": "Every second",
    "*/30 * * * * *": "Every 30 seconds",
    "0 0 12 * * *": "At 12:00, every day",
    "5 0 12 * * *": "At 12:00:05, every day",
    "5 * * * * *": "At 5 seconds past the minute",
    "5 0 * * * *": "At 5 seconds past the minute, at 0 minutes past the hour",
    "10-20 30 12 * * *": (
        "Seconds 10 through 20 past the minute, during minute 30 of the hour, "
        "between 12:00 and 12:59, every day"
    ),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_cron_string_reads_as_it_fires(expression):
    assert reading_of(Cron(expression, "UTC")) == EXPRESSIONS[expression]


CRONTABS = [
    ({}, "Every minute"),
    ({"minute": 0}, "Every hour"),
    ({"minute": 30, "hour": 2}, "At 02:30, every day"),
    ({"minute": {0, 30}, "hour": {8, 20}}, "At 08:00, 08:30, 20:00, and 20:30, every day"),
    # Both day fields: a day must be in both.
    (
        {"minute": 0, "hour": 0, "day_of_month": 13, "day_of_week": "fri"},
        "At 00:00, on day 13 of the month, but only on Friday",
    ),
    (
        {"minute": 0, "hour": 0, "day_of_month": "1-7", "day_of_week": "mon,wed,fri"},
        "At 00:00, between day 1 and 7 of the month, but only on Monday, Wednesday, and Friday",
    ),
    # Ranges that run over the end.
    (
        {"minute": 0, "hour": 0, "day_of_week": "fri-mon"},
        "At 00:00, on Friday through Monday",
    ),
    (
        {"minute": 0, "hour": 0, "month_of_year": "11-2"},
        "At 00:00, every day, only in November through February",
    ),
    (
        {"minute": 0, "hour": 0, "day_of_month": "28-3"},
        "At 00:00, on day 1 through 3 and 28 through 31 of the month",
    ),
    ({"minute": "*/15", "hour": "22-2"}, "Every 15 minutes, between 22:00 and 02:59, every day"),
    # On Friday between 22:00 and 02:59 would be told of Saturday morning, too.
    (
        {"minute": "*/15", "hour": "22-2", "day_of_week": "fri"},
        "Every 15 minutes, at 00:00 through 02:59 and 22:00 through 23:59, on Friday",
    ),
    ({"minute": "50-10"}, "At 0 through 10 and 50 through 59 minutes past the hour"),
    (
        {"minute": 0, "hour": "*/6,8-10"},
        "At 00:00, 06:00, 08:00, 09:00, 10:00, 12:00, and 18:00, every day",
    ),
    (
        {"minute": 30, "hour": "0-10,15-23"},
        "At 30 minutes past the hour, between 15:00 and 10:59, every day",
    ),
]


@pytest.mark.parametrize(("fields", "reading"), CRONTABS)
def test_a_crontab_reads_as_celery_has_it(fields, reading):
    schedule = crontab(**fields)
    assert reading_of(CeleryCrontab.of(schedule, UTC_ZONE)) == reading
    assert reading_of(RealCrontab.of(schedule, UTC_ZONE)) == reading


RULES = [
    ("FREQ=DAILY;BYHOUR=9", "Every day, at 09:00"),
    (
        "DTSTART:20260105T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR",
        "Every 2 weeks, on Monday and Friday, at 09:00, from 2026-01-05 09:00:00 on",
    ),
    (
        "FREQ=MONTHLY;BYDAY=1MO,-1FR",
        "Every month, on the first Monday of the month and the last Friday of the month, at 00:00",
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
        "Every month, on day 13 of the month, but only on Friday, at 00:00",
    ),
    (
        "FREQ=MONTHLY;BYMONTHDAY=-2",
        "Every month, on the second to last day of the month, at 00:00",
    ),
    (
        "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1;BYHOUR=18",
        "Every month, on Monday and Tuesday, at 18:00, of these only the last in each month",
    ),
    (
        "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
        "Every year, on the fourth Thursday of the month, only in November, at 00:00",
    ),
    ("FREQ=YEARLY;BYDAY=21MO", "Every year, on the 21st Monday of the year, at 00:00"),
    ("FREQ=YEARLY;BYDAY=12MO", "Every year, on the 12th Monday of the year, at 00:00"),
    (
        "FREQ=YEARLY;BYWEEKNO=20,-1;BYDAY=MO",
        "Every year, in the last week and week 20, on Monday, at 00:00",
    ),
    ("FREQ=YEARLY;BYYEARDAY=100", "Every year, on day 100 of the year, at 00:00"),
    ("FREQ=MINUTELY;INTERVAL=15;BYHOUR=9,10,11", "Every 15 minutes, at hours 9 to 11"),
    ("FREQ=HOURLY;BYMINUTE=5,35", "Every hour, at minutes 5 and 35"),
    (
        "DTSTART:20260101T000000 RRULE:FREQ=DAILY;COUNT=5",
        "Every day, at 00:00, from 2026-01-01 00:00:00 on, 5 times in all",
    ),
    ("FREQ=DAILY;UNTIL=20261231T000000Z", "Every day, at 00:00, until 2026-12-31 00:00:00 UTC"),
    ("RDATE:20260101T000000", "On 2026-01-01 00:00:00"),
    (
        "RRULE:FREQ=DAILY RRULE:FREQ=HOURLY;BYDAY=SA EXDATE:20261225T000000",
        (
            "Every day, at 00:00; also every hour, on Saturday, at minute 0; "
            "but not on 2026-12-25 00:00:00"
        ),
    ),
    (
        "RRULE:FREQ=DAILY EXRULE:FREQ=DAILY;BYMONTHDAY=1 RDATE:20260101,20260201,20260301,20260401",
        "Every day, at 00:00; also on 4 dates; but not every day, on day 1 of the month, at 00:00",
    ),
]


@pytest.mark.parametrize(("text", "reading"), RULES)
def test_a_recurrence_rule_reads_part_by_part(text, reading):
    assert reading_of(Rule(text, "Europe/Berlin")) == reading


class Hourly:
    def is_due(self, last_run_at):
        raise AssertionError("it was asked")

    def __repr__(self):
        raise AssertionError("it was shown")


SINCE = "at whole multiples since 1970-01-01 00:00 UTC"


@pytest.mark.parametrize(
    ("table", "reading"),
    [
        (Interval(90 * SECOND), f"Every 90 seconds, {SINCE}"),
        (Interval(DAY, 6 * HOUR), f"Every day, {SINCE}, plus 6 hours"),
        (Relative(5 * HOUR, UTC_ZONE), "Every 5 hours, counted anew from each local midnight"),
        (Relative(DAY, UTC_ZONE), "Every day at local midnight"),
        (
            Relative(2 * DAY, UTC_ZONE, HOUR),
            "Every 2 days at local midnight, plus 1 hour, counted in whole days since 1970-01-01",
        ),
        (
            Solar.of(solar("dusk_civil", -37.8, 144.9)),
            "At civil dusk, at latitude -37.8 and longitude 144.9",
        ),
        (
            Solar.of(solar("solar_noon", 0, 0)),
            "At solar noon, at latitude 0 and longitude 0",
        ),
        (Once(AT), "Once, at 2030-03-17T17:46:40Z"),
        (Opaque(Hourly()), "Only Hourly knows when it is due"),
        (Bounded(Interval(SECOND), AT, None), f"Every second, {SINCE}"),
    ],
)
def test_other_kinds_read_in_one_line(table, reading):
    assert reading_of(table) == reading


def test_a_timetable_of_a_users_own_has_no_reading():
    assert reading_of(Hourly()) is None
    assert not lacks_the_extra(Hourly())


def test_without_the_extra_only_cron_schedules_have_no_reading(monkeypatch):
    monkeypatch.setattr(plain_cron, "find_spec", lambda _: None)
    assert reading_of(Cron("0 0 * * *", "UTC")) is None
    assert lacks_the_extra(Bounded(Cron("0 0 * * *", "UTC"), 0, None))
    assert reading_of(Interval(SECOND)) == f"Every second, {SINCE}"
    assert not lacks_the_extra(Interval(SECOND))


def test_readings_are_in_english_where_no_locale_is_set(monkeypatch):
    monkeypatch.setattr(locale, "getlocale", lambda *_: (None, None))
    plain_cron._described.cache_clear()
    assert reading_of(Cron("3 * * * *", "UTC")) == "At 3 minutes past the hour"


@pytest.mark.parametrize(
    ("micros", "words"),
    [
        (DAY, "1 day"),
        (36 * HOUR, "36 hours"),
        (90 * 60 * SECOND, "90 minutes"),
        (SECOND, "1 second"),
        (SECOND // 10, "0.1 seconds"),
        (1, "0.000001 seconds"),
    ],
)
def test_a_duration_is_told_in_the_largest_unit_without_a_fraction(micros, words):
    assert duration(micros) == words
