"""The shim's JSON is RedBeat's, in both directions."""

from __future__ import annotations

import datetime as dt
import json
from zoneinfo import ZoneInfo

import pytest
import redbeat.decoder
import redbeat.schedules
from celery.schedules import crontab, schedule
from dateutil.rrule import FR, MO

from celery_redlock_beat.contrib.redbeat import decoder
from celery_redlock_beat.contrib.redbeat.schedules import rrule

START = dt.datetime(2026, 1, 1, 9, 30, tzinfo=ZoneInfo("Europe/Berlin"))
LATER = START + dt.timedelta(days=30)
FIVE_EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))
VALUES = {
    "an interval": schedule(90.5),
    "an interval in step": schedule(60, relative=True),
    "a crontab": crontab(minute="*/5", hour=7, day_of_week="mon-fri"),
    "a naive datetime": dt.datetime(2026, 1, 1, 9, 30, 1, 5),
    "a datetime in a zone": START,
    "a datetime with an offset": START.astimezone(FIVE_EAST),
    "a weekday": MO,
    "an entry": {"name": "a", "args": [1, None], "schedule": schedule(60), "enabled": True},
}
RULES = {
    "daily": {"freq": "DAILY", "dtstart": START},
    "weekly": {"freq": "WEEKLY", "dtstart": START, "byweekday": [MO, FR], "until": LATER},
    "hourly": {"freq": "HOURLY", "dtstart": START.astimezone(FIVE_EAST), "interval": 3, "count": 4},
}


def written(value):
    return json.dumps(value, cls=decoder.RedBeatJSONEncoder)


def read(text):
    return json.loads(text, cls=decoder.RedBeatJSONDecoder)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_it_writes_what_redbeat_writes(value):
    assert written(value) == json.dumps(value, cls=redbeat.decoder.RedBeatJSONEncoder)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_it_reads_what_redbeat_writes(value):
    text = json.dumps(value, cls=redbeat.decoder.RedBeatJSONEncoder)
    assert read(text) == json.loads(text, cls=redbeat.decoder.RedBeatJSONDecoder)


@pytest.mark.parametrize("arguments", RULES.values(), ids=RULES)
def test_rules_are_written_as_by_redbeat_and_read_again(arguments):
    theirs = redbeat.schedules.rrule(**arguments)
    text = json.dumps(theirs, cls=redbeat.decoder.RedBeatJSONEncoder)
    assert json.loads(written(rrule(**arguments))) == json.loads(text)
    again = read(text)
    assert isinstance(again, rrule)
    assert again.rrule[0] == theirs.rrule[0]
    assert again.dtstart.utcoffset() == theirs.dtstart.utcoffset()


def test_the_number_of_a_weekday_is_kept_and_redbeat_reads_it():
    text = written([MO(2), FR(-1), MO])
    assert read(text) == [MO(2), FR(-1), MO]
    assert json.loads(text, cls=redbeat.decoder.RedBeatJSONDecoder) == [MO(2), FR(-1), MO]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"__type__": "interval", "every": 5}, schedule(5)),
        ({"__type__": "crontab", "minute": "5"}, crontab(minute="5")),
        ({"__type__": "unheard of", "a": 1}, {"__type__": "unheard of", "a": 1}),
        ({"a": {"b": []}}, {"a": {"b": []}}),
    ],
)
def test_it_reads_what_others_write_by_hand(data, value):
    assert read(json.dumps(data)) == value


def test_what_it_does_not_know_is_an_error_as_in_json():
    with pytest.raises(TypeError):
        written(object())


@pytest.mark.parametrize("minutes", [0, 120, -210])
def test_timestamps_come_back_with_their_offset(minutes):
    moment = decoder.from_timestamp(1_767_259_800, minutes)
    assert decoder.to_timestamp(moment) == 1_767_259_800
    assert decoder.get_utcoffset_minutes(moment) == minutes
