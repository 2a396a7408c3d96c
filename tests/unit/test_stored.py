"""Stored entries as a node has them: taken in, left out by name, hidden behind the code's."""

import json
import logging

import pytest
from celery import Celery

from celery_redlock_beat.documents.entries import written
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.ledger.steering import Change, Kind
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.stored import StoredEntries

GOOD = {"task": "tasks.ping", "schedule": 60.0}


class Seen:
    """Stored entries, and what they did to a queue."""

    def __init__(self):
        self.app = Celery("tests", broker="memory://", set_as_current=False)
        self.code = set()
        self.queue = {}
        self.forgotten = []
        self.revision = 0
        self.stored = StoredEntries(
            self.app,
            Settings(),
            self.make,
            self.code.__contains__,
            lambda slot: self.queue.update({slot.name: slot}),
            lambda name: self.queue.pop(name, None),
            self.forgotten.append,
        )

    def make(self, name, fields):
        return RedlockEntry(name=name, app=self.app, **fields)

    def change(self, name, text):
        self.revision += 1
        if isinstance(text, dict):
            text = written(name, text).encode()
        stored = None if text is None else b"%d %s" % (self.revision, text)
        return Change(Kind.ENTRY, name, self.revision, stored)

    def take(self, name, text):
        change = self.change(name, text)
        self.stored.take(change)
        return change

    def entry(self, name):
        return self.stored.roster.entry_of(name)

    @property
    def faults(self):
        return self.stored.roster.faults


@pytest.fixture
def seen():
    return Seen()


def test_what_is_stored_is_put_into_the_queue_under_its_revision(seen):
    seen.take("a", GOOD)
    seen.take("b", {**GOOD, "args": [1], "catch_up": "all"})
    assert {name: slot.revision for name, slot in seen.queue.items()} == {"a": 1, "b": 2}
    assert list(seen.entry("b").args) == [1]
    assert seen.queue["b"].policy.catch_up == "all"


def test_what_is_changed_is_another_entry_of_a_higher_revision(seen):
    seen.take("a", GOOD)
    before = seen.queue["a"]
    seen.take("a", {**GOOD, "args": [2]})
    assert seen.queue["a"].revision == 2
    assert seen.queue["a"].timetable == before.timetable
    assert list(seen.entry("a").args) == [2]


def test_what_is_removed_leaves_the_queue_and_is_forgotten(seen):
    seen.take("a", GOOD)
    seen.take("a", None)
    assert seen.queue == {}
    assert seen.entry("a") is None
    assert seen.forgotten == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no json",
        b"\xff",
        b"null",
        b'{"task": "t"}',
        b'{"task": "t", "schedule": {"kind": "lunar"}}',
        b'{"task": "t", "schedule": "99 * * * *"}',
        b'{"task": "t", "schedule": 60, "colour": "red"}',
        b'{"task": "t", "schedule": 60, "format": 99}',
        b'{"task": "t", "schedule": 60, "catch_up": "most"}',
    ],
)
def test_a_bad_one_is_left_out_by_name_and_comes_back_when_it_is_mended(seen, caplog, text):
    seen.take("other", GOOD)
    seen.take("a", text)
    assert list(seen.queue) == ["other"]
    assert list(seen.faults) == ["a"]
    assert caplog.text.count("Left out: entry 'a': ") == 1
    seen.take("a", GOOD)
    assert list(seen.queue) == ["other", "a"]
    assert seen.faults == {}


def test_one_that_becomes_bad_is_sent_no_more(seen):
    seen.take("a", GOOD)
    seen.take("a", b"no json")
    assert seen.queue == {}
    assert seen.entry("a") is None
    seen.take("a", None)
    assert seen.faults == {}


def test_a_name_that_is_no_utf_8_is_left_out(seen):
    name = b"\xff".decode("utf-8", "surrogateescape")
    seen.take(name, json.dumps({"task": "t", "schedule": 60}).encode())
    assert seen.queue == {}
    assert "UTF-8" in seen.faults[name]


def test_the_codes_entry_of_a_name_runs_and_the_stored_one_is_told(seen, caplog):
    seen.code.add("a")
    seen.take("a", GOOD)
    seen.take("a", {**GOOD, "args": [1]})
    assert seen.queue == {}
    assert seen.entry("a") is None
    assert caplog.text.count("Left out: entry 'a': it is stored, and the code has an entry") == 1


def test_a_stored_entry_comes_back_as_it_is_by_then_when_the_codes_goes(seen):
    seen.code.add("a")
    seen.take("a", GOOD)
    seen.take("a", {**GOOD, "args": [1]})
    seen.code.remove("a")
    seen.stored.come_back("a")
    assert seen.queue["a"].revision == 2
    assert list(seen.entry("a").args) == [1]
    assert seen.faults == {}


def test_a_stored_entry_makes_way_when_the_code_gets_one_of_its_name(seen):
    change = seen.take("a", GOOD)
    seen.code.add("a")
    seen.stored.make_way("a", {"a": change}.get)
    assert seen.queue == {}
    assert list(seen.faults) == ["a"]


def test_one_that_is_removed_behind_the_codes_does_not_come_back(seen):
    seen.code.add("a")
    seen.take("a", GOOD)
    seen.take("a", None)
    seen.code.remove("a")
    seen.stored.come_back("a")
    assert seen.queue == {}
    assert seen.faults == {}
    assert seen.forgotten == [], "the code's entry goes on"


def test_a_disabled_one_is_not_sent(seen, caplog):
    caplog.set_level(logging.ERROR)
    seen.take("a", {**GOOD, "enabled": False})
    assert not seen.queue["a"].policy.enabled
    assert seen.entry("a") is None
    assert caplog.records == []
