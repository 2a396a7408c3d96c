from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import dateutil.rrule
import pytest
from celery import Celery
from celery.schedules import crontab, schedule, solar

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, to_micros
from celery_redlock_beat.timetables import (
    Bounded,
    CeleryCrontab,
    Cron,
    Interval,
    Once,
    Opaque,
    RealCrontab,
    Relative,
    Solar,
    Terms,
    cron,
    once,
    rrule,
    timetable_for,
)
from celery_redlock_beat.timetables.zones import zone_of


def shop(**conf):
    return Celery("shop", set_as_current=False, **conf)


APP = shop(timezone="Europe/Berlin")


def now():
    return datetime(2026, 6, 19, tzinfo=UTC)


class Workdays(crontab):
    """A crontab of a user's own class."""


class Hourly(schedule):
    """An interval of a user's own class."""


class Always:
    """A schedule of a user's own that is always due."""

    def is_due(self, _last_run_at):
        return True, 1


def at(text):
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


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


def test_a_relative_interval_counts_from_local_midnight():
    table = timetable_for(schedule(timedelta(days=1), relative=True), APP)
    assert table == Relative(86_400 * SECOND, zone_of("Europe/Berlin"))
    assert table.next_after(0) == 23 * 3600 * SECOND


def test_a_solar_schedule_is_computed():
    pytest.importorskip("ephem")
    assert timetable_for(solar("sunset", 52.5, 13.4), APP) == Solar("sunset", 52.5, 13.4)


def test_a_solar_event_that_never_happens_is_refused():
    pytest.importorskip("ephem")
    with pytest.raises(ConfigurationError, match="never fires"):
        timetable_for(solar("sunset", 90, 0), APP)


def test_once_is_one_instant():
    assert timetable_for(once("2027-01-01T00:00"), APP) == Once(at("2026-12-31T23:00"))
    assert timetable_for(once("2027-01-01T00:00+09:00"), APP) == Once(at("2026-12-31T15:00"))


def test_the_clocked_of_django_celery_beat_is_one_instant():
    clocked = pytest.importorskip("django_celery_beat.clockedschedule").clocked
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    assert timetable_for(clocked(moment, nowfun=None, app=APP), APP) == Once(at("2027-01-01T00:00"))


@pytest.mark.parametrize(
    "spec",
    [
        "FREQ=DAILY;BYHOUR=9",
        rrule("FREQ=DAILY;BYHOUR=9"),
        dateutil.rrule.rrule(
            dateutil.rrule.DAILY, byhour=9, byminute=0, bysecond=0, dtstart=datetime(1970, 1, 1)
        ),
    ],
)
def test_a_rule_is_computed_in_whatever_form_it_comes(spec):
    table = timetable_for(spec, APP)
    assert table.next_after(at("2026-06-19T00:00")) == at("2026-06-19T07:00")


def test_every_and_nicknames_are_cron_strings():
    assert timetable_for("@every 90s", APP) == Interval(90 * SECOND)
    assert timetable_for("@daily", APP) == Cron("0 0 * * *", "Europe/Berlin")
    assert timetable_for(cron("@every 90s"), APP) == Interval(90 * SECOND)


def test_the_name_of_the_entry_chooses_hashed_fields():
    tables = {timetable_for("H H * * *", APP, Terms(name=f"job {n}")) for n in range(50)}
    assert len(tables) > 40
    assert timetable_for("H H * * *", APP, Terms(name="job 1")) in tables


class TestTerms:
    @pytest.mark.parametrize(
        "spec",
        [
            "0 9 * * *",
            cron("0 9 * * *"),
            crontab("0", "9"),
            rrule("FREQ=DAILY;BYHOUR=9"),
            once("2026-06-19T09:00"),
        ],
        ids=lambda spec: type(spec).__name__,
    )
    def test_the_zone_of_the_entry_goes_before_the_apps(self, spec):
        table = timetable_for(spec, APP, Terms(timezone="Asia/Tokyo"))
        assert table.next_after(at("2026-06-18T12:00")) == at("2026-06-19T00:00")

    def test_also_where_celery_has_noted_the_apps_zone_on_the_crontab(self):
        spec = crontab("0", "9", app=APP)
        assert spec.tz == ZoneInfo("Europe/Berlin")
        assert timetable_for(spec, APP, Terms(timezone="Asia/Tokyo")).zone == "Asia/Tokyo"

    @pytest.mark.parametrize(
        "spec",
        [cron("0 9 * * *", "Asia/Tokyo"), once("2026-06-19T09:00", timezone="Asia/Tokyo")],
        ids=lambda spec: type(spec).__name__,
    )
    def test_two_zones_of_one_entry_are_refused(self, spec):
        with pytest.raises(ConfigurationError, match=r"'Europe/Paris', and its schedule has 'Asia"):
            timetable_for(spec, APP, Terms(timezone="Europe/Paris"))
        assert timetable_for(spec, APP, Terms(timezone=ZoneInfo("Asia/Tokyo")))

    def test_an_opaque_schedule_is_asked_in_the_zone_of_the_entry(self):
        table = timetable_for(Workdays("0", "9"), APP, Terms(timezone="Asia/Tokyo"))
        assert table.zone == ZoneInfo("Asia/Tokyo")

    def test_a_phase_shifts_intervals(self):
        phase = Terms(phase=7 * SECOND)
        assert timetable_for(60, APP, phase) == Interval(60 * SECOND, 7 * SECOND)
        assert timetable_for("@every 60s", APP, phase) == Interval(60 * SECOND, 7 * SECOND)
        assert timetable_for(60, APP, Terms(phase=-7 * SECOND)).phase == 53 * SECOND
        relative = timetable_for(schedule(60, relative=True), APP, phase)
        assert relative.phase == 7 * SECOND

    @pytest.mark.parametrize("spec", ["0 9 * * *", crontab(), Workdays(), once("2026-06-19T09:00")])
    def test_and_nothing_else(self, spec):
        with pytest.raises(ConfigurationError, match="phase"):
            timetable_for(spec, APP, Terms(phase=1))

    def test_the_real_clock_is_for_crontabs(self):
        assert isinstance(timetable_for(crontab(), APP, Terms(dst="real")), RealCrontab)
        assert isinstance(timetable_for(crontab(), APP, Terms(default_dst="real")), RealCrontab)
        forced = Terms(dst="celery", default_dst="real")
        assert isinstance(timetable_for(crontab(), APP, forced), CeleryCrontab)
        assert timetable_for("0 9 * * *", APP, Terms(default_dst="real"))

    @pytest.mark.parametrize("spec", [60, "0 9 * * *", Workdays(), once("2026-06-19T09:00")])
    def test_and_for_nothing_else(self, spec):
        with pytest.raises(ConfigurationError, match=r"^dst"):
            timetable_for(spec, APP, Terms(dst="real"))

    def test_bounds_are_told_in_the_zone_of_the_entry(self):
        terms = Terms(
            timezone="Asia/Tokyo",
            start=datetime(2026, 6, 19, 9),
            end=datetime(2026, 6, 20, tzinfo=UTC),
        )
        assert timetable_for(60, APP, terms) == Bounded(
            Interval(60 * SECOND), at("2026-06-19T00:00"), at("2026-06-20T00:00")
        )

    def test_an_opaque_schedule_is_bounded_too(self):
        terms = Terms(
            start=datetime(2026, 6, 19, tzinfo=UTC), end=datetime(2026, 6, 20, tzinfo=UTC)
        )
        table = timetable_for(Always(), APP, terms)
        start, end = at("2026-06-19T00:00"), at("2026-06-20T00:00")
        assert table.check(0, start - 1) == (False, start)
        assert table.check(0, start)[0]
        assert table.check(0, end)[0]
        assert not table.check(0, end + 1)[0]

    def test_bounds_that_leave_nothing_are_refused(self):
        terms = Terms(start=datetime(2026, 6, 20), end=datetime(2026, 6, 19))
        with pytest.raises(ConfigurationError, match="never fires"):
            timetable_for(60, APP, terms)
        terms = Terms(start=datetime(2026, 6, 19, 10), end=datetime(2026, 6, 19, 11))
        with pytest.raises(ConfigurationError, match="never fires"):
            timetable_for("0 9 * * *", APP, terms)


class TestTheAppsZone:
    def test_without_a_zone_it_is_utc(self):
        assert timetable_for(crontab("0", "9"), shop()).zone == "UTC"

    def test_without_utc_it_is_the_machines(self, monkeypatch):
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            table = timetable_for(crontab("0", "9"), shop(enable_utc=False))
            moment = at("2026-06-18T12:00")
            assert table.next_after(moment) == at("2026-06-19T00:00")
            naive = timetable_for(once("2026-06-19T09:00"), shop(enable_utc=False))
            assert naive.next_after(moment) == at("2026-06-19T00:00")
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_without_utc_a_named_zone_counts(self):
        app = shop(enable_utc=False, timezone="Asia/Tokyo")
        assert timetable_for(crontab("0", "9"), app).zone == "Asia/Tokyo"

    @pytest.mark.parametrize("spec", ["0 9 * * *", crontab("0", "9"), rrule("FREQ=DAILY;BYHOUR=9")])
    def test_another_zone_is_another_schedule(self, spec):
        one, other = (timetable_for(spec, shop(timezone=zone)) for zone in ("UTC", "Asia/Tokyo"))
        assert one.fingerprint != other.fingerprint


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
