from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import (
    CeleryCrontab,
    Cron,
    Interval,
    Opaque,
    cron,
    timetable_for,
)


def shop(**conf):
    return Celery("shop", set_as_current=False, **conf)


APP = shop(timezone="Europe/Berlin")


def now():
    return datetime(2026, 6, 19, tzinfo=UTC)


class Workdays(crontab):
    """A crontab of a user's own class."""


class Hourly(schedule):
    """An interval of a user's own class."""


class Fancy(cron):
    """A cron string of a user's own class."""


@pytest.mark.parametrize(
    "spec",
    [10, 10.0, timedelta(seconds=10), schedule(10), schedule(timedelta(seconds=10), app=APP)],
)
def test_a_number_a_timedelta_and_celerys_schedule_are_intervals(spec):
    assert timetable_for(spec, APP) == Interval(10 * SECOND)


def test_fractions_of_a_second_are_exact():
    assert timetable_for(0.1, APP) == Interval(100_000)


@pytest.mark.parametrize(
    "spec", [0, -5, 0.0, timedelta(0), timedelta(seconds=-1), schedule(0), 1e-7, 4e-7]
)
def test_an_interval_that_is_not_positive_is_refused(spec):
    with pytest.raises(ConfigurationError, match="must be positive"):
        timetable_for(spec, APP)


@pytest.mark.parametrize("spec", [math.nan, math.inf, 1e300, schedule()])
def test_an_interval_that_is_no_finite_number_is_refused(spec):
    with pytest.raises(ConfigurationError, match="finite number"):
        timetable_for(spec, APP)


def test_a_crontab_is_told_in_the_zone_of_the_app():
    table = timetable_for(crontab("0", "9"), APP)
    assert isinstance(table, CeleryCrontab)
    assert table.zone == "Europe/Berlin"
    assert timetable_for(crontab("0", "9"), shop()).zone == "UTC"


def test_a_crontab_with_a_zone_of_its_own_keeps_it():
    schedule = crontab("0", "9")
    schedule.tz = ZoneInfo("Asia/Tokyo")
    assert timetable_for(schedule, APP).zone == "Asia/Tokyo"


def test_equal_crontabs_share_one_timetable():
    one = timetable_for(crontab("*/15"), APP)
    assert timetable_for(crontab("0,15,30,45"), APP) is one


@pytest.mark.parametrize("spec", ["0 9 * * *", cron("0 9 * * *")])
def test_a_cron_string_is_told_in_the_zone_of_the_app(spec):
    assert timetable_for(spec, APP) == Cron("0 9 * * *", "Europe/Berlin")


def test_a_cron_schedule_with_a_zone_of_its_own_keeps_it():
    assert timetable_for(cron("0 9 * * *", "Asia/Tokyo"), APP) == Cron("0 9 * * *", "Asia/Tokyo")


def test_an_app_whose_zone_is_a_fixed_offset_will_do():
    app = SimpleNamespace(timezone=timezone(timedelta(hours=2)))
    assert timetable_for("0 9 * * *", app).next_after(0) == 7 * 3600 * SECOND
    assert timetable_for(crontab("0", "9"), app).next_after(0) == 7 * 3600 * SECOND


@pytest.mark.parametrize(
    "spec",
    [
        schedule(timedelta(days=1), relative=True),
        schedule(10, nowfun=now),
        crontab("0", "9", nowfun=now),
        cron("0 9 * * *", nowfun=now),
        Workdays("0", "9"),
        Hourly(10),
        Fancy("0 9 * * *"),
        SimpleNamespace(is_due=lambda _: (True, 1)),
    ],
)
def test_what_may_behave_differently_is_asked_and_not_computed(spec):
    table = timetable_for(spec, APP)
    assert isinstance(table, Opaque)
    assert table.schedule is spec


def test_solar_schedules_are_asked():
    pytest.importorskip("ephem")
    from celery.schedules import solar

    assert isinstance(timetable_for(solar("sunset", 52.5, 13.4), APP), Opaque)


def test_a_timetable_is_taken_as_it_is():
    table = Interval(10)
    assert timetable_for(table, APP) is table


@pytest.mark.parametrize("spec", [None, object(), True, crontab, Interval, [10], {"every": 10}])
def test_what_is_no_schedule_is_refused(spec):
    with pytest.raises(ConfigurationError, match="is not a schedule"):
        timetable_for(spec, APP)


def test_a_bad_cron_string_is_refused():
    with pytest.raises(ConfigurationError, match="minute field '61'"):
        timetable_for("61 * * * *", APP)


def test_a_crontab_that_never_fires_is_refused():
    never = crontab("0", "0", day_of_month="1-31", month_of_year="2")
    never.day_of_month = {30, 31}  # Celery before 5.7 lets such a crontab be made
    never._orig_day_of_month = "30,31"
    with pytest.raises(ConfigurationError, match="never fires"):
        timetable_for(never, APP)


def test_an_app_with_an_unknown_zone_is_refused_by_the_name_of_the_setting():
    with pytest.raises(ConfigurationError, match="the setting timezone = 'Mars/Base'"):
        timetable_for(crontab(), shop(timezone="Mars/Base"))
