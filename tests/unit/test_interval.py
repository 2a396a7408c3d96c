from __future__ import annotations

import pytest

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Count
from celery_redlock_beat.timetables import Interval
from celery_redlock_beat.timetables.walk import CEILING, FLOOR

TEN = Interval(10 * SECOND)


def test_ticks_are_whole_multiples_of_the_period_since_the_epoch():
    assert TEN.next_after(0) == 10 * SECOND
    assert TEN.next_after(10 * SECOND - 1) == 10 * SECOND
    assert TEN.next_after(10 * SECOND) == 20 * SECOND


def test_the_latest_tick_may_be_the_moment_itself():
    assert TEN.latest_until(10 * SECOND) == 10 * SECOND
    assert TEN.latest_until(10 * SECOND - 1) == 0


def test_a_phase_shifts_every_tick():
    table = Interval(10 * SECOND, phase=3 * SECOND)
    assert table.next_after(0) == 3 * SECOND
    assert table.latest_until(0) == -7 * SECOND


def test_a_phase_beyond_the_period_is_the_same_timetable():
    assert Interval(10, phase=13) == Interval(10, phase=3) == Interval(10, phase=-7)
    assert Interval(10, phase=13).fingerprint == Interval(10, phase=3).fingerprint


def test_another_period_or_phase_is_another_fingerprint():
    texts = {Interval(p, f).fingerprint for p in (10, 11) for f in (0, 3)}
    assert len(texts) == 4


def test_moments_before_the_epoch_are_on_the_same_grid():
    assert TEN.next_after(-1) == 0
    assert TEN.latest_until(-1) == -10 * SECOND


@pytest.mark.parametrize("after", range(-5, 12))
@pytest.mark.parametrize("before", range(-5, 12))
def test_the_count_is_that_of_the_ticks_strictly_between(after, before):
    table = Interval(3, phase=1)
    ticks = [tick for tick in range(after + 1, before) if tick % 3 == 1]
    assert table.count_between(after, before) == Count(len(ticks))


def test_a_count_over_years_of_fine_ticks_is_exact():
    year = 365 * 86_400 * SECOND
    assert Interval(SECOND).count_between(0, year) == Count(365 * 86_400 - 1)


@pytest.mark.parametrize("period", [0, -1])
def test_a_period_that_is_not_positive_is_refused(period):
    with pytest.raises(ConfigurationError, match="must be positive"):
        Interval(period)


def test_there_is_no_tick_beyond_the_calendar():
    assert TEN.next_after(CEILING) is None
    assert TEN.latest_until(FLOOR - 1) is None
    assert Interval(CEILING * 3).next_after(0) is None
