from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from itertools import pairwise
from types import SimpleNamespace

import celery
import pytest
from celery import Celery
from celery.schedules import solar

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Count, to_datetime, to_micros
from celery_redlock_beat.timetables.solar import EVENTS, Solar
from celery_redlock_beat.timetables.walk import CEILING, FLOOR
from celery_redlock_beat.timetables.zones import DAY
from support.requirements import require

BERLIN = (52.52, 13.405)
TROMSO = (69.65, 18.96)
QUITO = (-0.18, -78.47)
SYDNEY = (-33.87, 151.21)
DATE_LINE = [(10.0, 179.9), (10.0, -179.9)]
APP = Celery("shop", set_as_current=False)
RELEASE = tuple(int(part) for part in celery.__version__.split(".")[:2])


@pytest.fixture(autouse=True)
def _with_ephem():
    require("ephem", find_spec("ephem"))


def at(text):
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def ticks_of(table, start, end):
    found = []
    while (start := table.next_after(start)) is not None and start <= end:
        found.append(start)
    return found


def ticks_of_celery(event, place, start, end):
    """Return what Celery's own schedule answers, each time asked at the last answer."""
    schedule, found = solar(event, *place, app=APP), []
    last = to_datetime(start)
    while True:
        frozen = last
        schedule.nowfun = lambda: frozen  # noqa: B023  (it is asked at once)
        last += schedule.remaining_estimate(last)
        if to_micros(last) > end:
            return found
        found.append(to_micros(last))


def assert_as_celery(event, place, start, end):
    ours = ticks_of(Solar(event, *place), start, end)
    theirs = ticks_of_celery(event, place, start, end)
    assert len(ours) == len(theirs)
    assert all(abs(one - other) <= SECOND for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("place", [QUITO, SYDNEY, *DATE_LINE])
@pytest.mark.parametrize("event", ["dawn_civil", "solar_noon", "sunset"])
def test_over_two_years_each_event_is_that_of_celery(event, place):
    assert_as_celery(event, place, at("2025-01-01"), at("2027-01-01"))


@pytest.mark.skipif(RELEASE < (5, 7), reason="this Celery runs on days without the event")
@pytest.mark.parametrize("place", [BERLIN, TROMSO])
@pytest.mark.parametrize("event", EVENTS)
def test_days_without_the_event_are_passed_over_as_by_celery(event, place):
    assert_as_celery(event, place, at("2025-01-01"), at("2027-01-01"))


def test_there_is_no_sunrise_in_a_polar_winter_and_summer():
    ticks = ticks_of(Solar("sunrise", *TROMSO), at("2026-01-01"), at("2027-01-01"))
    nights = [(a, b) for a, b in pairwise(ticks) if b - a > 2 * DAY]
    seen = [to_datetime(tick).isoformat()[5:16] for tick in (ticks[0], *nights[0], ticks[-1])]
    assert seen == ["01-15T10:29", "05-17T22:52", "07-25T23:05", "11-27T10:20"]
    assert len(nights) == 1


def test_a_day_of_white_night_has_its_noon_but_no_astronomical_dusk():
    noon = at("2026-06-19T12:00")
    assert Solar("solar_noon", *BERLIN).next_after(noon - DAY // 2) < noon
    assert Solar("dusk_astronomical", *BERLIN).next_after(noon) > noon + 30 * DAY


@pytest.mark.parametrize("event", sorted(EVENTS.keys() - {"solar_noon"}))
def test_at_a_pole_most_events_never_happen(event):
    table = Solar(event, 90, 0)
    assert table.next_after(at("2026-06-19T12:00")) is None
    assert table.latest_until(at("2026-06-19T12:00")) is None


def test_instants_are_whole_seconds_wherever_the_search_begins():
    table = Solar("sunset", *BERLIN)
    sunset = table.next_after(at("2026-06-19T12:00"))
    assert to_datetime(sunset) == datetime(2026, 6, 19, 19, 32, 45, tzinfo=UTC)
    assert {table.next_after(sunset - k * 3_600_000_017) for k in range(1, 20)} == {sunset}
    assert table.latest_until(sunset) == table.latest_until(sunset + DAY // 2) == sunset
    assert table.latest_until(sunset - 1) < sunset - DAY // 2


def test_instants_do_not_depend_on_what_was_asked_before():
    asked, table = Solar("dawn_civil", *BERLIN), Solar("dawn_civil", *BERLIN)
    asked.next_after(0)
    assert asked.next_after(at("2026-06-19T12:00")) == table.next_after(at("2026-06-19T12:00"))


def test_the_count_is_that_of_the_ticks_strictly_between():
    table = Solar("sunrise", *TROMSO)
    ticks = ticks_of(table, at("2026-10-01"), at("2027-03-01"))
    assert table.count_between(ticks[0], ticks[-1]) == Count(len(ticks) - 2)
    assert table.count_between(ticks[0] - 1, ticks[-1] + 1) == Count(len(ticks))
    assert table.count_between(ticks[3], ticks[4]) == Count(0)
    assert table.count_between(ticks[4], ticks[3]) == Count(0)
    assert table.count_between(ticks[9], ticks[3]) == Count(0)


def test_a_count_over_thousands_of_days_is_at_least_what_it_says(monkeypatch):
    monkeypatch.setattr("celery_redlock_beat.timetables.solar.COUNT_LIMIT", 50)
    counted = Solar("sunset", *BERLIN).count_between(at("2026-01-01"), at("2026-06-01"))
    assert counted == Count(49, exact=False)


def test_there_is_no_tick_beyond_the_calendar():
    table = Solar("sunset", *BERLIN)
    assert table.next_after(CEILING + DAY) is None
    assert table.latest_until(FLOOR - DAY) is None
    assert table.latest_until(CEILING + 9 * DAY) > CEILING - 2 * DAY
    assert table.next_after(FLOOR - 9 * DAY) < FLOOR + 2 * DAY


def test_the_timetable_of_a_schedule_has_its_event_and_place():
    assert Solar.of(solar("sunset", *BERLIN, app=APP)) == Solar("sunset", *BERLIN)
    given = SimpleNamespace(event="sunset", lat=Decimal("52.520000"), lon=Decimal("13.405000"))
    assert Solar.of(given) == Solar("sunset", *BERLIN)


def test_it_is_equal_by_value_and_told_apart_by_event_and_place():
    assert len({Solar("sunset", 52, 0), Solar("sunset", 52.0, -0.0)}) == 1
    assert Solar("sunset", 52, -0.0).fingerprint == "solar:sunset:52.0:0.0"
    tables = [Solar(e, a, b) for e in EVENTS for a in (1, 2) for b in (3, 4)]
    assert len({table.fingerprint for table in tables}) == len(set(tables)) == 36


def test_an_unknown_event_is_refused():
    with pytest.raises(ConfigurationError, match="'moonrise' is no solar event; use one of dawn_"):
        Solar("moonrise", *BERLIN)


@pytest.mark.parametrize("lat", [90.1, -91, float("nan"), "north", None])
def test_a_latitude_that_is_none_is_refused(lat):
    with pytest.raises(ConfigurationError, match="lat must be a number of degrees from -90 to 90"):
        Solar("sunset", lat, 0)


def test_a_longitude_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match=r"lon must be .* from -180 to 180, not 200"):
        Solar("sunset", 0, 200)


def test_without_ephem_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ephem", None)
    with pytest.raises(ConfigurationError, match=r"install celery\[solar\]"):
        Solar("sunset", *BERLIN)
