"""Law 1, Grid, for the timetables whose days are those of a zone or of the sun, and for bounds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec

from hypothesis import given, settings
from hypothesis import strategies as st

from celery_redlock_beat.ticks import SECOND, to_micros
from celery_redlock_beat.timetables.bounded import Bounded
from celery_redlock_beat.timetables.cron import Cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.jitter import due_at
from celery_redlock_beat.timetables.oneoff import Once
from celery_redlock_beat.timetables.relative import Relative
from celery_redlock_beat.timetables.solar import EVENTS, Solar
from celery_redlock_beat.timetables.wall import day_at, day_start
from celery_redlock_beat.timetables.zones import DAY, changes_near, zone_of
from support.requirements import require

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
MIDSUMMER = to_micros(datetime(2026, 6, 21, tzinfo=UTC))
# Where midnight is left out, comes twice or is undone, where a date is skipped, and ordinary ones.
ZONES = {
    "Africa/Cairo": (2024,),
    "America/Havana": (2024,),
    "America/Sao_Paulo": (2018,),
    "America/St_Johns": (2006,),
    "America/Toronto": (1919,),
    "Australia/Lord_Howe": (2026,),
    "Europe/Berlin": (2026,),
    "Pacific/Apia": (2011,),
    "UTC": (),
}
BOUNDED = settings(deadline=None, max_examples=150)


@lru_cache
def turning_points(zone):
    found = {MIDSUMMER}
    for year in ZONES[zone]:
        first = to_micros(datetime(year, 1, 1, tzinfo=UTC)) // DAY
        for day in range(first, first + 368, 4):
            found.update(change.at for change in changes_near(zone_of(zone), day))
    return sorted(found)


def near(point):
    """Return moments that are most often within hours of a point."""
    distances = st.one_of(
        st.integers(-300, 300).map(lambda minutes: minutes * MINUTE),
        st.integers(-50 * HOUR, 50 * HOUR),
        st.integers(-1, 1),
    )
    return distances.map(lambda distance: point + distance)


@st.composite
def moments(draw, zone):
    return draw(near(draw(st.sampled_from(turning_points(zone)))))


PERIODS = st.one_of(
    st.integers(1, DAY),
    st.integers(1, 60).map(lambda days: days * DAY),
    st.sampled_from([MINUTE, HOUR, 5 * HOUR, 12 * HOUR, 23 * HOUR + HOUR // 2, DAY, 7 * DAY]),
)


@st.composite
def relatives(draw, zone):
    return Relative(draw(PERIODS), zone_of(zone), draw(st.integers(0, 60 * DAY)))


@st.composite
def solars(draw):
    lat = draw(st.one_of(st.floats(-90, 90), st.floats(60, 75), st.sampled_from([-90, 0, 90])))
    lon = draw(st.one_of(st.floats(-180, 180), st.sampled_from([-180, -179.9, 179.9, 180])))
    return Solar(draw(st.sampled_from(sorted(EVENTS))), lat, lon)


@st.composite
def bounded(draw, zone):
    inner = draw(
        st.one_of(
            relatives(zone),
            st.builds(Interval, st.integers(1, 3 * DAY), st.integers(0, DAY)),
            st.builds(Once, moments(zone)),
            st.sampled_from(["0 * * * *", "30 2 * * *", "*/20 0 * * * *"]).map(
                lambda expression: Cron(expression, zone)
            ),
        )
    )
    start, end = sorted(draw(st.tuples(moments(zone), moments(zone))))
    open_ended = draw(st.sampled_from(["", "start", "end"]))
    return Bounded(
        inner, None if open_ended == "start" else start, None if open_ended == "end" else end
    )


def assert_on_the_grid(table, moment, data):
    following = table.next_after(moment)
    if following is None:
        assert table.next_after(moment + HOUR) is None
        following = moment + HOUR
    else:
        assert following > moment
        assert table.latest_until(following) == following
        for other in (following - 1, *data.draw(st.lists(st.integers(moment, following - 1)))):
            assert table.next_after(other) == following
    assert_latest_agrees(table, moment, following)


def assert_latest_agrees(table, moment, following):
    previous = table.latest_until(moment)
    assert table.latest_until(following - 1) == previous
    if previous is not None:
        assert previous <= moment
        assert table.next_after(previous - 1) == previous
        assert table.count_between(previous, following).number == 0
        assert table.count_between(previous - 1, following).number == 1


@BOUNDED
@given(st.sampled_from(sorted(ZONES)), st.data())
def test_periods_that_count_anew_each_date_are_on_a_grid(zone, data):
    assert_on_the_grid(data.draw(relatives(zone)), data.draw(moments(zone)), data)


@settings(BOUNDED, max_examples=60)
@given(st.data())
def test_solar_events_are_on_a_grid(data):
    require("ephem", find_spec("ephem"))
    table, days = data.draw(solars()), data.draw(st.integers(0, 400))
    moment = data.draw(near(MIDSUMMER))
    assert_on_the_grid(table, moment + days * DAY, data)


@BOUNDED
@given(st.integers(MIDSUMMER - HOUR, MIDSUMMER + HOUR), near(MIDSUMMER), st.data())
def test_a_single_instant_is_on_a_grid(instant, moment, data):
    assert_on_the_grid(Once(instant), moment, data)


@BOUNDED
@given(st.sampled_from(sorted(ZONES)), st.data())
def test_bounded_timetables_are_on_a_grid(zone, data):
    assert_on_the_grid(data.draw(bounded(zone)), data.draw(moments(zone)), data)


@BOUNDED
@given(st.sampled_from(sorted(ZONES)), st.data())
def test_bounds_leave_out_what_lies_outside_and_nothing_else(zone, data):
    table, moment = data.draw(bounded(zone)), data.draw(moments(zone))
    given = [bound for bound in (table.start, table.end) if bound is not None]
    for point in (moment, *(bound + step for bound in given for step in (-1, 0, 1))):
        after_start = table.start is None or table.start <= point
        before_end = table.end is None or point <= table.end
        expected = after_start and before_end and table.inner.latest_until(point) == point
        assert (table.latest_until(point) == point) == expected


@BOUNDED
@given(st.sampled_from(sorted(ZONES)), st.data())
def test_a_moment_is_of_the_last_date_that_has_begun(zone, data):
    place, moment = zone_of(zone), data.draw(moments(zone))
    day = day_at(place, moment)
    assert day_start(place, day) <= moment < day_start(place, day + 1)
    begin = day_start(place, day)
    assert begin + place.offset(begin) >= day * DAY > begin - 1 + place.offset(begin - 1)


@BOUNDED
@given(st.sampled_from(sorted(ZONES)), st.integers(0, 3 * DAY), st.data())
def test_with_jitter_ticks_are_due_in_their_order(zone, most, data):
    table, moment = data.draw(relatives(zone)), data.draw(moments(zone))
    tick = table.next_after(moment)
    due = due_at("report", tick, most, table)
    assert tick <= due < table.next_after(tick)
    assert due - tick <= max(0, most - 1)
