"""Cron strings against CronSim, walked from ten days before, and against what clocks show.

With a wildcard in the minute or the hour CronSim 2.8 steps by elapsed time, and starts each date at
its midnight.  Two sorts of turns lead it astray:

- where clocks change from or to something else than a full hour, it passes over hours, goes back,
  or looks for ever;
- where a date has no midnight, it answers that midnight all the same, and passes over what follows.

From such a turn to the first hour of the next date, ours have what the clock shows instead.
"""

from __future__ import annotations

from importlib.metadata import version
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import Cron
from celery_redlock_beat.timetables.cron import read_cron
from celery_redlock_beat.timetables.zones import zone_of
from oracles.cronsim_walk import GotLost, shown, walk
from support.drawn import cron_strings, examples
from support.turns import DAY, HOUR, TURNS
from support.windows import ticks_within

AROUND = 30 * HOUR


@st.composite
def crons_near_turns(draw):
    turn = draw(st.sampled_from(TURNS))
    spec, terms = draw(cron_strings(turn))
    return read_cron(spec, zone_of(turn.zone), terms.name), turn


def walls(turn):
    """Return what the clock would have shown at a turn without it, and what it showed."""
    return tuple(turn.at + zone_of(turn.zone).offset(at) for at in (turn.at - 1, turn.at))


def leads_astray(turn):
    before, after = walls(turn)
    has_no_midnight = before <= after // DAY * DAY < after or after - before >= DAY
    return before % HOUR or after % HOUR or has_no_midnight


def first_hour_of_next_date(turn):
    _, after = walls(turn)
    return turn.at + DAY - after % DAY + HOUR


def cronsim(table, turn):
    """Return the instants around a turn that CronSim has, and up to where it finds its way."""
    start, end = turn.at - AROUND, turn.at + AROUND
    steps = walk(table.expression, to_datetime(turn.at - 10 * DAY).astimezone(ZoneInfo(turn.zone)))
    found = []
    try:
        for at in map(to_micros, steps):
            if at > end:
                break
            found.append(at)
    except GotLost:
        end = found[-1] if found else start
    return [at for at in found if at > start], end


def clock(table, turn):
    """Return the instants around a turn at which the local clock shows a match."""
    start, end = map(to_datetime, (turn.at - AROUND, turn.at + AROUND))
    return [*map(to_micros, shown(table.expression, ZoneInfo(turn.zone), start, end))]


def ours(table, turn):
    return ticks_within(table, turn.at - AROUND, turn.at + AROUND)


@examples(500)
@given(crons_near_turns())
def test_they_have_the_ticks_of_cronsim_but_where_it_goes_astray(case):
    table, turn = case
    theirs, end = cronsim(table, turn)
    differing = set(theirs) ^ {*takewhile(end.__ge__, ours(table, turn))}
    if table.fixed or not leads_astray(turn):
        assert not differing
        assert end == turn.at + AROUND
    assert all(turn.at <= at < first_hour_of_next_date(turn) for at in differing)


@examples(200)
@given(crons_near_turns().filter(lambda case: not case[0].fixed))
def test_with_a_wildcard_they_fire_whenever_the_clock_shows_a_match(case):
    table, turn = case
    assert ours(table, turn) == clock(table, turn)


@pytest.mark.skipif(version("cronsim") != "2.8", reason="another release may go right")
@pytest.mark.parametrize(
    ("zone", "expression"),
    [
        ("Australia/Lord_Howe", "*/20 2 * * *"),
        ("Pacific/Norfolk", "0 0 5 * * *"),
        ("Asia/Kathmandu", "*/15 3 * * *"),
        ("America/Caracas", "*/7 23 * * *"),
        ("America/St_Johns", "*/7 23 * * *"),
        ("America/Havana", "*/15 1 10 3 *"),
        ("Asia/Beirut", "*/20 1 31 3 *"),
        ("Pacific/Apia", "0 */2 30 12 *"),
    ],
)
def test_where_cronsim_goes_astray_they_have_what_the_clock_shows(zone, expression):
    table = Cron(expression, zone)
    turns = [turn for turn in TURNS if turn.zone == zone]
    assert any(cronsim(table, turn) != (clock(table, turn), turn.at + AROUND) for turn in turns)
    assert all(ours(table, turn) == clock(table, turn) for turn in turns)
