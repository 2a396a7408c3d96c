"""A crontab with dst="real" has the ticks of the cron string that says the same."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from celery.schedules import crontab
from hypothesis import given, settings
from hypothesis import strategies as st

from celery_redlock_beat.ticks import SECOND, to_datetime, to_micros
from celery_redlock_beat.timetables.cron import Cron
from celery_redlock_beat.timetables.real_crontab import RealCrontab
from celery_redlock_beat.timetables.zones import DAY, changes_near, zone_of

HOUR = 3600 * SECOND
# Lord Howe moves by half an hour, Havana and Cairo at midnight; Apia left out a day in 2011.
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Cairo",
    "Pacific/Apia",
]
YEARS = (2011, 2024, 2026)
MINUTES = ["*", "*/15", "*/7", "0", "30", "59", "5,35", "0,15,30,45", "10-50/20", "0-59", "5,*/15"]
HOURS = ["*", "*/2", "0", "1", "2", "3", "23", "0-3", "1,2,3", "0-23", "2,*/3", "1-23/2"]
# With a star in front of either, cron strings demand both days as Celery does.
DAYS = ["*", "*", "*", "*/2", "*/7"]
WEEKDAYS = ["*", "*", "0", "1-5", "mon,sun", "*/3"]
MONTHS = ["*", "*", "*", "3,4", "10-12", "2"]
BOUNDED = settings(deadline=None, max_examples=150)


@lru_cache
def changes(zone):
    found = set()
    for year in YEARS:
        first = to_micros(datetime(year, 1, 1, tzinfo=UTC)) // DAY
        for day in range(first, first + 368, 4):
            found.update(change.at for change in changes_near(zone_of(zone), day))
    return sorted(found)


@st.composite
def moments(draw, zone):
    """Draw a moment, most often within hours of a change of offset."""
    distance = draw(
        st.one_of(
            st.integers(-30 * HOUR, 30 * HOUR),
            st.integers(-1, 1),
            st.integers(-200 * DAY, 200 * DAY),
        )
    )
    return draw(st.sampled_from(changes(zone))) + distance


@st.composite
def pairs(draw):
    """Draw a crontab, the cron string that says the same, and a moment."""
    zone = draw(st.sampled_from(ZONES))
    fields = (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)
    minute, hour, day, month, weekday = (draw(st.sampled_from(each)) for each in fields)
    spec = crontab(minute, hour, weekday, day, month)
    string = Cron(f"{minute} {hour} {day} {month} {weekday}", zone)
    return RealCrontab.of(spec, zone_of(zone)), string, draw(moments(zone))


def some_ticks(table, moment):
    found = [moment]
    while len(found) < 12 and found[-1] is not None:
        found.append(table.next_after(found[-1]))
    return found[1:]


@BOUNDED
@given(pairs())
def test_its_ticks_are_those_of_the_cron_string_that_says_the_same(pair):
    table, string, moment = pair
    assert table.fixed == string.fixed
    assert some_ticks(table, moment) == some_ticks(string, moment)
    assert table.latest_until(moment) == string.latest_until(moment)


@BOUNDED
@given(pairs(), st.data())
def test_it_is_on_a_grid(pair, data):
    table, _, moment = pair
    following = table.next_after(moment)
    assert following > moment
    turns = [turn for turn in changes(table.zone) if moment < turn < following]
    near = [at for turn in turns[:4] for at in (turn - 1, turn, turn + HOUR)]
    drawn = data.draw(st.lists(st.integers(moment, following - 1), max_size=4))
    for other in {following - 1, *near, *drawn}:
        if moment <= other < following:
            assert table.next_after(other) == following
    assert table.latest_until(following) == following


def ticks_until(table, moment, last):
    found = []
    while moment < last:
        moment = table.next_after(moment)
        found.append(moment)
    return found


@settings(deadline=None, max_examples=40)
@given(
    st.sets(st.integers(1, 31), min_size=1),
    st.sets(st.integers(0, 6), min_size=1),
    st.sampled_from(["Europe/Berlin", "America/Havana", "Africa/Cairo"]),
    st.data(),
)
def test_it_fires_on_the_first_day_that_is_in_both_day_fields(days, weekdays, zone, data):
    spec = crontab(0, 12, day_of_month=days, day_of_week=weekdays)
    table = RealCrontab.of(spec, zone_of(zone))
    start = data.draw(moments(zone))
    first = table.next_after(start)
    fits = []
    for noon in ticks_until(Cron("0 12 * * *", zone), start, first):
        day = to_datetime(noon).astimezone(table.place.tz)
        if day.day in days and day.isoweekday() % 7 in weekdays:
            fits.append(noon)
    assert fits == [first]
