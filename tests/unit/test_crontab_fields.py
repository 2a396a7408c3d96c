from __future__ import annotations

from datetime import datetime

import pytest
from celery.schedules import crontab

from celery_redlock_beat.timetables.crontab_fields import CrontabFields


def after(text, *fields, **named):
    found = CrontabFields.of(crontab(*fields, **named)).wall_after(datetime.fromisoformat(text))
    return found.isoformat(timespec="minutes")


def test_the_next_match_is_later_than_the_moment_by_as_little_as_a_second():
    assert after("2026-06-19T11:59:59", 0, 12) == "2026-06-19T12:00"
    assert after("2026-06-19T12:00:00", 0, 12) == "2026-06-20T12:00"
    assert after("2026-06-19T12:00:59") == "2026-06-19T12:01"


def test_within_an_hour_the_next_minute_and_then_the_next_hour_is_found():
    assert after("2026-06-19T09:20", "5,35", "9-17") == "2026-06-19T09:35"
    assert after("2026-06-19T09:35", "5,35", "9-17") == "2026-06-19T10:05"
    assert after("2026-06-19T17:35", "5,35", "9-17") == "2026-06-20T09:05"


def test_a_day_must_be_in_all_fields():
    assert after("2026-06-01", 0, 0, "fri", "13") == "2026-11-13T00:00"
    assert after("2026-06-01", 0, 0, "fri", "13", "2,3") == "2032-02-13T00:00"


def test_ranges_may_wrap_around():
    assert after("2026-06-19T01:30", 0, "22-1") == "2026-06-19T22:00"
    assert after("2026-06-19T12:00", 0, 0, "sat-mon") == "2026-06-20T00:00"
    assert after("2026-06-19T12:00", 0, 0, month_of_year="11-2") == "2026-11-01T00:00"


def test_sunday_is_day_zero():
    assert after("2026-06-19", 0, 0, {0}) == "2026-06-21T00:00"


def test_leap_days_and_leap_mondays_are_found():
    assert after("1896-03-01", 0, 0, "*", 29, 2) == "1904-02-29T00:00"
    assert after("2076-03-01", 0, 0, "sat", 29, 2) == "2116-02-29T00:00"


def test_days_that_never_meet_are_told():
    schedule = crontab(month_of_year="2")
    schedule.day_of_month = {30}  # Celery before 5.7 lets such a crontab be made
    with pytest.raises(ValueError, match="no day is in all of the fields"):
        CrontabFields.of(schedule).wall_after(datetime(2026, 6, 19))


def test_an_empty_field_never_matches():
    fields = CrontabFields.of(crontab(minute=[], hour="*"))
    with pytest.raises(ValueError):
        fields.wall_after(datetime(2026, 6, 19))


def test_the_calendar_ends_with_the_year_9999():
    with pytest.raises(ValueError):
        after("9999-12-31T23:59")


def test_the_text_has_a_star_for_what_is_whole():
    fields = CrontabFields.of(crontab("*/15", "0-23", "sun,mon", {1, 2}, "*"))
    assert fields.text == "0,15,30,45 * 0,1 1,2 *"


def test_it_is_equal_by_value_however_it_is_written():
    assert CrontabFields.of(crontab("*/30")) == CrontabFields.of(crontab([0, 30]))
    assert hash(CrontabFields.of(crontab("*/30"))) == hash(CrontabFields.of(crontab({30, 0})))
    assert CrontabFields.of(crontab("*/30")) != CrontabFields.of(crontab("*/20"))
