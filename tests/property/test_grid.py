"""Law 1, Grid: a tick does not depend on when a node started to look."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from types import SimpleNamespace

from celery.schedules import crontab
from hypothesis import given, settings
from hypothesis import strategies as st

from celery_redlock_beat.ticks import SECOND, to_datetime, to_micros
from celery_redlock_beat.timetables import CeleryCrontab, Cron, Interval
from celery_redlock_beat.timetables.zones import DAY, changes_near, zone_of

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
ZONES = [
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Havana",
    "Pacific/Apia",
    "Europe/Berlin",
    "America/New_York",
    "UTC",
]
YEARS = (2011, 2024, 2026)
BOUNDED = settings(deadline=None, max_examples=150)


@lru_cache
def turning_points(zone):
    """Return the instants at which a zone changes its offset, and a few others."""
    found = {to_micros(datetime(2026, 6, 19, tzinfo=UTC))}
    for year in YEARS:
        first = to_micros(datetime(year, 1, 1, tzinfo=UTC)) // DAY
        for day in range(first, first + 368, 4):
            found.update(change.at for change in changes_near(zone_of(zone), day))
    return sorted(found)


@st.composite
def moments(draw, zone):
    """Draw a moment, most often within hours of a change of offset."""
    change = draw(st.sampled_from(turning_points(zone)))
    distance = draw(
        st.one_of(
            st.integers(-5 * 60, 5 * 60).map(lambda minutes: minutes * MINUTE),
            st.integers(-30 * HOUR, 30 * HOUR),
            st.integers(-200, 200).map(lambda days: days * DAY),
            st.integers(-1, 1),
        )
    )
    return change + distance


MINUTES = ["*", "*/15", "*/7", "0", "30", "59", "5,35", "0-10"]
HOURS = ["*", "*/2", "0", "1", "2", "3", "23", "0-3", "1,2,3", "5"]
DAYS = ["*", "*", "*", "1", "29", "1-7", "25-31"]
MONTHS = ["*", "*", "*", "2", "3,4", "10-12"]
WEEKDAYS = ["*", "*", "*", "0", "1-5"]


@st.composite
def cron_expressions(draw):
    fields = [draw(st.sampled_from(f)) for f in (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)]
    second = draw(st.sampled_from(["", "", "", "0", "*/20", "59"]))
    return " ".join(fields if not second else [second, *fields])


@st.composite
def crontabs(draw):
    minute, hour, day, month, weekday = (
        draw(st.sampled_from(f)) for f in (MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS)
    )
    return crontab(minute, hour, weekday, day, month)


@st.composite
def cases(draw, kind):
    """Draw a timetable of a kind, and a moment that may be awkward for its zone."""
    zone = draw(st.sampled_from(ZONES))
    if kind is Cron:
        table = Cron(draw(cron_expressions()), zone)
    elif kind is CeleryCrontab:
        table = CeleryCrontab.of(draw(crontabs()), zone_of(zone))
    else:
        table = Interval(draw(st.integers(1, 400 * DAY)), draw(st.integers(0, 400 * DAY)))
    return table, draw(moments(zone))


def assert_on_the_grid(table, moment, data):
    following = table.next_after(moment)
    assert following > moment
    points = [p for p in turning_points(getattr(table, "zone", "UTC")) if moment <= p < following]
    near = [q for p in points[:4] for q in (p - 1, p, p + HOUR, p + 3 * HOUR)]
    drawn = data.draw(st.lists(st.integers(moment, following - 1), max_size=4))
    for other in {following - 1, *near, *drawn}:
        if moment <= other < following:
            assert table.next_after(other) == following
    assert_latest_agrees(table, moment, following)


def assert_latest_agrees(table, moment, following):
    assert table.latest_until(following) == following
    previous = table.latest_until(following - 1)
    if previous is not None:
        assert previous <= moment
        assert table.next_after(previous) == following
        assert table.latest_until(moment) == previous
        assert table.next_after(previous - 1) == previous


@BOUNDED
@given(cases(Interval), st.data())
def test_intervals_are_on_a_grid(case, data):
    assert_on_the_grid(*case, data)


@BOUNDED
@given(cases(Cron), st.data())
def test_cron_strings_are_on_a_grid(case, data):
    assert_on_the_grid(*case, data)


@BOUNDED
@given(cases(CeleryCrontab), st.data())
def test_crontabs_are_on_a_grid(case, data):
    assert_on_the_grid(*case, data)


def ticks_of(table, start, end):
    found = []
    moment = table.next_after(start)
    while moment is not None and moment <= end:
        found.append(moment)
        moment = table.next_after(moment)
    return found


def local_matches(expression, zone, start, end):
    """Return every minute whose local time matches, told from the fields alone."""
    fields = Cron(expression, "UTC")  # where local time is the instant
    found = []
    for moment in range(start - start % MINUTE + MINUTE, end + 1, MINUTE):
        wall = moment + zone_of(zone).offset(moment)
        if fields.next_after(wall - 1) == wall:
            found.append(moment)
    return found


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(["*", "*/15", "*/7"]),
    st.sampled_from(HOURS),
    st.sampled_from(WEEKDAYS),
    st.data(),
)
def test_wildcards_fire_whenever_the_local_clock_matches(zone, minute, hour, weekday, data):
    change = data.draw(st.sampled_from(turning_points(zone)))
    expression = f"{minute} {hour} * * {weekday}"
    start, end = change - 4 * HOUR, change + 4 * HOUR
    expected = local_matches(expression, zone, start, end)
    assert ticks_of(Cron(expression, zone), start, end) == expected


def stock_beat(schedule, zone, start, end):
    """Return when a stock beat that nothing disturbs would send, by its own is_due loop."""
    place = zone_of(zone).tz
    now = start
    schedule.nowfun = lambda: to_datetime(now).astimezone(place)
    schedule.tz, schedule.utc_enabled = place, True
    schedule.app = SimpleNamespace(conf=SimpleNamespace(beat_cron_starting_deadline=None))
    last, sent = schedule.nowfun(), []
    while now <= end:
        due, delay = schedule.is_due(last)
        if due:
            sent.append(now - now % SECOND)
            last = schedule.nowfun()  # a few milliseconds after the instant, as in Celery
        now += min(int(delay * SECOND) + 3000, 300 * SECOND)
    return sent


def agree_with_stock_beat(schedule, zone, start, hours):
    table = CeleryCrontab.of(schedule, zone_of(zone))
    end = start + hours * HOUR
    assert ticks_of(table, start, end) == stock_beat(schedule, zone, start, end)


@settings(deadline=None, max_examples=60)
@given(crontabs(), st.sampled_from(ZONES), st.integers(0, 60 * 24))
def test_crontabs_agree_with_stock_beat_where_no_clock_changes(schedule, zone, minutes):
    start = to_micros(datetime(2026, 6, 19, tzinfo=UTC)) + minutes * MINUTE + SECOND // 2
    agree_with_stock_beat(schedule, zone, start, hours=12)


@settings(deadline=None, max_examples=60)
@given(crontabs(), st.sampled_from(ZONES), st.data())
def test_crontabs_agree_with_stock_beat_where_clocks_change(schedule, zone, data):
    change = data.draw(st.sampled_from(turning_points(zone)))
    agree_with_stock_beat(schedule, zone, change - 8 * HOUR + SECOND // 2, hours=16)
