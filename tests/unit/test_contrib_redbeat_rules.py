"""RedBeat's rrule is made with its arguments, and is then a rule that all of ours takes."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
import redbeat.schedules
from celery import Celery
from dateutil import rrule as dateutil
from dateutil.rrule import FR, MO, TU

import celery_redlock_beat
from celery_redlock_beat import ConfigurationError, EntryError
from celery_redlock_beat.contrib.redbeat.rules import arguments_of
from celery_redlock_beat.contrib.redbeat.schedules import (
    as_redbeat_has_it,
    begins_when_made,
    rrule,
)
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.documents import schedules
from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import Opaque, timetable_for

BERLIN = ZoneInfo("Europe/Berlin")
START = dt.datetime(2026, 1, 1, 9, 30, tzinfo=BERLIN)
HOUR = dt.timedelta(hours=1)
APP = Celery("shop", set_as_current=False)
RULES = {
    "every other hour": {"freq": "hourly", "interval": 2},
    "by number": {"freq": dateutil.DAILY, "byhour": 5, "byminute": [0, 30], "bysecond": 0},
    "some weekdays": {"freq": "WEEKLY", "byweekday": (MO, FR), "wkst": dateutil.SU, "interval": 2},
    "numbered weekdays": {"freq": "MONTHLY", "byweekday": [MO(2), FR(-1)]},
    "last working day": {"freq": "MONTHLY", "byweekday": [0, 1, 2, 3, 4], "bysetpos": -1},
    "days of a month": {"freq": "YEARLY", "bymonth": [2, 6], "bymonthday": [1, -1]},
    "days of a year": {"freq": "YEARLY", "byyearday": [1, 100, -1]},
    "a week": {"freq": "YEARLY", "byweekno": 20, "byweekday": TU},
    "numbers without a meaning": {"freq": "WEEKLY", "byweekday": [MO(2), FR(-1)]},
    "all days of a week": {"freq": "YEARLY", "byweekno": [20, 21]},
    "five times": {"freq": "DAILY", "count": 5},
    "until": {"freq": "DAILY", "until": START + 240 * HOUR},
}


def instants(rule, number=12):
    """Return the first instants of a rule of ours, as its timetable has them."""
    table, at, found = timetable_for(rule, APP), to_micros(START) - 1, []
    while len(found) < number and (at := table.next_after(at)) is not None:
        found.append(to_datetime(at))
    return found


@pytest.mark.parametrize("arguments", RULES.values(), ids=RULES)
def test_it_is_due_when_redbeats_own_is(arguments):
    theirs = redbeat.schedules.rrule(dtstart=START, **arguments)
    assert instants(rrule(dtstart=START, **arguments)) == list(islice(theirs.rrule, 12))


@pytest.mark.parametrize("arguments", RULES.values(), ids=RULES)
def test_a_document_brings_it_back_with_its_arguments(arguments):
    rule = rrule(dtstart=START, **arguments)
    document = json.loads(json.dumps(schedules.written(rule)))
    again = as_redbeat_has_it(schedules.read(document))
    assert again == rule
    assert isinstance(again, rrule)
    assert instants(again) == instants(rule)
    theirs = {"freq": rule.freq, "dtstart": START, "interval": rule.interval}
    assert {name: getattr(again, name) for name in theirs} == theirs
    assert list(islice(again.rrule, 5)) == list(islice(rule.rrule, 5))


def test_entries_and_timetables_take_it_for_one_of_ours():
    rule = rrule("DAILY", dtstart=START)
    assert type(rule) is celery_redlock_beat.rrule
    assert isinstance(rule, rrule)
    assert not isinstance(timetable_for(rule, APP), Opaque)
    assert "FREQ=DAILY" in documents.written("daily", {"task": "shop.report", "schedule": rule})


def test_a_rule_of_text_is_no_rule_of_redbeats():
    assert not isinstance(celery_redlock_beat.rrule("FREQ=DAILY;BYHOUR=9"), rrule)
    assert not isinstance("FREQ=DAILY", rrule)


def test_it_has_redbeats_attributes():
    rule = rrule("weekly", START, byweekday=[MO], until=START + 99 * HOUR)
    assert (rule.freq, rule.dtstart, rule.interval) == (dateutil.WEEKLY, START, 1)
    assert (rule.until, rule.byweekday, rule.count) == (START + 99 * HOUR, [MO], None)
    assert rule.rrule.after(START - HOUR) == START + 96 * HOUR


def test_numbers_of_weekdays_are_kept():
    rule = rrule("MONTHLY", dtstart=START, byweekday=[MO(2), FR(-1)])
    again = as_redbeat_has_it(schedules.read(schedules.written(rule)))
    assert sorted(again.byweekday, key=repr) == [FR(-1), MO(2)]


def test_its_zone_follows_the_clocks():
    rule = rrule("MONTHLY", dtstart=START)
    assert {each.astimezone(BERLIN).hour for each in instants(rule)} == {9}
    assert len({each.hour for each in instants(rule)}) == 2


def test_a_naive_start_is_in_utc():
    rule = rrule("DAILY", dtstart=dt.datetime(2026, 1, 1, 9))
    assert rule.dtstart == dt.datetime(2026, 1, 1, 9, tzinfo=dt.UTC)


@pytest.mark.parametrize("hours", [-12, -5, 2, 5.5, 14])
def test_an_offset_that_a_zone_has_for_ever_gets_its_name(hours):
    start = dt.datetime(2026, 1, 1, 9, tzinfo=dt.timezone(hours * HOUR))
    rule = rrule("DAILY", dtstart=start)
    assert rule.dtstart.utcoffset() == hours * HOUR
    assert instants(as_redbeat_has_it(schedules.read(schedules.written(rule)))) == instants(rule)
    assert instants(rule)[0].astimezone(start.tzinfo).hour == 9


def test_another_offset_can_be_in_code_and_not_in_a_document():
    start = dt.datetime(2026, 1, 1, 9, tzinfo=dt.timezone(5.25 * HOUR))
    rule = rrule("DAILY", dtstart=start)
    assert instants(rule)[0].astimezone(start.tzinfo).hour == 9
    with pytest.raises(ConfigurationError, match="IANA"):
        schedules.written(rule)


@pytest.mark.parametrize(("hours", "number"), [(25, 2), (1000, 3)])
def test_of_count_and_until_what_ends_first_is_kept(hours, number):
    rule = rrule("DAILY", dtstart=START, count=3, until=START + hours * HOUR)
    assert len(instants(rule)) == number
    assert (rule.count, rule.until) == (3, START + hours * HOUR)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"freq": "fortnightly"}, "YEARLY, MONTHLY"),
        ({"freq": 7}, "YEARLY, MONTHLY"),
        ({"freq": True}, "YEARLY, MONTHLY"),
        ({"freq": "YEARLY", "byeaster": 0}, "byeaster"),
        ({"freq": "DAILY", "bysetpos": 0}, "bysetpos"),
        ({"freq": "DAILY", "byhour": "nine"}, "recurrence rule"),
        ({"freq": "YEARLY", "bymonth": 2, "bymonthday": 30}, "never"),
    ],
)
def test_what_is_no_rule_is_refused_when_it_is_made(arguments, told):
    with pytest.raises(ConfigurationError, match=told):
        rrule(dtstart=START, **arguments)


def test_a_rule_without_a_start_begins_when_it_is_made():
    before = dt.datetime.now(dt.UTC)
    rule = rrule("DAILY", app=APP)
    assert before <= rule.dtstart <= dt.datetime.now(dt.UTC)
    assert begins_when_made(rule)
    assert not begins_when_made(rrule("DAILY", dtstart=START))
    assert not begins_when_made(60)


def test_a_subclass_is_code():
    class Whim(rrule):
        """A user's own."""

    whim = Whim("DAILY", dtstart=START)
    assert isinstance(whim, Whim)
    assert not isinstance(rrule("DAILY", dtstart=START), Whim)
    with pytest.raises(EntryError, match="is code"):
        documents.written("whim", {"task": "shop.report", "schedule": whim})


def test_it_is_pickled_as_a_rule_of_ours():
    rule = rrule("MONTHLY", dtstart=START, byweekday=MO(2))
    again = as_redbeat_has_it(pickle.loads(pickle.dumps(rule)))
    assert again == rule
    assert again.byweekday == [MO(2)]


def test_a_rule_of_text_tells_its_arguments():
    rule = celery_redlock_beat.rrule(
        "DTSTART;TZID=Europe/Berlin:20260101T093000 RRULE:FREQ=MONTHLY;BYDAY=2MO;UNTIL=20270101"
    )
    said = arguments_of(rule)
    assert (said["freq"], said["dtstart"], said["byweekday"]) == (dateutil.MONTHLY, START, [MO(2)])
    assert said["until"] == dt.datetime(2027, 1, 1, 23, 59, 59, tzinfo=BERLIN)
    assert instants(as_redbeat_has_it(rule)) == instants(rule)


def test_several_rules_in_one_have_no_arguments():
    rule = celery_redlock_beat.rrule(
        "DTSTART:20260101T090000 RRULE:FREQ=DAILY RDATE:20260101T100000"
    )
    with pytest.raises(ConfigurationError, match="make an entry of each"):
        arguments_of(rule)
    assert as_redbeat_has_it(rule) is rule
