from __future__ import annotations

import pickle

import pytest
from celery.schedules import crontab
from dateutil import tz as dateutil_tz

from celery_redlock_beat.ticks import Count
from celery_redlock_beat.timetables.celery_crontab import CeleryCrontab
from celery_redlock_beat.timetables.real_crontab import RealCrontab
from celery_redlock_beat.timetables.zones import zone_of
from support.windows import at, day_of, shown

BERLIN = "Europe/Berlin"


def table_of(*fields, zone=BERLIN, **named):
    return RealCrontab.of(crontab(*fields, **named), zone_of(zone))


def test_an_hourly_crontab_fires_in_both_passes():
    hours = day_of(table_of(0), "2026-10-25")
    assert len(hours) == 25
    assert hours[1:5] == ["01:00", "02:00", "02:00", "03:00"]


def test_quarters_of_an_hour_follow_elapsed_time():
    assert len(day_of(table_of("*/15"), "2026-10-25")) == 100
    assert len(day_of(table_of("*/15"), "2026-03-29")) == 92


def test_a_wildcard_fires_nothing_in_a_gap():
    assert day_of(table_of(0, "*/2"), "2026-03-29")[:2] == ["00:00", "04:00"]


def test_a_fixed_time_fires_once_where_clocks_go_back():
    assert day_of(table_of(30, 2), "2026-10-25") == ["02:30"]
    table = table_of(30, 2)
    assert table.next_after(at("2026-10-24T12:00")) == at("2026-10-25T00:30")  # the first pass


def test_a_fixed_time_in_a_gap_fires_at_its_end():
    assert day_of(table_of(30, 2), "2026-03-29") == ["03:00"]


def test_a_day_that_a_country_left_out_fires_once_at_its_end():
    table = table_of(0, 3, zone="Pacific/Apia")
    moment = table.next_after(at("2011-12-29T12:00", "Pacific/Apia"))
    assert shown(table, moment) == "2011-12-31T00:00"
    assert shown(table, table.next_after(moment)) == "2011-12-31T03:00"


def test_away_from_changes_it_agrees_with_celerys():
    fields = {"day_of_week": "mon-fri", "day_of_month": "1-10,31", "month_of_year": "11-2"}
    table = table_of("5,35", "22-1", **fields)
    celerys = CeleryCrontab.of(crontab("5,35", "22-1", **fields), zone_of(BERLIN))
    moment = at("2026-06-19T00:00")
    for _ in range(200):
        assert table.next_after(moment) == celerys.next_after(moment)
        moment = table.next_after(moment)


@pytest.mark.parametrize(
    ("minute", "hour", "fixed"),
    [
        ("*", "2", False),
        ("*/15", 2, False),
        ("*,5", 2, False),
        (0, "*/2", False),
        (set(range(60)), 2, False),
        (0, list(range(24)), False),
        (0, 2, True),
        ("0,15,30,45", "2", True),
        ({0, 15, 30, 45}, [2, 3], True),
        ("5,*/15", 2, True),
        ("0-59", "0-23", True),
    ],
)
def test_a_wildcard_is_written_with_a_star_in_front_or_is_a_whole_set(minute, hour, fixed):
    assert table_of(minute, hour).fixed is fixed


def test_a_crontab_that_was_pickled_is_read_as_it_was_written():
    for schedule in (crontab("*/15", 2), crontab("0,15,30,45", 2), crontab({0, 15}, "*")):
        copy = pickle.loads(pickle.dumps(schedule))
        assert RealCrontab.of(copy, zone_of(BERLIN)) == RealCrontab.of(schedule, zone_of(BERLIN))


def test_what_is_a_wildcard_is_part_of_its_value():
    star, numbers = table_of("*/15", 2), table_of("0,15,30,45", 2)
    assert day_of(star, "2026-06-19") == day_of(numbers, "2026-06-19")
    assert len(day_of(star, "2026-10-25")) == 8
    assert len(day_of(numbers, "2026-10-25")) == 4
    assert star != numbers
    assert star.fingerprint == f"crontab-real:0,15,30,45 2 * * *:elapsed:{BERLIN}"
    assert numbers.fingerprint == f"crontab-real:0,15,30,45 2 * * *:fixed:{BERLIN}"


def test_it_is_equal_by_what_it_means():
    assert table_of("*/15") == table_of("*/15", "*", day_of_month="1-31")
    assert hash(table_of("*/15")) == hash(table_of("*/15", "*", day_of_month="1-31"))
    assert table_of("*/15") != table_of("*/15", zone="UTC")
    assert table_of("*/15") != CeleryCrontab.of(crontab("*/15"), zone_of(BERLIN))


def test_days_that_never_meet_have_no_tick():
    february = crontab(0, 0, month_of_year="2")
    february.day_of_month = {30}  # Celery before 5.7 lets such a crontab be made
    table = RealCrontab.of(february, zone_of(BERLIN))
    assert table.next_after(at("2026-06-19T00:00")) is None
    assert table_of(minute=[]).next_after(at("2026-06-19T00:00")) is None


def test_the_years_at_both_ends_of_the_calendar_raise_nothing():
    for table in (table_of(), table_of(0, 0), table_of(0, 0, day_of_month=29, month_of_year=2)):
        assert table.next_after(at("9999-12-31T00:00")) is None
        assert table.latest_until(at("0001-01-01T00:00")) is None
        assert table.next_after(at("0001-01-01T00:00")) is not None
        assert table.latest_until(at("9999-12-31T00:00")) is not None


def test_counting_follows_elapsed_time():
    start, end = at("2026-10-25T00:00", BERLIN), at("2026-10-26T00:00", BERLIN)
    assert table_of(0).count_between(start - 1, end) == Count(25)


def test_the_users_crontab_is_left_alone():
    schedule = crontab("0", "9")
    before = dict(vars(schedule))
    RealCrontab.of(schedule, zone_of(BERLIN)).next_after(0)
    assert vars(schedule) == before


def test_a_zone_without_a_name_will_do():
    table = RealCrontab.of(crontab(30, 2), zone_of(dateutil_tz.gettz(BERLIN)))
    assert table.next_after(at("2026-03-28T12:00")) == at("2026-03-29T01:00")
    assert table.next_after(at("2026-10-24T12:00")) == at("2026-10-25T00:30")
    assert table.next_after(at("2026-10-25T00:30")) == at("2026-10-26T01:30")
