from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest
from cronsim import CronSim

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables.hashed import chosen, spread

NAMES = [f"entry-{number}" for number in range(500)]


def test_an_h_becomes_a_number_that_the_name_chooses():
    # Literals, since each process must choose them, and another choice would move users' jobs.
    assert chosen("H H * * *", "report") == "29 9 * * *"
    assert chosen("H H H H H H", "report") == "40 29 9 21 9 4"
    assert chosen("H H * * *", "日次レポート") == "22 7 * * *"


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (0, range(60)),
        (1, range(60)),
        (2, range(24)),
        (3, range(1, 29)),
        (4, range(1, 13)),
        (5, range(7)),
    ],
)
def test_names_are_spread_over_all_values_of_a_field(place, values):
    seen = Counter(int(chosen("H H H H H H", name).split()[place]) for name in NAMES)
    assert set(seen) == set(values)
    assert max(seen.values()) < 4 * len(NAMES) / len(values)


def test_fields_choose_independently():
    pairs = {tuple(chosen("H H * * *", name).split()[:2]) for name in NAMES}
    hours_at_one_minute = {hour for minute, hour in pairs if minute == "0"}
    assert len(pairs) > 400
    assert len(hours_at_one_minute) > 1


def test_a_minute_is_the_same_with_and_without_seconds():
    assert chosen("H H H * * *", "report").split()[1:] == chosen("H H * * *", "report").split()


def test_a_range_bounds_the_choice():
    minutes = {int(chosen("H(10-14) * * * *", name).split()[0]) for name in NAMES}
    assert minutes == {10, 11, 12, 13, 14}


def test_a_range_may_be_of_names():
    fields = {tuple(chosen("0 0 * H(JUN-JUL) H(MON-FRI)", name).split()[3:]) for name in NAMES}
    assert {month for month, _ in fields} == {"6", "7"}
    assert {day for _, day in fields} == set("12345")


def minutes_of(expression):
    return sorted(CronSim(expression, datetime(2026, 6, 19)).minutes)


@pytest.mark.parametrize("name", NAMES[:50])
def test_a_step_takes_every_nth_from_a_first_one_within_it(name):
    minutes = minutes_of(chosen("H/15 * * * *", name))
    first = minutes[0]
    assert 0 <= first < 15
    assert minutes == [first, first + 15, first + 30, first + 45]


@pytest.mark.parametrize("name", NAMES[:50])
def test_a_step_within_a_range_stays_in_it(name):
    minutes = minutes_of(chosen("H(0-29)/10 * * * *", name))
    assert minutes == [minutes[0], minutes[0] + 10, minutes[0] + 20]
    uneven = minutes_of(chosen("H(20-29)/7 * * * *", name))
    assert uneven == list(range(uneven[0], 30, 7))
    assert uneven[0] in range(20, 27)


def test_an_h_may_stand_in_a_list():
    assert chosen("H(5-5),30 * * * *", "report") == "5,30 * * * *"


def test_the_rest_is_left_alone():
    for fields in ("0 9 * * MON-THU", "*/5 * L MAR THU#2", "0 0 9 1 * 5L"):
        assert chosen(fields, "report") == chosen(fields, "") == spread(fields) == fields


def test_an_h_without_a_name_is_refused():
    with pytest.raises(ConfigurationError, match="the name of the entry chooses what an H is"):
        chosen("H * * * *", "")


def test_any_name_will_do():
    for name in ("*", "H H H", "\udcff", "a" * 10_000, "日次レポート"):
        assert 0 <= int(chosen("H * * * *", name).split()[0]) < 60


def test_to_spread_is_to_give_all_that_it_may_be():
    assert spread("H H(9-17) H H/2 H,3") == "0-59 9-17 1-28 1-12 0-6,3"


@pytest.mark.parametrize(
    "term",
    ["H/0", "H/1", "H/61", "H(0-5)/7", "H(5)", "H()", "H(9-5)", "H(0-60)", "H-5", "HH"],
)
def test_what_is_no_h_is_not_taken_for_one(term):
    assert spread(f"{term} * * * *") == f"{term} * * * *"
