"""Recurrence rules against python-dateutil, which expands them from their start on naive time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, Count, to_datetime, to_micros
from celery_redlock_beat.timetables.rule import Rule
from celery_redlock_beat.timetables.zones import DAY, changes_near, zone_of

ZONES = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/St_Johns",
    "America/Havana",  # midnight itself is repeated, and lies in the gap
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Africa/Casablanca",  # back and forth within five weeks
    "Asia/Tehran",
    "Antarctica/Troll",  # by two hours
    "Australia/Lord_Howe",  # by half an hour
    "Pacific/Chatham",
    "Pacific/Apia",  # a whole day is left out
]
YEARS = (2011, 2018, 2022, 2026)
HOUR = timedelta(hours=1)
UNITS = {
    "YEARLY": timedelta(days=366),
    "MONTHLY": timedelta(days=31),
    "WEEKLY": timedelta(weeks=1),
    "DAILY": timedelta(days=1),
    "HOURLY": HOUR,
    "MINUTELY": timedelta(minutes=1),
    "SECONDLY": timedelta(seconds=1),
}
WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
NO_DEADLINE = {"deadline": None, "derandomize": True}


@lru_cache
def turning_points(zone):
    """Return the local times, a little before and after, at which a zone changes its offset."""
    found = {datetime(2026, 6, 19, 12)}
    for year in YEARS:
        first = to_micros(datetime(year, 1, 1, tzinfo=UTC)) // DAY
        for day in range(first, first + 368, 4):
            for change in changes_near(zone_of(zone), day):
                for moment in (change.at - SECOND, change.at):
                    found.add(to_datetime(moment).astimezone(ZoneInfo(zone)).replace(tzinfo=None))
    return sorted(found)


def instant(wall, zone):
    """Put a local time into a zone: zoneinfo shifts a time in a gap, and takes the first of two."""
    return to_micros(wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC))


def instants(text, zone, end):
    """Return all instants up to the local time ``end``: each that dateutil finds, by itself."""
    walls = takewhile(lambda wall: wall <= end + 2 * HOUR, rrulestr(text, forceset=True))
    found = {instant(wall, zone) for wall in walls}
    return sorted(at for at in found if at <= instant(end, zone))


def stamp(wall):
    return f"{wall:%Y%m%dT%H%M%S}"


def lists(values, most=3):
    return st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True).map(
        lambda chosen: ",".join(map(str, chosen))
    )


@st.composite
def day_parts(draw, freq, near):
    """Draw the parts that choose days, most often such that the day of ``near`` is one."""
    day, weekday = near.day, WEEKDAYS[near.weekday()]
    months = lists([near.month, near.month, 1, 6, 12])
    of_year = near.timetuple().tm_yday
    numbered = [f"{(day - 1) // 7 + 1}{weekday}", f"-1{weekday}", f"2{weekday}", "1MO"]
    choices = {"BYMONTH": months, "BYDAY": lists([weekday, weekday, "MO", "FR"])}
    if freq != "WEEKLY":
        choices["BYMONTHDAY"] = lists([day, day, 1, 15, 28, -1, -3])
    if freq in ("YEARLY", "HOURLY", "MINUTELY", "SECONDLY"):
        choices["BYYEARDAY"] = lists([of_year, of_year, of_year + 1, 100, -1, -366])
    if freq in ("MONTHLY", "YEARLY") and draw(st.booleans()):
        choices["BYDAY"] = lists(numbered)
    names = draw(st.lists(st.sampled_from(sorted(choices)), max_size=2, unique=True))
    parts = [f"{name}={draw(choices[name])}" for name in names]
    if freq == "YEARLY" and not parts and draw(st.booleans()):
        parts = [f"BYWEEKNO={near.isocalendar().week},1,-1", f"BYDAY={weekday},SU"]
    return parts


@st.composite
def time_parts(draw, near):
    hour, minute = near.hour, near.minute
    choices = {
        "BYHOUR": lists([hour, hour, (hour + 1) % 24, (hour - 1) % 24, 0, 2, 12], most=4),
        "BYMINUTE": lists([minute, 0, 1, 29, 30, 59]),
        "BYSECOND": lists([0, 1, 59, near.second]),
    }
    names = draw(st.lists(st.sampled_from(sorted(choices)), max_size=3, unique=True))
    return [f"{name}={draw(choices[name])}" for name in names]


@st.composite
def rules(draw, near):
    """Draw a rule whose start is some of its periods before ``near``, and when to stop looking."""
    freq = draw(st.sampled_from(list(UNITS)))
    interval = draw(st.sampled_from([1, 1, 1, 2, 3, 5, 7, 25, 90, 1441, 100_000]))
    if interval > 7 and freq in ("YEARLY", "MONTHLY", "WEEKLY"):
        interval = 1
    parts = [f"FREQ={freq}", f"INTERVAL={interval}"]
    parts += draw(day_parts(freq, near)) + draw(time_parts(near))
    if draw(st.integers(0, 3)) == 0:
        parts.append(f"BYSETPOS={draw(lists([1, 2, -1, -2]))}")
    if draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(WEEKDAYS))}")
    most = {"YEARLY": 9, "MONTHLY": 60, "WEEKLY": 150}.get(freq, 2000)
    periods = min(draw(st.integers(0, most)), timedelta(days=9000) // (interval * UNITS[freq]))
    shift = timedelta(seconds=draw(st.integers(-200_000, 200_000)))
    if freq in ("MINUTELY", "SECONDLY"):
        shift = timedelta(seconds=draw(st.integers(-600, 600)))
    start = near - periods * interval * UNITS[freq] + shift
    end = min(max(near, start) + 5 * interval * UNITS[freq], start + timedelta(days=10_000))
    return f"DTSTART:{stamp(start)}\nRRULE:{';'.join(parts)}", max(end, near + 3 * HOUR)


@st.composite
def cases(draw):
    zone = draw(st.sampled_from(ZONES))
    near = draw(st.sampled_from(turning_points(zone)))
    near += draw(st.sampled_from([-1, 0, 0, 0, 1])) * HOUR
    return zone, *draw(rules(near))


def table_of(text, zone):
    try:
        return Rule(text, zone)
    except ConfigurationError as error:
        assume("never fires" not in str(error))
        raise


def assert_same(table, expected, data):
    """Compare a chain of instants, and answers around some of them."""
    first = data.draw(st.integers(0, len(expected) - 1))
    at = expected[first] - 1
    for each in expected[first : first + 100]:
        at = table.next_after(at)
        assert at == each
    for index in data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=3)):
        assert_on_the_grid(table, expected, index, data)


def assert_on_the_grid(table, expected, index, data):
    at = expected[index]
    previous = expected[index - 1] if index else None
    assert table.next_after(at - 1) == at
    assert table.latest_until(at) == at
    assert table.latest_until(at - 1) == previous
    begin = at - DAY if previous is None else previous
    for moment in data.draw(st.lists(st.integers(begin, at - 1), max_size=3)):
        assert table.next_after(moment) == at
        assert table.latest_until(moment) == previous
    if previous is not None:
        assert table.next_after(previous) == at
        assert table.count_between(previous, at) == Count(0)
        assert table.count_between(previous - 1, at + 1) == Count(2)


@settings(max_examples=100, **NO_DEADLINE)
@given(cases(), st.data())
def test_the_instants_are_those_of_dateutil(case, data):
    zone, text, end = case
    table = table_of(text, zone)
    expected = instants(text, zone, end)
    assume(expected)
    assert_same(table, expected, data)


SIMPLE = {
    "RRULE": ["HOURLY", "HOURLY;INTERVAL=5", "DAILY", "DAILY;INTERVAL=2", "MINUTELY;INTERVAL=15"],
    "EXRULE": ["HOURLY;INTERVAL=7", "DAILY;INTERVAL=3"],  # which always leave something over
}


@st.composite
def sets(draw):
    """Draw rules and dates around a change of offset that often meet."""
    zone = draw(st.sampled_from(ZONES))
    near = draw(st.sampled_from(turning_points(zone))).replace(minute=0, second=0)
    hours = st.integers(-90, 90).map(lambda thirds: stamp(near + thirds * HOUR / 3))
    lines = [f"DTSTART:{stamp(near - draw(st.integers(0, 60)) * HOUR)}"]
    for name in draw(st.lists(st.sampled_from(["RRULE", "RRULE", "EXRULE"]), max_size=3)):
        lines.append(f"{name}:FREQ={draw(st.sampled_from(SIMPLE[name]))}")
        lines[-1] += draw(st.sampled_from(["", f";BYHOUR={near.hour}", ";BYHOUR=1,2,3,23"]))
        lines[-1] += draw(st.sampled_from(["", "", ";COUNT=7", f";UNTIL={draw(hours)}"]))
    for name in ("RDATE", "EXDATE"):
        dates = draw(st.lists(hours, max_size=5))
        if dates:
            lines.append(f"{name}:{','.join(dates)}")
    return zone, "\n".join(lines), near + 40 * HOUR


@settings(max_examples=100, **NO_DEADLINE)
@given(sets(), st.data())
def test_sets_of_rules_and_dates_are_those_of_dateutil(case, data):
    zone, text, end = case
    expected = instants(text, zone, end)
    assume(expected)
    assert_same(Rule(text, zone), expected, data)


@settings(max_examples=30, **NO_DEADLINE)
@given(cases(), st.integers(-200, 200), st.data())
def test_an_until_in_utc_is_the_last_instant(case, minutes, data):
    zone, text, end = case
    of_all = instants(text, zone, end) if table_of(text, zone) else []
    assume(of_all)
    until = min(data.draw(st.sampled_from(of_all)) + minutes * 60 * SECOND, of_all[-1])
    expected = [tick for tick in of_all if tick <= until]
    assume(expected)
    table = Rule(f"{text};UNTIL={stamp(to_datetime(until))}Z", zone)
    assert_same(table, expected, data)
    assert table.next_after(expected[-1]) is None


STARTED = [
    "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
    "FREQ=HOURLY",
    "DTSTART:20100101T003017\nRRULE:FREQ=MINUTELY;INTERVAL=7",
    "DTSTART:20100101T000059\nRRULE:FREQ=SECONDLY;INTERVAL=1801",
    "DTSTART:20100101T013007\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,SU",
]


@settings(max_examples=100, **NO_DEADLINE)
@given(st.sampled_from(ZONES), st.sampled_from(STARTED), st.data())
def test_the_grid_holds_to_the_microsecond_where_clocks_change(zone, text, data):
    table = Rule(text, zone)
    change = instant(data.draw(st.sampled_from(turning_points(zone))), zone)
    moment = change + data.draw(st.one_of(st.integers(-2, 2), st.integers(-DAY, DAY)))
    following = table.next_after(moment)
    assert following > moment
    near = [change + hours * 3600 * SECOND + step for hours in range(-3, 4) for step in (-1, 0, 1)]
    drawn = data.draw(st.lists(st.integers(moment, following - 1), max_size=4))
    for other in (*near, *drawn, following - 1):
        if moment <= other < following:
            assert table.next_after(other) == following
    assert table.latest_until(following) == following
    previous = table.latest_until(following - 1)
    assert previous <= moment
    assert table.next_after(previous) == following
