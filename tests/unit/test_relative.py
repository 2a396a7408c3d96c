from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from celery.utils.time import remaining

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import COUNT_LIMIT, SECOND, Count, to_datetime, to_micros
from celery_redlock_beat.timetables.relative import Relative
from celery_redlock_beat.timetables.walk import CEILING, FLOOR
from celery_redlock_beat.timetables.wall import instant_showing
from celery_redlock_beat.timetables.zones import DAY, UTC_ZONE, zone_of

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
BERLIN = zone_of("Europe/Berlin")
APIA = zone_of("Pacific/Apia")
CAIRO = zone_of("Africa/Cairo")
HAVANA = zone_of("America/Havana")


def at(text, zone=BERLIN):
    return instant_showing(zone, to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC)))


def ticks_of(table, first, last):
    """Return the local times of the ticks from one local time to another, both included."""
    moment, end = at(first, table.zone) - 1, at(last, table.zone)
    found = []
    while (moment := table.next_after(moment)) is not None and moment <= end:
        found.append(table.zone.local(moment).isoformat()[5:16])
    return found


def hours_of(table, date):
    return [text[6:] for text in ticks_of(table, f"{date}T00:00", f"{date}T23:59:59.999999")]


def test_the_count_begins_anew_at_local_midnight():
    table = Relative(7 * HOUR, BERLIN)
    assert hours_of(table, "2026-06-19") == ["00:00", "07:00", "14:00", "21:00"]
    assert hours_of(table, "2026-06-20") == ["00:00", "07:00", "14:00", "21:00"]


def test_a_phase_shifts_every_tick_of_a_date():
    table = Relative(7 * HOUR, BERLIN, phase=90 * MINUTE)
    assert hours_of(table, "2026-06-19") == ["01:30", "08:30", "15:30", "22:30"]


def test_a_phase_counts_modulo_the_period():
    assert Relative(7 * HOUR, BERLIN, 9 * HOUR) == Relative(7 * HOUR, BERLIN, 2 * HOUR)
    assert Relative(7 * HOUR, BERLIN, -5 * HOUR) == Relative(7 * HOUR, BERLIN, 2 * HOUR)


def test_ticks_are_periods_of_elapsed_time_where_clocks_change():
    table = Relative(6 * HOUR, BERLIN)
    assert hours_of(table, "2026-03-29") == ["00:00", "07:00", "13:00", "19:00"]
    assert hours_of(table, "2026-10-25") == ["00:00", "05:00", "11:00", "17:00", "23:00"]


@pytest.mark.parametrize(
    ("zone", "date", "ticks"),
    [
        ("Europe/Berlin", "2026-03-29", 46),
        ("Europe/Berlin", "2026-10-25", 50),
        ("Australia/Lord_Howe", "2026-10-04", 47),
        ("Australia/Lord_Howe", "2026-04-05", 49),
        ("Africa/Cairo", "2024-04-26", 46),
        ("America/Havana", "2024-11-03", 50),
        ("Pacific/Apia", "2011-12-29", 48),
    ],
)
def test_a_date_has_as_many_ticks_as_it_is_long(zone, date, ticks):
    found = hours_of(Relative(30 * MINUTE, zone_of(zone)), date)
    assert len(found) == ticks


def test_a_date_without_a_midnight_begins_when_it_begins():
    assert hours_of(Relative(8 * HOUR, CAIRO), "2024-04-26") == ["01:00", "09:00", "17:00"]


def test_a_midnight_that_comes_twice_counts_once():
    table = Relative(DAY, HAVANA)
    ticks = ticks_of(table, "2024-11-02T00:00", "2024-11-04T00:00")
    assert ticks == ["11-02T00:00", "11-03T00:00", "11-04T00:00"]
    assert table.latest_until(at("2024-11-03T12:00", HAVANA)) == at("2024-11-03T00:00", HAVANA)


def test_a_skipped_date_has_no_ticks():
    table = Relative(12 * HOUR, APIA)
    ticks = ticks_of(table, "2011-12-29T00:00", "2011-12-31T12:00")
    assert ticks == ["12-29T00:00", "12-29T12:00", "12-31T00:00", "12-31T12:00"]


def test_a_period_of_one_day_is_each_local_midnight():
    table = Relative(DAY, BERLIN)
    ticks = ticks_of(table, "2026-10-24T00:00", "2026-10-27T00:00")
    assert ticks == [f"10-{day}T00:00" for day in (24, 25, 26, 27)]


def test_a_period_of_days_is_the_start_of_every_nth_date():
    week = Relative(7 * DAY, BERLIN)
    ticks = ticks_of(week, "2026-10-12T00:00", "2026-11-01T00:00")
    assert ticks == ["10-15T00:00", "10-22T00:00", "10-29T00:00"]  # Thursdays
    assert at("1970-01-01T00:00") == week.latest_until(0)


def test_a_phase_of_more_than_a_day_moves_the_dates():
    mondays = Relative(7 * DAY, BERLIN, phase=4 * DAY + 3 * HOUR)
    ticks = ticks_of(mondays, "2026-10-12T00:00", "2026-11-01T00:00")
    assert ticks == ["10-12T03:00", "10-19T03:00", "10-26T03:00"]


def test_a_date_that_is_shorter_than_the_phase_keeps_its_tick():
    table = Relative(DAY, BERLIN, phase=23 * HOUR + 30 * MINUTE)
    ticks = ticks_of(table, "2026-03-28T12:00", "2026-03-31T12:00")
    assert ticks == ["03-28T23:30", "03-30T00:30", "03-30T23:30"]
    assert table.latest_until(at("2026-03-30T00:29")) == at("2026-03-28T23:30")


def test_a_period_of_days_passes_over_a_skipped_date():
    table = Relative(2 * DAY, APIA)
    ticks = ticks_of(table, "2011-12-27T00:00", "2012-01-02T00:00")
    assert ticks == ["12-28T00:00", "01-01T00:00"]


@pytest.mark.parametrize("period", [HOUR, 7 * HOUR, DAY - 1, DAY, 3 * DAY])
@pytest.mark.parametrize("zone", [BERLIN, APIA, CAIRO, HAVANA])
def test_the_count_is_that_of_the_ticks_strictly_between(period, zone):
    table = Relative(period, zone, phase=20 * HOUR)
    ticks = []
    moment = at("2011-10-20T00:00", zone)
    while len(ticks) < 60:
        ticks.append(moment := table.next_after(moment))
    assert table.count_between(ticks[0], ticks[-1]) == Count(58)
    assert table.count_between(ticks[0] - 1, ticks[-1] + 1) == Count(60)
    assert table.count_between(ticks[5], ticks[6]) == Count(0)
    assert table.count_between(ticks[6], ticks[5]) == Count(0)


def test_a_count_of_fine_ticks_is_exact_over_a_year():
    year = at("2026-01-01T00:00"), at("2027-01-01T00:00")
    assert Relative(SECOND, BERLIN).count_between(*year) == Count(365 * 86_400 - 1)


def test_a_count_over_thousands_of_dates_is_at_least_what_it_says():
    table = Relative(12 * HOUR, UTC_ZONE)
    counted = table.count_between(0, 2 * COUNT_LIMIT * DAY)
    assert not counted.exact
    assert COUNT_LIMIT < counted.number <= 4 * COUNT_LIMIT


def test_there_is_no_tick_beyond_the_calendar():
    table = Relative(HOUR, BERLIN)
    assert table.next_after(CEILING) is None
    assert table.latest_until(FLOOR - 1) is None
    assert table.next_after(FLOOR - 10 * DAY) >= FLOOR
    assert table.latest_until(CEILING + 10 * DAY) <= CEILING
    assert Relative(10_000_000 * DAY, BERLIN, phase=DAY).next_after(2 * DAY) is None
    assert Relative(10_000_000 * DAY, BERLIN, phase=DAY).latest_until(0) is None


def test_it_is_equal_by_value_and_told_apart_by_period_phase_and_zone():
    assert Relative(HOUR, BERLIN) == Relative(HOUR, zone_of("Europe/Berlin"))
    assert len({Relative(HOUR, BERLIN), Relative(HOUR, zone_of("Europe/Berlin"))}) == 1
    assert Relative(90, BERLIN, 7).fingerprint == "relative:90+7:Europe/Berlin"
    tables = [Relative(p, z, f) for p in (90, 91) for f in (0, 1) for z in (BERLIN, CAIRO)]
    assert len({table.fingerprint for table in tables}) == len(set(tables)) == 8


@pytest.mark.parametrize("period", [0, -1])
def test_a_period_that_is_not_positive_is_refused(period):
    with pytest.raises(ConfigurationError, match="must be positive"):
        Relative(period, BERLIN)


def test_more_than_a_day_and_not_whole_days_is_refused():
    with pytest.raises(ConfigurationError, match="must be whole days, not 1 day, 12:00:00"):
        Relative(36 * HOUR, BERLIN)


@pytest.mark.parametrize(
    ("period", "start"),
    [
        (DAY, "2026-10-24T13:00"),
        (DAY, "2026-03-28T13:00"),
        (HOUR, "2026-03-28T13:10"),
        (MINUTE, "2026-06-19T12:34:56"),
    ],
)
def test_a_day_an_hour_and_a_minute_are_those_of_celery(period, start):
    table = Relative(period, BERLIN)
    moment, every = at(start), timedelta(microseconds=period)
    for _ in range(30):
        last = to_datetime(moment).astimezone(BERLIN.tz)
        moment = table.next_after(moment)
        assert remaining(last, every, last, relative=True) == to_datetime(moment) - last
