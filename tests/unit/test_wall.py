from __future__ import annotations

from datetime import UTC, datetime

import pytest

from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables.wall import day_at, day_start, instant_showing
from celery_redlock_beat.timetables.zones import DAY, UTC_ZONE, zone_of


def wall(text):
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def day(text):
    return wall(text) // DAY


def utc(moment):
    return to_datetime(moment).isoformat()[:16]


@pytest.mark.parametrize(
    ("zone", "shown", "instant"),
    [
        ("UTC", "2026-06-19T12:00", "2026-06-19T12:00"),
        ("Europe/Berlin", "2026-06-19T12:00", "2026-06-19T10:00"),
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:30"),  # a gap: 03:30 summer time
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30"),
        ("Africa/Cairo", "2024-04-26T00:15", "2024-04-25T22:15"),
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:45"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T22:00"),  # a day that there was not
    ],
)
def test_the_instant_at_which_a_clock_shows_a_time(zone, shown, instant):
    assert utc(instant_showing(zone_of(zone), wall(shown))) == instant


def test_a_time_that_the_clock_shows_twice_is_told_by_its_fold():
    berlin, shown = zone_of("Europe/Berlin"), wall("2026-10-25T02:30")
    assert utc(instant_showing(berlin, shown, fold=0)) == "2026-10-25T00:30"
    assert utc(instant_showing(berlin, shown, fold=1)) == "2026-10-25T01:30"


@pytest.mark.parametrize(
    ("zone", "date", "start", "hours"),
    [
        ("UTC", "2026-06-19", "2026-06-19T00:00", 24),
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", 23),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", 25),
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", 24.5),
        ("Africa/Cairo", "2024-04-26", "2024-04-25T22:00", 23),  # begins at 01:00
        ("America/Havana", "2024-11-03", "2024-11-03T04:00", 25),  # its midnight comes twice
        ("America/Sao_Paulo", "2018-02-17", "2018-02-17T02:00", 25),  # as does its last hour
        ("America/Toronto", "1919-03-31", "1919-03-31T04:30", 23.5),  # 23:30 to 00:30
        ("America/St_Johns", "2006-10-28", "2006-10-28T02:30", 24),  # 00:01 to 23:01
        ("America/St_Johns", "2006-10-29", "2006-10-29T02:30", 25),
        ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00", 24),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", 0),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00", 24),
    ],
)
def test_a_date_begins_with_its_first_instant_and_lasts_until_the_next_one(
    zone, date, start, hours
):
    begin, end = (day_start(zone_of(zone), day(date) + k) for k in (0, 1))
    assert utc(begin) == start
    assert (end - begin) / DAY * 24 == hours


def test_a_date_once_begun_goes_on_though_the_clock_shows_the_one_before():
    st_johns = zone_of("America/St_Johns")
    moment = wall("2006-10-29T02:45")
    assert st_johns.local(moment).isoformat()[:16] == "2006-10-28T23:15"
    assert day_at(st_johns, moment) == day("2006-10-29")


def test_a_date_that_was_skipped_is_never_the_present_one():
    apia = zone_of("Pacific/Apia")
    change = wall("2011-12-30T10:00")
    assert day_at(apia, change - 1) == day("2011-12-29")
    assert day_at(apia, change) == day("2011-12-31")


def test_in_utc_a_date_is_a_day_since_the_epoch():
    assert day_at(UTC_ZONE, -1) == -1
    assert day_at(UTC_ZONE, 0) == 0
    assert day_start(UTC_ZONE, 3) == 3 * DAY
