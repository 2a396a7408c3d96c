from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Count, to_datetime, to_micros
from celery_redlock_beat.timetables.oneoff import Once, clocked_at, instant_of, once
from celery_redlock_beat.timetables.zones import UTC_ZONE, zone_of

BERLIN = "Europe/Berlin"
EVE = "2026-12-24T18:00"
AT = to_micros(datetime(2026, 12, 24, 17, tzinfo=UTC))


def test_its_one_instant_is_next_before_and_latest_from_then_on():
    table = Once(100)
    assert [table.next_after(moment) for moment in (-5, 99, 100, 101)] == [100, 100, None, None]
    assert [table.latest_until(moment) for moment in (-5, 99, 100, 101)] == [None, None, 100, 100]


@pytest.mark.parametrize(
    ("after", "before", "number"),
    [(99, 101, 1), (100, 101, 0), (99, 100, 0), (0, 1, 0), (101, 99, 0)],
)
def test_it_is_counted_strictly_between(after, before, number):
    assert Once(100).count_between(after, before) == Count(number)


def test_another_instant_is_another_timetable():
    assert Once(100) == Once(100) != Once(101)
    assert Once(100).fingerprint == "once:100"


@pytest.mark.parametrize(
    "told",
    [
        EVE,
        "2026-12-24 18:00",
        "2026-12-24T18",
        "2026-12-24 18:00:00.000000+01:00",
        "2026-12-24T17:00Z",
        datetime(2026, 12, 24, 18),
        datetime(2026, 12, 24, 17, tzinfo=UTC),
        datetime(2026, 12, 24, 18, tzinfo=ZoneInfo(BERLIN)),
        datetime(2026, 12, 24, 12, tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_an_instant_is_a_datetime_or_its_text_and_without_an_offset_in_the_zone(told):
    assert instant_of(told, zone_of(BERLIN)) == AT


@pytest.mark.parametrize(
    ("told", "instant"),
    [
        ("2026-03-29T02:30", datetime(2026, 3, 29, 1, 30)),  # a gap: 03:30 summer time
        ("2026-10-25T02:30", datetime(2026, 10, 25, 0, 30)),  # twice: the first pass
        (datetime(2026, 10, 25, 2, 30, fold=1), datetime(2026, 10, 25, 1, 30)),
    ],
)
def test_an_instant_can_be_told_where_clocks_change(told, instant):
    assert instant_of(told, zone_of(BERLIN)) == to_micros(instant.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "told",
    [
        "2026-12-24",
        "20261224",
        date(2026, 12, 24),
        "18:00",
        "tomorrow at noon",
        "2026-13-24T18:00",
        "",
        1_798_131_600,
        1.5,
        True,
        None,
        timedelta(hours=1),
    ],
)
def test_what_is_no_instant_is_refused(told):
    for refused in (lambda: once(told), lambda: instant_of(told, UTC_ZONE)):
        with pytest.raises(ConfigurationError, match="with the time of day") as caught:
            refused()
        assert repr(told) in str(caught.value)


@pytest.mark.parametrize("told", [datetime.max, datetime.min.replace(tzinfo=UTC), "9999-12-31T23"])
def test_an_end_of_the_calendar_is_refused(told):
    with pytest.raises(ConfigurationError, match="use a nearer date, or leave it out"):
        once(told, BERLIN)


def test_an_unknown_zone_is_refused_with_a_suggestion():
    with pytest.raises(ConfigurationError, match="did you mean 'Europe/Berlin'"):
        once(EVE, timezone="Europe/Berlni")


def stock_view(schedule, now, zone="UTC"):
    schedule.app = Celery("shop", set_as_current=False, timezone=zone)
    schedule.nowfun = lambda: to_datetime(now).astimezone(ZoneInfo(zone))
    return schedule


def test_without_a_zone_it_is_told_in_that_of_the_app():
    app = Celery("shop", set_as_current=False, timezone=BERLIN)
    assert once(EVE).timetable(zone_of(BERLIN)) == Once(AT)
    assert once(EVE, app=app).timetable() == Once(AT)
    assert once(EVE, "UTC", app=app).timetable() == Once(AT + 3600 * SECOND)
    assert once(EVE + "+01:00", "UTC", app=app).timetable() == Once(AT)


def test_a_stock_beat_runs_it_at_its_instant_and_never_again():
    schedule, sent = once(EVE, BERLIN), []
    last, now = to_datetime(AT - 90 * SECOND), AT - 60 * SECOND
    while now < AT + 60 * SECOND:
        due, delay = stock_view(schedule, now).is_due(last)
        if due:
            sent.append(now)
            last = to_datetime(now + SECOND // 100)
        assert delay > 0
        now += min(int(delay * SECOND), 7 * SECOND)
    assert sent == [AT]


def test_a_stock_beat_that_was_down_runs_it_late_and_one_that_began_later_does_not():
    schedule = stock_view(once(EVE, BERLIN), AT + 3600 * SECOND)
    assert schedule.is_due(to_datetime(AT - SECOND))[0]
    assert not schedule.is_due(to_datetime(AT))[0]
    assert not schedule.is_due(to_datetime(AT + SECOND))[0]


def test_a_stock_beat_is_told_how_long_to_wait():
    schedule = stock_view(once(EVE, BERLIN), AT - 90 * SECOND)
    assert schedule.is_due(datetime(2026, 12, 24, 12)) == (False, 90)
    assert schedule.remaining_estimate(datetime(2026, 12, 24, 12)) == timedelta(seconds=90)


def test_it_is_equal_by_meaning_and_survives_pickling():
    schedule = once(EVE, BERLIN)
    assert (
        schedule == once("2026-12-24 18:00+01:00") == once(datetime(2026, 12, 24, 17, tzinfo=UTC))
    )
    assert schedule != once(EVE)
    assert once(EVE) == once(datetime(2026, 12, 24, 18)) != once("2026-12-24T18:01")
    assert schedule != crontab("0", "18")
    assert len({schedule, once(EVE, ZoneInfo(BERLIN))}) == 1
    assert repr(schedule) == "<once: 2026-12-24T18:00:00 Europe/Berlin>"
    assert repr(once(EVE)) == "<once: 2026-12-24T18:00:00>"
    for twin in (pickle.loads(pickle.dumps(schedule)), copy.copy(schedule)):
        assert twin == schedule
        assert twin.timetable() == Once(AT)


def test_each_pass_of_a_repeated_hour_is_another_schedule():
    passes = [datetime(2026, 10, 25, 2, 30, fold=fold) for fold in (0, 1)]
    assert once(passes[0]) != once(passes[1])
    assert once(passes[0], BERLIN) != once(passes[1], BERLIN)
    assert pickle.loads(pickle.dumps(once(passes[1]))) == once(passes[1])


def clocked(module="django_celery_beat.clockedschedule", name="clocked", **attributes):
    cls = type(name, (SimpleNamespace,), {"__module__": module, "__qualname__": name})
    return cls(**attributes)


def test_the_instant_of_a_clocked_schedule_is_read_without_its_package():
    at = datetime(2026, 12, 24, 17, tzinfo=UTC)
    assert clocked_at(clocked(clocked_time=at)) == at
    assert clocked_at(clocked(clocked_time=at.replace(tzinfo=None))) == at


@pytest.mark.parametrize(
    "other",
    [
        clocked("shop.schedules", clocked_time=datetime(2026, 12, 24)),
        clocked(name="clocked_too", clocked_time=datetime(2026, 12, 24)),
        clocked(clocked_time=None),
        clocked(),
        crontab(),
        "clocked",
        None,
    ],
)
def test_what_is_not_clocked_has_no_such_instant(other):
    assert clocked_at(other) is None
