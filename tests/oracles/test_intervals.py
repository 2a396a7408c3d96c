"""Intervals against counting, and relative ones against a clock that is looked at each minute."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat.timetables import Interval, Relative
from celery_redlock_beat.timetables.zones import zone_of
from support.drawn import examples
from support.turns import DAY, HOUR, MINUTE, TURNS
from support.windows import local, ticks_within

AROUND = 50 * HOUR
A_DAY = DAY // MINUTE
EPOCH = date(1970, 1, 1)


@examples(200)
@given(st.integers(1, 400), st.integers(0, 1000), st.integers(-500, 500), st.integers(0, 1000))
def test_an_interval_has_the_multiples_of_its_period_since_the_epoch(period, phase, start, length):
    end = start + length
    counted = {sign * n * period + phase for n in range(3000) for sign in (-1, 1)}
    expected = sorted(tick for tick in counted if start < tick <= end)
    assert ticks_within(Interval(period, phase), start, end) == expected


def dates(tz, start, end):
    """Return the dates that begin, each with its minutes until the next one begins."""
    last = first = local(start, tz).date()
    minutes_of = {}
    for moment in range(start, end + 1, MINUTE):
        last = max(last, local(moment, tz).date())  # one that comes again has begun already
        minutes_of.setdefault(last, []).append(moment)
    del minutes_of[first]  # nobody saw it begin
    return minutes_of


def walked(table, tz, start, end):
    """Return the ticks of a relative interval of whole minutes."""
    period, phase = table.period // MINUTE, table.phase // MINUTE
    days, rest = divmod(phase, A_DAY)
    ticks = []
    for day, minutes in dates(tz, start - 3 * DAY, end + 2 * DAY).items():
        if period < A_DAY:
            ticks += minutes[phase::period]
        elif (day - EPOCH).days % (period // A_DAY) == days:
            ticks.append(minutes[0] + rest * MINUTE)
    return [tick for tick in ticks if start < tick <= end]


periods = st.one_of(st.integers(1, A_DAY), st.integers(1, 5).map(A_DAY.__mul__))
phases = st.one_of(st.integers(0, 5 * A_DAY), st.integers(A_DAY - 60, A_DAY))


@examples(100)
@given(st.sampled_from(TURNS), periods, phases)
def test_a_relative_interval_counts_anew_when_the_clock_first_shows_a_date(turn, period, phase):
    table = Relative(period * MINUTE, zone_of(turn.zone), phase * MINUTE)
    start, end = turn.at - AROUND, turn.at + AROUND
    assert ticks_within(table, start, end) == walked(table, ZoneInfo(turn.zone), start, end)
