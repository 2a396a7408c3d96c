from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Count, to_datetime
from celery_redlock_beat.timetables.cron import Cron, cron, read_cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.zones import UTC_ZONE, zone_of
from support.windows import at, day_of, shown

BERLIN = "Europe/Berlin"
LORD_HOWE = "Australia/Lord_Howe"


def after(expression, text, zone="UTC"):
    table = Cron(expression, zone)
    return shown(table, table.next_after(at(text, zone)))


def test_five_fields_begin_with_the_minute():
    assert after("*/5 9-17 * * MON-FRI", "2026-06-19T17:55") == "2026-06-22T09:00"


def test_six_fields_begin_with_the_second():
    table = Cron("*/20 * * * * *", "UTC")
    assert table.next_after(at("2026-06-19T12:00:20")) == at("2026-06-19T12:00:40")


def test_the_expression_is_told_in_its_zone():
    table = Cron("0 9 * * *", BERLIN)
    assert table.next_after(at("2026-06-19T00:00")) == at("2026-06-19T07:00")


def test_either_day_field_matches_when_both_are_given():
    table = Cron("0 0 13 * FRI", "UTC")
    days = []
    moment = at("2026-06-01T00:00")
    for _ in range(5):
        moment = table.next_after(moment)
        days.append(shown(table, moment)[8:10])
    assert days == ["05", "12", "13", "19", "26"]


def dates(expression, count, start="2026-01-01T00:00"):
    """Return the first dates of a daily expression, without the year."""
    table, moment = Cron(expression, BERLIN), at(start, BERLIN) - 1
    found = []
    while len(found) < count:
        moment = table.next_after(moment)
        found.append(shown(table, moment)[5:10])
    return found


def test_l_is_the_last_day_of_each_month():
    assert dates("0 9 L * *", 4) == ["01-31", "02-28", "03-31", "04-30"]
    assert dates("0 9 L 2 *", 3) == ["02-28", "02-28", "02-29"]
    assert dates("0 9 1,L * *", 3) == ["01-01", "01-31", "02-01"]


def test_lw_is_the_last_weekday_of_each_month():
    assert dates("0 9 lw * *", 5) == ["01-30", "02-27", "03-31", "04-30", "05-29"]


def test_a_weekday_with_l_is_the_last_one_of_each_month():
    assert dates("0 9 * * 5L", 3) == ["01-30", "02-27", "03-27"]
    assert dates("0 9 * * 0L", 3) == dates("0 9 * * 7L", 3) == ["01-25", "02-22", "03-29"]


def test_a_weekday_with_a_number_sign_is_the_nth_one_of_each_month():
    assert dates("0 9 * * 1#2", 3) == dates("0 9 * * mon#2", 3) == ["01-12", "02-09", "03-09"]
    assert dates("0 9 * * FRI#5", 3) == ["01-30", "05-29", "07-31"]
    assert dates("0 9 * * SUN#1,SUN#3", 3) == ["01-04", "01-18", "02-01"]


def test_months_and_weekdays_may_be_named():
    assert dates("0 9 * jul-aug Sat,sun", 3) == ["07-04", "07-05", "07-11"]
    assert dates("0 9 1 JAN,MAR *", 3) == ["01-01", "03-01", "01-01"]


def test_days_from_the_end_of_a_month_may_have_seconds():
    table = Cron("30 0 9 L * *", BERLIN)
    assert table.next_after(at("2026-06-19T00:00")) == at("2026-06-30T09:00:30", BERLIN)


def test_a_fixed_time_fires_once_where_clocks_go_back():
    assert day_of(Cron("30 2 * * *", BERLIN), "2026-10-25") == ["02:30"]


def test_a_fixed_time_in_a_gap_fires_at_its_end():
    assert day_of(Cron("30 2 * * *", BERLIN), "2026-03-29") == ["03:00"]


def test_an_hourly_job_fires_in_both_passes():
    hours = day_of(Cron("0 * * * *", BERLIN), "2026-10-25")
    assert len(hours) == 25
    assert hours[2:4] == ["02:00", "02:00"]


def test_an_hourly_job_fires_23_times_where_clocks_go_forward():
    hours = day_of(Cron("0 * * * *", BERLIN), "2026-03-29")
    assert len(hours) == 23
    assert "02:00" not in hours


def test_nothing_is_lost_where_clocks_move_by_half_an_hour():
    assert day_of(Cron("0 0 5 * * *", LORD_HOWE), "2026-04-05") == ["05:00"]
    assert day_of(Cron("*/30 5 * * *", LORD_HOWE), "2026-04-05") == ["05:00", "05:30"]
    assert day_of(Cron("*/15 3 * * *", LORD_HOWE), "2026-10-04") == [
        "03:00", "03:15", "03:30", "03:45"
    ]  # fmt: skip


def test_a_day_that_a_country_left_out_fires_once_at_its_end():
    table = Cron("0 3 * * *", "Pacific/Apia")
    moment = table.next_after(at("2011-12-29T12:00", "Pacific/Apia"))
    assert shown(table, moment) == "2011-12-31T00:00"
    assert shown(table, table.next_after(moment)) == "2011-12-31T03:00"


def test_leap_days_eight_years_apart_are_found():
    table = Cron("0 0 29 2 *", BERLIN)
    assert table.next_after(at("1896-03-01T00:00")) == at("1904-02-29T00:00", BERLIN)
    assert table.latest_until(at("1904-02-28T00:00")) == at("1896-02-29T00:00", BERLIN)


def test_a_far_tick_after_a_change_of_offset_is_exact():
    table = Cron("*/30 9 1 1 *", BERLIN)
    assert table.next_after(at("2026-07-01T00:00")) == at("2027-01-01T09:00", BERLIN)


def test_the_first_pass_is_found_from_half_a_year_before():
    table = Cron("* 2 25 10 *", BERLIN)
    winter, summer = at("2026-01-15T00:00"), at("2026-07-15T00:00")
    assert table.next_after(winter) == table.next_after(summer) == at("2026-10-25T00:00")


def test_the_second_pass_is_found_from_within_the_first():
    table = Cron("* 2 * * SUN", BERLIN)
    assert table.next_after(at("2026-10-25T00:59")) == at("2026-10-25T01:00")


def test_the_last_tick_of_a_busy_hour_is_found_the_morning_after():
    table = Cron("* * 3 * * *", BERLIN)
    assert table.latest_until(at("2026-06-19T12:00")) == at("2026-06-19T03:59:59", BERLIN)


def test_counting_is_exact_up_to_ten_thousand_and_then_at_least():
    table = Cron("* * * * *", "UTC")
    start = at("2026-06-01T00:00")
    week = timedelta(weeks=1) // timedelta(microseconds=1)
    assert table.count_between(start, start + week // 7) == Count(1439)
    assert table.count_between(start, start + week) == Count(10_000, exact=False)
    assert table.count_between(start, start) == Count(0)


def test_a_nickname_reads_as_its_fields():
    assert read_cron("@daily", zone_of(BERLIN)) == Cron("0 0 * * *", BERLIN)
    assert read_cron(" @Weekly ", UTC_ZONE) == Cron("0 0 * * 0", "UTC")
    assert read_cron("*/5 * * * *", zone_of(BERLIN)) == Cron("*/5 * * * *", BERLIN)


def test_a_nickname_is_never_hashed():
    assert read_cron("@hourly", UTC_ZONE, "report") == read_cron("@hourly", UTC_ZONE, "other")


def test_every_reads_as_an_interval_in_any_zone():
    assert read_cron("@every 90s", zone_of(BERLIN), "report") == Interval(90_000_000)


def test_an_h_reads_as_what_the_name_of_the_entry_chooses():
    table = read_cron("H H * * *", zone_of(BERLIN), "report")
    assert table == Cron("29 9 * * *", BERLIN)
    assert table.fingerprint == f"cron:29 9 * * *:{BERLIN}"
    assert read_cron("h(0-29)/10 * * * *", UTC_ZONE, "report") == Cron("9-29/10 * * * *", "UTC")


def test_a_hashed_time_is_fixed_and_fires_once_where_clocks_go_back():
    assert read_cron("H H(2-2) * * *", zone_of(BERLIN), "report") == Cron("29 2 * * *", BERLIN)
    assert day_of(Cron("29 2 * * *", BERLIN), "2026-10-25") == ["02:29"]


@pytest.mark.parametrize(
    "read", [lambda text: read_cron(text, UTC_ZONE), lambda text: Cron(text, "UTC")]
)
def test_an_h_without_a_name_is_refused_where_instants_are_asked_for(read):
    with pytest.raises(ConfigurationError, match="the name of the entry chooses what an H is"):
        read("H * * * *")


def test_the_years_at_both_ends_of_the_calendar_raise_nothing():
    for expression in ("* * * * *", "30 2 * * *", "0 0 29 2 *"):
        for zone in (BERLIN, "UTC", "Pacific/Apia"):
            table = Cron(expression, zone)
            assert table.next_after(at("9999-12-31T00:00")) is None
            assert table.latest_until(at("0001-01-01T00:00")) is None
            assert table.next_after(at("0001-01-01T00:00")) is not None
            assert table.latest_until(at("9999-12-31T00:00")) is not None


def test_notation_makes_no_other_timetable():
    assert Cron("0 9  * * mon", BERLIN) == Cron("0 9 * * MON", BERLIN)
    assert hash(Cron("0 9 * * mon", BERLIN)) == hash(Cron("0 9 * * MON", BERLIN))
    assert Cron("0 9 * * mon", BERLIN).fingerprint == f"cron:0 9 * * MON:{BERLIN}"
    assert Cron("0 9 * * *", BERLIN) != Cron("0 9 * * *", "UTC")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("61 * * * *", "the minute field '61' is not valid; allowed are 0-59"),
        ("0 24 * * *", "the hour field '24' is not valid"),
        ("0 0 * * FOO", "the day-of-week field 'FOO' is not valid"),
        ("75 0 * * * *", "the second field '75' is not valid"),
        ("0 0 32 * *", "the day-of-month field '32' is not valid"),
        ("0 0 * 13 *", "the month field '13' is not valid"),
        ("* * * *", "it has 4 fields; write 5"),
        ("daily", "it has 1 fields; write 5"),
        ("@dayly", "unknown nickname; did you mean '@daily'"),
        ("@every", "@every needs a duration"),
        ("", "it has 0 fields"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 4,6 *", "never fires"),
        ("0 0 L-3 * *", "the day-of-month field 'L-3' is not valid"),
        ("0 0 5L * *", "the day-of-month field '5L' is not valid"),
        ("0 0 15W * *", "the day-of-month field '15W' is not valid"),
        ("0 0 ? * *", "the day-of-month field '\\?' is not valid"),
        ("0 0 * * L", "the day-of-week field 'L' is not valid"),
        ("0 0 * * 8L", "the day-of-week field '8L' is not valid"),
        ("0 0 * * FRIL", "the day-of-week field 'FRIL' is not valid"),
        ("0 0 * * MON#6", "the day-of-week field 'MON#6' is not valid"),
        ("0 0 * * MON#0", "the day-of-week field 'MON#0' is not valid"),
        ("0 0 * JAN-FOO *", "the month field 'JAN-FOO' is not valid"),
        ("0 L * * *", "the hour field 'L' is not valid"),
        ("H(0-60) * * * *", r"the minute field 'H\(0-60\)' is not valid"),
        ("H/61 * * * *", "the minute field 'H/61' is not valid"),
        ("0 H/1 * * *", "the hour field 'H/1' is not valid.* n is at least 2"),
        ("0 0 0 H(20-32) * *", r"the day-of-month field 'H\(20-32\)' is not valid"),
        ("H H 61 * *", "the day-of-month field '61' is not valid"),
        ("H H 31 2 *", "never fires"),
    ],
)
def test_a_bad_expression_is_refused_by_field(expression, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        cron(expression)
    assert repr(expression) in str(caught.value)


def test_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(ConfigurationError, match="far too long"):
        cron(f"{'9' * 5000} * * * *")


def test_days_that_never_meet_are_refused():
    with pytest.raises(ConfigurationError, match="never fires"):
        cron("0 0 */31 2 MON#5")


@pytest.mark.parametrize("expression", [5, None, ["0 9 * * *"]])
def test_something_that_is_no_text_is_refused(expression):
    with pytest.raises(ConfigurationError, match="must be a string, not"):
        cron(expression)


def test_an_unknown_zone_is_refused_with_a_suggestion():
    with pytest.raises(ConfigurationError, match="did you mean 'Europe/Berlin'"):
        cron("* * * * *", timezone="Europe/Berlni")


@pytest.mark.parametrize("zone", ["", "../etc/passwd", "Europe", "Mars/Base"])
def test_a_name_that_is_no_zone_is_refused(zone):
    with pytest.raises(ConfigurationError, match="unknown time zone"):
        cron("* * * * *", timezone=zone)


def stock_view(schedule, now, zone="UTC"):
    schedule.app = Celery("shop", set_as_current=False, timezone=zone)
    schedule.nowfun = lambda: to_datetime(now).astimezone(ZoneInfo(zone))
    return schedule


def test_a_stock_beat_can_run_it():
    schedule = stock_view(cron("0 9 * * *", BERLIN), at("2026-06-19T09:00:00", BERLIN))
    assert schedule.is_due(datetime(2026, 6, 18, 7, 0, 1, tzinfo=UTC)) == (True, 86_400)
    assert schedule.is_due(datetime(2026, 6, 19, 7, 0, 0, tzinfo=UTC)) == (False, 86_400)


def test_a_stock_beat_can_run_a_nickname():
    schedule = stock_view(cron("@daily", BERLIN), at("2026-06-19T00:00:00", BERLIN))
    assert schedule.is_due(datetime(2026, 6, 18, 12, tzinfo=UTC)) == (True, 86_400)


def test_a_stock_beat_can_run_every():
    schedule = stock_view(cron("@every 90s"), at("2026-06-19T00:01:00"))
    assert schedule.remaining_estimate(datetime(2026, 6, 19, tzinfo=UTC)) == timedelta(seconds=30)
    assert schedule.is_due(datetime(2026, 6, 19, tzinfo=UTC)) == (False, 30)
    assert schedule.is_due(datetime(2026, 6, 18, 23, 59, tzinfo=UTC)) == (True, 30)


def test_an_h_is_taken_and_a_stock_beat_told_that_it_has_no_name():
    schedule = stock_view(cron("H * * * *"), at("2026-06-19T00:01:00"))
    with pytest.raises(ConfigurationError, match="the name of the entry chooses what an H is"):
        schedule.is_due(datetime(2026, 6, 19, tzinfo=UTC))
    assert schedule.timetable(name="report") == Cron("29 * * * *", "UTC")


def test_without_a_zone_it_is_told_in_that_of_the_app():
    schedule = stock_view(cron("0 9 * * *"), at("2026-06-19T08:00", BERLIN), BERLIN)
    assert schedule.is_due(datetime(2026, 6, 18, 12, tzinfo=UTC)) == (False, 3600)


def test_a_naive_last_run_is_utc_as_in_celery():
    schedule = stock_view(cron("0 9 * * *"), at("2026-06-19T08:00"))
    assert schedule.remaining_estimate(datetime(2026, 6, 19, 7)) == timedelta(hours=1)


def test_it_is_equal_by_meaning_and_survives_pickling():
    schedule = cron("0 9 * * mon", BERLIN)
    assert schedule == cron("0 9 * * MON", ZoneInfo(BERLIN))
    assert schedule != cron("0 9 * * MON")
    assert schedule != crontab("0", "9")
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert copy.copy(schedule) == schedule
    assert len({schedule, cron("0 9 * * MON", BERLIN)}) == 1
    assert cron("@daily") == cron(" @MIDNIGHT") == cron("0 0 * * *")
    assert cron("@every 90s") == cron("@every 1m30s") != cron("@every 91s")
    assert cron("h * * * *") == cron("H * * * *") != cron("H H * * *")
    assert repr(schedule) == "<cron: 0 9 * * mon Europe/Berlin>"
