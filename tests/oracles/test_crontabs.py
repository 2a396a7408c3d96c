"""Crontabs against Celery's own beat: a year in six zones, and the hours around turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab

from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import CeleryCrontab, RealCrontab
from celery_redlock_beat.timetables.zones import zone_of
from support.stock_beat import SECOND, start_stock_beat
from support.turns import TURNS
from support.windows import ticks_within

HOUR = timedelta(hours=1)
YEAR = (datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC), datetime(2027, 1, 1, 0, 0, 30, tzinfo=UTC))
# When clocks change there in 2026.
ZONES = {
    "UTC": (),
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "America/Havana": ("2026-03-08T05:00", "2026-11-01T05:00"),
    "Africa/Cairo": ("2026-04-23T22:00", "2026-10-29T21:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),
}
# As users write them: minute, hour, day of week, day of month, month of year.
IN_A_YEAR = [
    (0, 0),
    (30, 0),
    (30, 1),
    (0, 2),
    (30, 2),
    (0, 3),
    (59, 23),
    ("*/20", 2, "*", "*", "3,4,10,11"),
    ("0,30", "0-3", "sun"),
    (0, "*", "sat,sun"),
    (15, "1,2,3", "mon-fri"),
    (45, "22-2", "sat-sun"),
    (0, 9, "mon"),
    (0, "*/6", "*", "*", 2),
    (0, 0, "*", 1),
    (59, 23, "*", 31),
    (5, "1-23/6", "*", "1-31/2"),
    (10, 1, 0, "1-7"),
    (0, 12, "fri", 13),
    (0, 2, "*", 1, "*/3"),
    (0, 12, "*", 29, 2),
]
AROUND_TURNS = [
    (),
    ("*/15",),
    ("*/7",),
    (0,),
    (30,),
    ("5,35",),
    (59,),
    (0, "*/2"),
    ("0-10", "0-3"),
    ("*/20", 0),
    ("*/20", 1),
    ("*", 2),
    (45, 23),
    ("*/10", "22-2"),
    ("*/30", "*", "sat,sun"),
    (15, "*", "*", "1-31/2"),
]
SORTS = ("Havana", "Cairo", "Lord_Howe", "New_York", "Troll", "Casey", "Apia", "Kwajalein", "Johns")


def named(fields):
    return {str(each): crontab(*each) for each in fields}


def ours(crontabs, zone, start, end):
    return sorted(
        (name, to_datetime(tick))
        for name, spec in crontabs.items()
        for tick in ticks_within(
            CeleryCrontab.of(spec, zone_of(zone)), to_micros(start), to_micros(end)
        )
    )


@pytest.mark.parametrize("zone", ZONES)
def test_in_a_year_each_tick_is_what_a_stock_beat_sends_and_no_other(zone):
    start, end = YEAR
    turns = [datetime.fromisoformat(at).replace(tzinfo=UTC) for at in ZONES[zone]]
    beat = start_stock_beat(named(IN_A_YEAR), zone, start, longest_sleep=3600)
    sent = beat.run(end, closely=[(at - 3 * HOUR, at + 3 * HOUR) for at in turns])
    assert sorted(sent) == ours(named(IN_A_YEAR), zone, start, end)


@pytest.mark.parametrize("turn", [turn for turn in TURNS if turn.zone.endswith(SORTS)], ids=str)
def test_around_a_turn_each_tick_is_what_a_stock_beat_sends_and_no_other(turn):
    at = to_datetime(turn.at)
    start, end = at - 14 * HOUR - HOUR / 100, at + 14 * HOUR + HOUR / 100
    beat = start_stock_beat(named(AROUND_TURNS), turn.zone, start)
    sent = beat.run(end, closely=[(at - 3 * HOUR, at + 3 * HOUR)])
    assert sorted(sent) == ours(named(AROUND_TURNS), turn.zone, start, end)


QUARTERS = crontab("*/15")
NEW_YORK = "America/New_York"


def beat_from_the_repeated_hour_on():
    return start_stock_beat({"quarters": QUARTERS}, NEW_YORK, second_pass(1, 5))


def second_pass(hour, minute):
    """Return an instant of the night in which 02:00 became 01:00 again."""
    tz = ZoneInfo(NEW_YORK)
    return datetime(2026, 11, 1, hour, minute, fold=1, tzinfo=tz).astimezone(UTC)


def test_a_stock_beat_that_starts_in_the_repeated_hour_sends_with_every_pass():
    beat = beat_from_the_repeated_hour_on()
    usual = timedelta(microseconds=150)
    sent = beat.run(second_pass(1, 5) + 2 * SECOND, a_pass=usual)
    assert len(sent) > 13_000


def test_a_stock_beat_that_started_in_the_repeated_hour_does_so_until_its_last_quarter():
    beat = beat_from_the_repeated_hour_on()
    sent = beat.run(second_pass(1, 59), a_pass=SECOND)
    assert [at for _, at in sent] == [second_pass(1, 5) + n * SECOND for n in range(40 * 60 + 1)]


@pytest.mark.parametrize(
    ("kind", "quarters"), [(CeleryCrontab, ()), (RealCrontab, (15, 30, 45))], ids=["celery", "real"]
)
def test_ours_have_in_the_repeated_hour_what_the_calendar_says(kind, quarters):
    table = kind.of(QUARTERS, zone_of(NEW_YORK))
    ticks = ticks_within(table, to_micros(second_pass(1, 5)), to_micros(second_pass(2, 0)))
    assert [to_datetime(tick) for tick in ticks] == [
        *(second_pass(1, minute) for minute in quarters),
        second_pass(2, 0),
    ]
