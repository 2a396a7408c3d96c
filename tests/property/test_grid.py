"""Law 1, Grid: a tick does not depend on when a node started to look."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, schedule, solar
from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat import timetables
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Count, to_datetime, to_micros
from celery_redlock_beat.timetables import Bounded, Terms, once, timetable_for
from celery_redlock_beat.timetables.jitter import due_at
from support.drawn import KINDS, examples
from support.turns import DAY, HOUR, MINUTE, TURNS, around

APP = Celery("shop", set_as_current=False)
NAMES = sorted(KINDS)
EVERYDAY = [
    ("Interval", timedelta(minutes=90), Terms()),
    ("Relative", schedule(timedelta(minutes=90), relative=True), Terms()),
    ("Cron", "*/15 * * * *", Terms()),
    ("Cron", "30 0,2 * * *", Terms()),
    ("Cron", "*/20 30 */2 L * *", Terms()),
    ("CeleryCrontab", crontab("*/15"), Terms()),
    ("CeleryCrontab", crontab(30, "0,2"), Terms()),
    ("RealCrontab", crontab("*/15"), Terms(dst="real")),
    ("RealCrontab", crontab(30, "0,2"), Terms(dst="real")),
    ("Solar", solar("sunset", 52.5, 13.4), Terms()),
    ("Once", once("2016-05-01T02:45"), Terms()),
    ("Rule", "FREQ=HOURLY;BYMINUTE=0,30", Terms()),
    ("Rule", "FREQ=DAILY;BYHOUR=0,2;BYMINUTE=30", Terms()),
]


def the_table(kind, spec, terms):
    table = timetable_for(spec, APP, terms)
    inner = table.inner if isinstance(table, Bounded) else table
    assert type(inner).__name__ == kind
    return table


def table_near(kind, turn, data):
    """Draw a timetable of a kind, in the zone of a turn and with all terms that it may have."""
    return the_table(kind, *data.draw(KINDS[kind](turn)))


def ticks_after(table, moment):
    while (moment := table.next_after(moment)) is not None:
        yield moment


def assert_on_the_grid(table, moment, others):
    """Assert the law for one moment: its next tick is that of all others up to this tick."""
    following = table.next_after(moment)
    assert following is None or moment < following
    for other in others:
        if moment <= other and (following is None or other < following):
            assert table.next_after(other) == following
    assert_latest_agrees(table, moment, following)
    assert_counts_agree(table, moment)


def assert_latest_agrees(table, moment, following):
    previous = table.latest_until(moment)
    if following is not None:
        assert table.latest_until(following) == following
        assert table.latest_until(following - 1) == previous
    if previous is None:
        assert table.next_after(moment - 366 * DAY) == following
    else:
        assert previous <= moment
        assert table.latest_until(previous) == previous
        assert table.next_after(previous - 1) == previous
        assert table.next_after(previous) == following


def assert_counts_agree(table, moment):
    for number, tick in enumerate(islice(ticks_after(table, moment), 4)):
        assert table.count_between(moment, tick) == Count(number)
        assert table.count_between(moment, tick + 1) == Count(number + 1)


def moments_of_interest(turn, moment, following):
    """Return the moments before the next tick at which an answer may most easily go astray."""
    turns = [other.at for other in TURNS if other.zone == turn.zone]
    near = (at + step for at in turns for step in (-1, 0, HOUR, 3 * HOUR))
    return {following - 1, *(each for each in near if moment <= each < following)}


@pytest.mark.parametrize("kind", NAMES)
@examples(200)
@given(turn=st.sampled_from(TURNS), data=st.data())
def test_every_kind_of_timetable_is_on_a_grid(kind, turn, data):
    table = table_near(kind, turn, data)
    bound = data.draw(around(turn))
    table = data.draw(st.sampled_from([table, Bounded(table, bound), Bounded(table, None, bound)]))
    moment = data.draw(around(turn))
    last = (table.next_after(moment) or moment + DAY) - 1
    drawn = data.draw(st.lists(st.integers(moment, last), max_size=4))
    assert_on_the_grid(table, moment, [*drawn, *moments_of_interest(turn, moment, last + 1)])


@pytest.mark.parametrize("turn", TURNS, ids=str)
def test_no_turn_is_left_out(turn):
    """Ask at fixed distances from each turn, whatever is drawn elsewhere."""
    steps = (0, 1, SECOND, 59 * SECOND, MINUTE, 30 * MINUTE, HOUR, 2 * HOUR + 1, DAY, 2 * DAY)
    moments = sorted({turn.at + sign * step for sign in (-1, 1) for step in steps})
    for kind, spec, terms in EVERYDAY:
        table = the_table(kind, spec, replace(terms, timezone=turn.zone))
        for moment in moments:
            assert_on_the_grid(table, moment, moments)


@pytest.mark.parametrize(
    ("spec", "terms", "day"),
    [
        # On a date of 23 hours it lies in the next one.
        (
            schedule(timedelta(days=1), relative=True),
            Terms(timezone="Europe/Berlin", phase=23 * HOUR + HOUR // 2),
            "2026-03-29",
        ),
        # The sun is behind the mean time by a quarter of an hour, or ahead of it.
        (solar("dusk_astronomical", -59.6, 0), Terms(), "2026-02-15"),
        (solar("sunrise", -71, 0), Terms(), "2026-11-13"),
    ],
)
def test_a_tick_of_one_date_may_lie_in_another(spec, terms, day):
    table = timetable_for(spec, APP, terms)
    start = to_micros(datetime.fromisoformat(day).replace(tzinfo=UTC))
    moments = range(start, start + 2 * DAY, 5 * MINUTE)
    ticks = {table.next_after(moment) for moment in moments}
    ticks |= {table.latest_until(start)}
    for moment in moments:
        assert table.next_after(moment) == min(tick for tick in ticks if moment < tick)
        assert table.latest_until(moment) == max(tick for tick in ticks if tick <= moment)


@pytest.mark.parametrize("kind", NAMES)
@examples(80)
@given(turn=st.sampled_from(TURNS), data=st.data())
def test_start_and_end_leave_out_what_lies_outside_and_nothing_else(kind, turn, data):
    spec, terms = data.draw(KINDS[kind](turn))
    start, end = sorted((data.draw(around(turn)), data.draw(around(turn))))
    local = [to_datetime(each).astimezone(ZoneInfo(turn.zone)) for each in (start, end)]
    if data.draw(st.booleans()):  # as users write them, told in the zone of the entry
        local = [each.replace(tzinfo=None) for each in local]
    terms_within = replace(terms, start=local[0], end=local[1])
    whole = the_table(kind, spec, terms)
    if next(ticks_after(whole, start - 1), end + 1) > end:
        with pytest.raises(ConfigurationError, match="never fires"):
            timetable_for(spec, APP, terms_within)
        return
    part = the_table(kind, spec, terms_within)
    moment = data.draw(st.one_of(around(turn), st.sampled_from([start, end, start - 1, end - 1])))
    following = next(ticks_after(whole, max(moment, start - 1)), end + 1)
    assert part.next_after(moment) == (None if following > end else following)
    assert_on_the_grid(part, moment, [start - 1, start, end - 1, end, turn.at])


@pytest.mark.parametrize("kind", NAMES)
@examples(60)
@given(turn=st.sampled_from(TURNS), most=st.integers(1, 3 * DAY), data=st.data())
def test_with_jitter_each_tick_is_due_before_the_next_tick(kind, turn, most, data):
    table = table_near(kind, turn, data)
    ticks = list(islice(ticks_after(table, data.draw(around(turn))), 5))
    due = [due_at("report", tick, most, table) for tick in ticks]
    assert all(tick <= at < tick + most for tick, at in zip(ticks, due, strict=True))
    assert all(at < following for at, following in zip(due, ticks[1:], strict=False))


@pytest.mark.parametrize("turn", TURNS, ids=str)
def test_a_zone_has_the_turn_that_the_tests_believe_it_has(turn):
    before, after = (
        to_datetime(at).astimezone(ZoneInfo(turn.zone)).utcoffset() for at in (turn.at - 1, turn.at)
    )
    assert after - before == timedelta(microseconds=turn.shift)


def test_the_laws_are_held_for_every_kind_and_around_turns_of_every_sort():
    assert set(KINDS) == {kind.__name__ for kind in timetables.KINDS} - {"Bounded", "Opaque"}
    assert {kind for kind, _, _ in EVERYDAY} == set(KINDS)
    assert len({turn.zone for turn in TURNS}) >= 12
    assert len(TURNS) >= 20
    assert {turn.shift // MINUTE for turn in TURNS} >= {60, -60, 30, -30, 120, -120, 1440, -1380}
