"""What is written is read as the same, for every schedule and entry; anything else is an error."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from celery import Celery
from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat.documents import files, schedules
from celery_redlock_beat.documents.entries import KEYS, read, written
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.policies import policies_of
from celery_redlock_beat.timetables import timetable_for
from support.drawn import KINDS, examples
from support.turns import TURNS

APP = Celery("shop", set_as_current=False)
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/entry.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SPECS = st.sampled_from(sorted(KINDS)).flatmap(
    lambda kind: st.sampled_from(TURNS).flatmap(KINDS[kind])
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
WORDS = st.sampled_from(
    ["on", "n", "~", "010", "1e3", "1_0", "12:30", "2026-01-01", "<<", "=", "-"]
)
JSON = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | WORDS, inner, max_size=3),
    max_leaves=8,
)
VALUES = (
    JSON | st.datetimes() | st.dates() | st.decimals(allow_nan=False) | st.uuids() | st.binary()
)
SECONDS = (
    st.integers(1, 10**8) | st.floats(0.001, 10**8) | st.timedeltas(timedelta(1), timedelta(99))
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "timezone": st.sampled_from(["Europe/Berlin", "UTC", "Australia/Lord_Howe"]),
        "catch_up": st.sampled_from(["latest", "all", "none"]),
        "catch_up_window": SECONDS,
        "catch_up_limit": st.integers(1, 10**6),
        "misfire_grace_time": SECONDS,
        "jitter": SECONDS,
        "phase": SECONDS.map(lambda span: -span),
        "start": st.datetimes(datetime(2000, 1, 1), timezones=st.none() | st.just(UTC)).map(
            lambda each: each.replace(fold=0)
        ),
        "end": st.datetimes(datetime(2000, 1, 1)).map(datetime.isoformat),
        "max_runs": st.integers(1, 10**6),
        "run_on_start": st.booleans(),
        "enabled": st.booleans(),
        "expires": st.just("next"),
        "description": TEXTS,
        "tags": st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), max_size=3),
        "relative": st.booleans(),
    },
)
CALLS = st.fixed_dictionaries(
    {"task": st.text(st.characters(codec="utf-8"), min_size=1, max_size=9)},
    optional={
        "args": st.lists(VALUES, max_size=3),
        "kwargs": st.dictionaries(TEXTS, VALUES, max_size=3),
        "options": st.dictionaries(st.sampled_from(["queue", "eta", "x"]), VALUES, max_size=2),
    },
)
FIELDS = st.builds(
    lambda call, policies, pair: {**call, **policies, "schedule": pair[0]}, CALLS, POLICIES, SPECS
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9) | WORDS


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
@examples(60)
def test_a_schedule_that_was_written_has_the_same_timetable(kind, data):
    spec, terms = data.draw(KINDS[kind](data.draw(st.sampled_from(TURNS))))
    document = json.loads(json.dumps(schedules.written(spec)))
    assert timetable_for(schedules.read(document), APP, terms) == timetable_for(spec, APP, terms)
    assert schedules.written(schedules.read(document)) == document


@given(st.timedeltas(timedelta(microseconds=1)))
@examples(300)
def test_an_interval_keeps_every_microsecond(span):
    document = json.loads(json.dumps(schedules.written(span)))
    assert schedules.read(document) == span


@given(FIELDS)
@examples(300)
def test_an_entry_that_was_written_is_the_same(fields):
    text = written("a", fields)
    told = read("a", text.encode())
    entry = RedlockEntry(name="a", app=APP, **told)
    assert policies_of(entry) == policies_of(RedlockEntry(name="a", app=APP, **fields))
    assert told["task"] == fields["task"]
    for key in ("args", "kwargs", "options"):
        assert told.get(key) == (fields.get(key) or None)
    assert written("a", told) == text
    assert "\n" not in text
    VALIDATOR.validate(json.loads(text))


@pytest.mark.parametrize("kind", ["json", "yaml"])
@given(entries=st.dictionaries(NAMES, FIELDS, max_size=3))
@examples(60)
def test_a_file_that_was_written_has_the_same_entries(kind, entries):
    documents = {name: written(name, fields) for name, fields in entries.items()}
    text = files.dump(documents, kind)
    assert files.load(text, kind) == (documents, {})
    assert files.from_beat_schedule(entries) == (documents, {})


@given(st.text() | st.binary() | JSON.map(json.dumps))
@examples(300)
def test_any_other_text_is_an_error_that_names_the_entry(text):
    with pytest.raises(EntryError, match=r"^entry 'a': "):
        read("a", text)


def outcome(act, *given):
    """Return what came of it, and the words of its error."""
    try:
        return act(*given), ""
    except ConfigurationError as error:
        return None, str(error)


@given(st.dictionaries(st.sampled_from(KEYS), JSON), JSON)
@examples(300)
def test_an_entry_of_any_data_is_one_that_can_be_written_or_an_error(said, schedule):
    fields, words = outcome(read, "a", json.dumps({"task": "t", "schedule": 5, **said}))
    assert words or read("a", written("a", fields)).keys() <= fields.keys()
    words += outcome(schedules.read, schedule)[1]
    assert "<class" not in words
    assert " at 0x" not in words


FIELD_TEXT = st.text("0123456789*/-,abcdefnorstuw ", max_size=9) | st.text(max_size=4)


@given(
    st.sampled_from(["minute", "hour", "day_of_week", "day_of_month", "month_of_year"]),
    FIELD_TEXT | st.integers() | st.lists(st.integers(-5, 70), max_size=4),
)
@examples(500)
def test_any_field_of_a_crontab_is_read_or_told_by_its_name(field, value):
    spec, words = outcome(schedules.read, {"kind": "crontab", field: value})
    assert field in words or schedules.read(schedules.written(spec)) == spec


@given(st.text() | st.text("{}[]:-,&*!|>'\"#%@ \nabc01~<"))
@examples(500)
def test_any_text_of_yaml_is_read_or_refused(text):
    loaded, words = outcome(files.load, text, "yaml")
    assert words or (not loaded.documents and all(loaded.problems.values()))
