"""Entries as JSON text: what is written, what is read, and what is refused with which words."""

from __future__ import annotations

import enum
import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from uuid import UUID
from zoneinfo import ZoneInfo

import jsonschema
import pytest
from celery import Celery, signature
from celery.beat import BeatLazyFunc, ScheduleEntry
from celery.schedules import crontab
from kombu import Queue

from celery_redlock_beat.documents.entries import KEYS, read, written
from celery_redlock_beat.documents.json_text import DEEPEST, LONGEST
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.policies import PARSERS, Policies, policies_of
from celery_redlock_beat.ticks import to_micros
from support.samples import EACH_POLICY

APP = Celery("shop", set_as_current=False)
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/entry.json").read_text())
PLAIN = {"task": "proj.add", "schedule": 30}
SAID = {
    "task": "proj.tasks.add",
    "schedule": crontab("*/5"),
    "args": (1, "zwölf"),
    "kwargs": {"b": 2, "a": {"d": 1, "c": ()}},
    "options": {"queue": "low"},
    **EACH_POLICY,
    "timezone": ZoneInfo("Europe/Berlin"),
    "jitter": 0.5,
}
TEXT = (
    '{"format": 1, "task": "proj.tasks.add", "schedule": {"kind": "crontab", "minute": "*/5", '
    '"hour": "*", "day_of_week": "*", "day_of_month": "*", "month_of_year": "*"}, '
    '"args": [1, "zwölf"], "kwargs": {"a": {"c": [], "d": 1}, "b": 2}, '
    '"options": {"queue": "low"}, "timezone": "Europe/Berlin", "dst": "real", "catch_up": "all", '
    '"catch_up_window": 3600, "catch_up_limit": 20, "misfire_grace_time": 30, "jitter": 0.5, '
    '"expires": "next", "phase": -7200, "start": "2026-01-01T00:00:00", '
    '"end": "2027-01-01T00:00:00+00:00", '
    '"max_runs": 3, "run_on_start": true, "enabled": false, '
    '"description": "Prices of the day", "tags": ["billing", "nightly"]}'
)


def brief(value):
    return value[:40] if isinstance(value, str) else type(value).__name__


def document(**said):
    return json.dumps({**PLAIN, **said})


def refusal(text):
    with pytest.raises(EntryError) as caught:
        read("a", text)
    assert str(caught.value).startswith("entry 'a': ")
    return caught.value.problem


def refusal_to_write(fields):
    with pytest.raises(EntryError) as caught:
        written("a", fields)
    assert str(caught.value).startswith("entry 'a': ")
    return caught.value.problem


def test_an_entry_is_one_line_with_its_keys_in_order():
    assert written("a", SAID) == TEXT


def test_every_key_has_a_value_here():
    assert {"format", *SAID} == set(KEYS) - {"relative"}


def test_what_is_written_is_read_as_the_same_entry():
    entry = RedlockEntry(name="a", app=APP, **read("a", TEXT))
    given = RedlockEntry(name="a", app=APP, **SAID)
    zone = {"timezone": "Europe/Berlin"}
    assert policies_of(entry) == policies_of(RedlockEntry(name="a", app=APP, **{**SAID, **zone}))
    assert entry.schedule == given.schedule
    assert (entry.task, entry.args) == ("proj.tasks.add", [1, "zwölf"])
    assert entry.kwargs == {"b": 2, "a": {"d": 1, "c": []}}
    assert written("a", read("a", TEXT)) == TEXT
    assert written("a", entry) == written("a", given) == TEXT


def test_only_what_was_said_is_written():
    nothing = dict.fromkeys([*PARSERS, "relative"])
    fields = nothing | {"args": (), "kwargs": {}, "options": {}}
    expected = '{"format": 1, "task": "proj.add", "schedule": {"kind": "interval", "every": 30}}'
    assert written("a", {**PLAIN, **fields}) == expected
    assert written("a", PLAIN | {"name": "a", "app": APP, "total_run_count": 3}) == expected
    assert written("a", ScheduleEntry(name="a", app=APP, **PLAIN)) == expected
    assert read("a", expected).keys() == {"task", "schedule"}


def test_entries_that_say_the_same_have_the_same_text():
    one = PLAIN | {"kwargs": {"a": 1, "b": 2}, "tags": ["x", "y"], "jitter": 5}
    other = {"jitter": timedelta(seconds=5), "tags": ("y", "x", "x"), "kwargs": {"b": 2, "a": 1}}
    assert written("a", one) == written("a", other | PLAIN)


def test_a_relative_interval_is_told_by_the_entry_or_its_schedule():
    text = written("a", PLAIN | {"relative": True})
    assert json.loads(text)["relative"] is True
    entry = RedlockEntry(name="a", app=APP, **read("a", text))
    assert entry.schedule.relative is True
    assert json.loads(written("a", entry))["schedule"]["relative"] is True


def test_null_is_as_if_it_was_not_said():
    nothing = {key: None for key in KEYS if key not in PLAIN}
    assert read("a", document(**nothing)).keys() == {"task", "schedule"}


def test_what_is_by_celerys_convention_comes_back():
    values = {
        "datetime": datetime(2027, 1, 1, 12, tzinfo=UTC),
        "naive": datetime(2027, 1, 1, 12),
        "zoned": datetime(2027, 1, 1, 12, tzinfo=ZoneInfo("Asia/Tokyo")),
        "date": date(2027, 1, 1),
        "time": time(12, 30),
        "decimal": Decimal("1.10"),
        "uuid": UUID(int=5),
        "text": b"abc",
        "bytes": b"\xff\x00",
        "nested": [{"deep": [Decimal(5)]}],
        "large": 10**400,
    }
    fields = PLAIN | {
        "args": list(values.values()),
        "kwargs": values,
        "options": {"eta": values["datetime"]},
    }
    back = read("a", written("a", fields))
    assert back["args"] == list(values.values())
    assert back["kwargs"] == values
    assert back["options"] == {"eta": values["datetime"]}
    assert type(back["kwargs"]["decimal"]) is Decimal


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("day", [datetime(2026, 10, 25, 2, 30), datetime(2026, 3, 29, 2, 30)])
def test_a_moment_at_a_change_of_clocks_comes_back(day, fold):
    moment = day.replace(tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    (back,) = read("a", written("a", PLAIN | {"args": [moment]}))["args"]
    assert to_micros(back) == to_micros(moment)
    text = written("a", PLAIN | {"start": moment})
    assert to_micros(Policies.of({"start": read("a", text)["start"]}).start) == to_micros(moment)


def test_tuples_and_signatures_become_what_a_message_makes_of_them():
    link = signature("proj.done", args=(1,), app=APP)
    fields = PLAIN | {"args": [(1, (2,))], "options": {"link": link}}
    back = read("a", written("a", fields))
    assert back["args"] == [[1, [2]]]
    assert back["options"]["link"] == json.loads(json.dumps(dict(link)))


def test_mappings_of_other_classes_will_do_for_an_entry():
    fields = MappingProxyType(PLAIN | {"kwargs": MappingProxyType({"a": 1})})
    assert read("a", written("a", fields))["kwargs"] == {"a": 1}


class Colour(enum.Enum):
    """No text, and no number."""

    RED = "red"


class Strange:
    """Something that Celery writes, and does not read as itself."""

    def __json__(self):
        return 5


class Broken:
    """Something that fails when it is asked."""

    def __json__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        timedelta(1),
        object(),
        Colour.RED,
        Strange(),
        Broken(),
        bytearray(b"x"),
        1j,
        MappingProxyType({}),
        BeatLazyFunc(print),
        Queue("low"),
        Decimal("NaN"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_argument_that_does_not_come_back_is_named(value):
    told = f"a value of the class {type(value).__qualname__}, which does not come back"
    assert f"args[1] has {told}" in refusal_to_write(PLAIN | {"args": [1, [value]]})
    assert f"kwargs['x'] has {told}" in refusal_to_write(PLAIN | {"kwargs": {"x": {"y": value}}})
    assert f"options['x'] has {told}" in refusal_to_write(PLAIN | {"options": {"x": value}})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "no number in JSON"),
        (float("-inf"), "no number in JSON"),
        (10**5000, "thousands of digits"),
        ({1: 2}, "a key that is no text, 1"),
        ({"__type__": "uuid", "__value__": 5}, "rename one of the two keys"),
        ("\ud800", "cannot be written as UTF-8"),
    ],
    ids=brief,
)
def test_a_value_that_json_has_not_is_told(value, words):
    assert words in refusal_to_write(PLAIN | {"args": [value]})
    assert words in refusal_to_write(PLAIN | {"kwargs": {"x": value}})


def test_what_holds_itself_is_refused():
    circle = []
    circle.append(circle)
    assert "levels deep" in refusal_to_write(PLAIN | {"args": circle})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task": "t"}, "it has no 'schedule'"),
        ({"schedule": 5}, "it has no 'task'"),
        (PLAIN | {"jiter": 5}, "unknown key 'jiter'; did you mean 'jitter'?"),
        (PLAIN | {"jitter": -5}, "jitter = -5 is out of range"),
        (PLAIN | {"task": print}, "must be the name of a task"),
        (PLAIN | {"args": "abc"}, "its 'args' must be a list"),
        (PLAIN | {"args": {"a": 1}}, "its 'args' must be a list"),
        (PLAIN | {"kwargs": [1]}, "its 'kwargs' must be an object"),
        (PLAIN | {"kwargs": {1: 2}}, "kwargs has a key that is no text"),
        (PLAIN | {"options": {"headers": [1]}}, "'headers' must be a dict"),
        (PLAIN | {"relative": "yes"}, "relative = 'yes' is neither"),
        (PLAIN | {"timezone": timezone(timedelta(hours=2))}, "no IANA name"),
        (PLAIN | {"start": datetime(2026, 10, 25, 2, 30, fold=1)}, "fold=1"),
        (PLAIN | {"description": "x" * LONGEST}, "longer than"),
        ([1], "it must be a mapping"),
    ],
    ids=brief,
)
def test_what_cannot_be_an_entry_is_not_written(fields, words):
    assert words in refusal_to_write(fields)


def test_a_class_of_the_users_own_is_code():
    class Own(RedlockEntry):
        pass

    assert "its class" in refusal_to_write(Own(name="a", app=APP, **PLAIN))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff{}", "it is not UTF-8 (byte 0)"),
        ("", "it is no JSON: Expecting value at line 1, column 1"),
        ('{"task": }', "line 1, column 10"),
        ('{"task": NaN}', "there is no number NaN"),
        ('{"a": 1e999}', "too large"),
        (f'{{"a": {"9" * 5000}}}', "thousands of digits"),
        ('{"task": "t", "task": "u", "schedule": 5}', "its key 'task' is there twice"),
        ("[" * 100_000, "deep"),
        ("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2), "levels deep"),
        (" " * (LONGEST + 1), "longer than"),
        ("null", "it must be an object with 'task' and 'schedule', not null"),
        ("[]", "not a list"),
        ("5", "not a number"),
        ("{}", "it has no 'task'; add that key"),
        ('{"task": null, "schedule": 5}', "it has no 'task'; add that key"),
        ('{"task": "t", "schedule": null}', "it has no 'schedule'; add that key"),
        (document(format=2), "its format is 2, and this release knows format 1 only; upgrade"),
        (document(format="1"), "its format is '1'"),
        (document(format=True), "its format is True"),
        (document(name="a"), "kept under its name; leave it out"),
        (document(last_run_at=None), "unknown key 'last_run_at'"),
        (document(kwarg={}), "unknown key 'kwarg'; did you mean 'kwargs'?"),
        (document(task=5), "must be the name of a task, not 5"),
        (document(task=""), "must be the name of a task"),
        (document(task="\ud800"), "cannot be written as UTF-8"),
        (document(args="abc"), "its 'args' must be a list, as [1, 2], and is a text"),
        (document(args={}), "its 'args' must be a list, as [1, 2], and is an object"),
        (document(kwargs=[]), "its 'kwargs' must be an object, as {'key': 'value'}, and is a list"),
        (document(options=0), "its 'options' must be an object"),
        (document(options={"headers": 1}), "its 'headers' must be"),
        (document(relative=1), "relative = 1 is neither"),
        (document(enabled="true"), "enabled = 'true' is neither"),
        (document(timezone="Europe/Berln"), "did you mean 'Europe/Berlin'?"),
        (document(start="2026-01-01"), "with the time of day"),
        (document(tags="billing"), "is no list of texts"),
        (document(schedule={"kind": "cronn"}), "did you mean 'cron'?"),
        (document(schedule={"kind": "crontab", "minute": 99}), "schedule.minute = 99"),
        (document(args=[1, {"__type__": "x", "__value__": 1}]), "args[1] has an object of"),
        (document(args=[{"__type__": [], "__value__": 1}]), "known are base64, bytes, date,"),
        (document(kwargs={"x": {"__type__": "uuid", "__value__": 1}}), "kwargs['x'] has"),
        (document(kwargs={"x": {"__type__": "decimal", "__value__": "1,5"}}), "that fits"),
        (document(kwargs={"x": {"__type__": "bytes", "__value__": 1}}), "that fits"),
    ],
    ids=brief,
)
def test_a_text_that_cannot_be_an_entry_is_refused_with_the_way_out(text, words):
    assert words in refusal(text)


def test_a_mark_of_the_byte_order_is_no_matter():
    assert read("a", b"\xef\xbb\xbf" + document().encode())["task"] == "proj.add"


@pytest.mark.parametrize("name", ["", 5, "\ud800", None])
def test_a_name_that_cannot_be_kept_is_refused(name):
    with pytest.raises(EntryError, match="its name"):
        written(name, PLAIN)
    with pytest.raises(EntryError, match="its name"):
        read(name, document())


def test_the_published_schema_knows_every_key_and_no_other():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"].keys() == set(KEYS)


@pytest.mark.parametrize(
    "said",
    [
        {"schedule": {"kind": "crontab", "minute": []}},
        {"schedule": {"kind": "interval"}},
        {"schedule": 0},
        {"format": 2},
        {"jiter": 5},
        {"args": {}},
        {"catch_up": "latst"},
        {"tags": [1]},
    ],
)
def test_the_published_schema_refuses_what_is_refused(said):
    assert refusal(document(**said))
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(PLAIN | said)
