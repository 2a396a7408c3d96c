from __future__ import annotations

import pytest

from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.jitter import due_at, jitter_of
from celery_redlock_beat.timetables.oneoff import Once

MINUTE = 60 * SECOND
NOON = 1_781_870_400 * SECOND


def delays(most, gap, entries=40, ticks=50):
    return [
        jitter_of(f"entry-{number}", NOON + k * MINUTE, most, gap)
        for number in range(entries)
        for k in range(ticks)
    ]


@pytest.mark.parametrize(
    ("entry", "tick", "delay"),
    [
        ("report", NOON, 484_956),
        ("report", NOON + MINUTE, 36_640_844),
        ("Bücher", NOON, 3_389_551),
    ],
)
def test_a_tick_has_the_same_delay_on_every_node_and_release(entry, tick, delay):
    assert jitter_of(entry, tick, MINUTE, None) == delay


def test_delays_are_spread_evenly_over_entries_and_ticks():
    tenths = [0] * 10
    for delay in delays(MINUTE, None):
        tenths[delay * 10 // MINUTE] += 1
    assert all(150 <= number <= 250 for number in tenths)


@pytest.mark.parametrize(("most", "gap"), [(7, None), (7, 100), (100, 7), (7, 7)])
def test_a_delay_is_below_the_most_and_below_the_gap(most, gap):
    assert set(delays(most, gap)) == set(range(7))


@pytest.mark.parametrize(("most", "gap"), [(0, None), (1, None), (MINUTE, 1), (-5, None)])
def test_where_there_is_no_room_there_is_no_delay(most, gap):
    assert set(delays(most, gap, 5, 5)) == {0}


def test_ticks_are_due_in_their_order():
    every = Interval(SECOND)
    dues = [due_at("report", NOON + k * SECOND, 10 * MINUTE, every) for k in range(500)]
    assert all(NOON + k * SECOND <= due < NOON + (k + 1) * SECOND for k, due in enumerate(dues))
    assert len({due % SECOND for due in dues}) > 400


def test_the_last_tick_may_be_delayed_by_the_most():
    assert due_at("report", NOON, MINUTE, Once(NOON)) == NOON + 484_956


def test_without_jitter_a_tick_is_due_at_its_instant():
    assert due_at("report", NOON, 0, Interval(SECOND)) == NOON
