from __future__ import annotations

from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab
from dateutil import tz as dateutil_tz

from celery_redlock_beat.ticks import Count
from celery_redlock_beat.timetables import CeleryCrontab
from celery_redlock_beat.timetables.zones import zone_of
from support.windows import at, day_of, shown

BERLIN = "Europe/Berlin"


def table_of(*fields, zone=BERLIN, **named):
    return CeleryCrontab.of(crontab(*fields, **named), zone_of(zone))


def test_fields_are_told_in_the_zone():
    assert table_of("0", "9").next_after(at("2026-06-19T00:00")) == at("2026-06-19T07:00")


def test_both_day_fields_must_match():
    table = table_of("0", "0", day_of_month="13", day_of_week="fri")
    assert shown(table, table.next_after(at("2026-06-01T00:00"))) == "2026-11-13T00:00"


def test_ranges_may_wrap_around():
    assert day_of(table_of("0", "22-1"), "2026-06-19") == ["00:00", "01:00", "22:00", "23:00"]


def test_the_second_pass_is_skipped_as_in_stock_beat():
    assert day_of(table_of("0", "*"), "2026-10-25")[1:4] == ["01:00", "02:00", "03:00"]


def test_a_time_in_a_gap_is_shifted_as_in_stock_beat():
    assert day_of(table_of("30", "2"), "2026-03-29") == ["03:30"]


def test_within_a_gap_the_next_tick_does_not_depend_on_the_moment_of_asking():
    table = table_of("30", "2")
    expected = at("2026-03-29T03:30", BERLIN)
    for hours in range(1, 24):
        assert table.next_after(expected - hours * 3_600_000_000) == expected
    assert table.next_after(expected - 1) == expected


def test_leap_days_eight_years_apart_are_found():
    table = table_of("0", "0", day_of_month="29", month_of_year="2")
    assert table.next_after(at("1896-03-01T00:00")) == at("1904-02-29T00:00", BERLIN)
    assert table.latest_until(at("1904-02-28T00:00")) == at("1896-02-29T00:00", BERLIN)


def test_the_years_at_both_ends_of_the_calendar_raise_nothing():
    for table in (table_of(), table_of("0", "0", day_of_month="29", month_of_year="2")):
        assert table.next_after(at("9999-12-31T00:00")) is None
        assert table.latest_until(at("0001-01-01T00:00")) is None
        assert table.next_after(at("0001-01-01T00:00")) is not None
        assert table.latest_until(at("9999-12-31T00:00")) is not None


def test_counting_is_exact_up_to_ten_thousand_and_then_at_least():
    table = table_of("*", "*", zone="UTC")
    start = at("2026-06-01T00:00")
    assert table.count_between(start, at("2026-06-02T00:00")) == Count(1439)
    assert table.count_between(start, at("2026-06-20T00:00")) == Count(10_000, exact=False)


def test_it_is_equal_by_expanded_fields_and_zone():
    assert table_of("*/15", "*") == table_of("0,15,30,45", "0-23", day_of_month="1-31")
    assert hash(table_of("*/15")) == hash(table_of("0,15,30,45"))
    assert table_of("*/15") != table_of("*/15", zone="UTC")
    assert table_of("*/15") != table_of("*/16")


def test_the_fingerprint_tells_fields_and_zone():
    assert table_of("*/15").fingerprint == f"crontab:0,15,30,45 * * * *:{BERLIN}"


def test_the_users_crontab_is_left_alone():
    schedule = crontab("0", "9")
    before = dict(vars(schedule))
    CeleryCrontab.of(schedule, zone_of(BERLIN)).next_after(0)
    assert vars(schedule) == before


class Nameless(tzinfo):
    """A zone of some other library: no name, no useful repr, no hash."""

    __hash__ = None

    def utcoffset(self, _):
        return timedelta(hours=2)

    def dst(self, _):
        return timedelta(0)

    def __eq__(self, other):
        return self is other


class Pytzish(Nameless):
    zone = BERLIN


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (ZoneInfo(BERLIN), BERLIN),
        (Pytzish(), BERLIN),
        (UTC, "UTC"),
        (ZoneInfo("Etc/UTC"), "UTC"),
        (timezone(timedelta(0), "whatever"), "UTC"),
        (timezone(timedelta(hours=5, minutes=30), "IST"), "UTC+05:30"),
        (Nameless(), "Nameless[+7200,+7200]"),
        (dateutil_tz.tzoffset(None, 7200), "tzoffset(None, 7200)[+7200,+7200]"),
    ],
)
def test_a_zone_has_a_name_that_every_process_gives_it(place, name):
    assert zone_of(place).name == name


@pytest.mark.parametrize(
    "place", [timezone(timedelta(hours=2)), Nameless(), dateutil_tz.tzoffset(None, 7200)]
)
def test_any_kind_of_tzinfo_will_do(place):
    table = CeleryCrontab.of(crontab("0", "9"), zone_of(place))
    assert table.next_after(at("2026-06-19T00:00")) == at("2026-06-19T07:00")
    assert table.latest_until(at("2026-06-19T00:00")) == at("2026-06-18T07:00")


@pytest.mark.parametrize("date", ["2026-03-29", "2026-10-25"])
def test_a_zone_without_a_name_is_on_the_grid_where_clocks_change(date):
    table = CeleryCrontab.of(crontab("30", "2"), zone_of(dateutil_tz.gettz(BERLIN)))
    midnight = at(f"{date}T00:00", BERLIN)
    expected = table.next_after(midnight)
    assert expected - midnight < 4 * 3_600_000_000
    for moment in range(midnight, expected, 900_000_000):
        assert table.next_after(moment) == expected
