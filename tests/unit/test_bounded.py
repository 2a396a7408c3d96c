from __future__ import annotations

import pytest

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Count
from celery_redlock_beat.timetables.bounded import Bounded
from celery_redlock_beat.timetables.cron import Cron
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.oneoff import Once

TEN = Interval(10)


def test_both_bounds_are_among_its_instants():
    table = Bounded(TEN, 20, 40)
    assert table.next_after(-100) == table.next_after(19) == 20
    assert table.next_after(39) == 40
    assert table.latest_until(20) == 20
    assert table.latest_until(99) == 40


def test_there_is_nothing_outside_its_bounds():
    table = Bounded(TEN, 15, 45)
    assert table.latest_until(19) is None
    assert table.next_after(40) is None
    assert table.next_after(99) is None


def test_a_bound_that_is_not_given_is_open():
    assert Bounded(TEN, start=15).next_after(1000) == 1010
    assert Bounded(TEN, start=15).latest_until(19) is None
    assert Bounded(TEN, end=45).latest_until(-1) == -10
    assert Bounded(TEN, end=45).next_after(40) is None
    assert Bounded(TEN).next_after(0) == 10


def test_between_close_bounds_there_may_be_nothing():
    table = Bounded(TEN, 11, 19)
    assert table.next_after(0) is None
    assert table.latest_until(100) is None
    assert table.count_between(0, 100) == Count(0)


@pytest.mark.parametrize("after", range(-4, 60, 6))
@pytest.mark.parametrize("before", range(-4, 60, 6))
def test_the_count_is_that_of_the_inner_ticks_within_the_bounds(after, before):
    ticks = [tick for tick in range(20, 41, 10) if after < tick < before]
    assert Bounded(TEN, 20, 40).count_between(after, before) == Count(len(ticks))


def test_a_count_is_as_exact_as_the_inner_one():
    table = Bounded(Cron("* * * * *", "UTC"), start=0)
    assert table.count_between(-10, 366 * 86_400 * SECOND) == Count(10_000, exact=False)


def test_one_instant_can_be_both_bounds():
    assert Bounded(TEN, 20, 20).next_after(0) == 20
    assert Bounded(Once(20), 20, 20).latest_until(50) == 20


def test_it_is_equal_by_value_and_told_apart_by_its_bounds():
    assert Bounded(TEN, 20, 40) == Bounded(Interval(10), 20, 40)
    assert len({Bounded(TEN, 20, 40), Bounded(Interval(10), 20, 40)}) == 1
    assert Bounded(TEN, 20, 40).fingerprint == "interval:10+0|20..40"
    tables = [Bounded(TEN, a, b) for a in (None, 20) for b in (None, 20, 40)]
    assert len({table.fingerprint for table in tables}) == len(set(tables)) == 6


def test_a_start_after_the_end_is_refused():
    with pytest.raises(ConfigurationError, match="never fires") as caught:
        Bounded(TEN, SECOND, 0)
    assert "1970-01-01T00:00:01+00:00" in str(caught.value)
    assert "1970-01-01T00:00:00+00:00" in str(caught.value)
