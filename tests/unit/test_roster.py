"""The roster: what changed in the dicts that users change in place."""

import logging

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.roster import SLICE, Roster
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables.interval import Interval


class Seen:
    def __init__(self, **settings):
        self.app = Celery("tests", broker="memory://", set_as_current=False)
        self.put = []
        self.discarded = []
        self.roster = Roster(self.app, Settings(**settings), self.put.append, self.discarded.append)

    def entry(self, name, every=60, **policy):
        return RedlockEntry(name=name, task="t", schedule=every, app=self.app, **policy)

    def names(self):
        names, self.put[:] = [slot.name for slot in self.put], []
        return names


@pytest.fixture
def seen():
    return Seen()


def test_new_entries_are_put_and_gone_ones_discarded(seen):
    entries = {"a": seen.entry("a"), "b": seen.entry("b")}
    seen.roster.compare(entries)
    assert seen.names() == ["a", "b"]
    del entries["a"]
    seen.roster.compare(entries)
    assert seen.discarded == ["a"]
    assert seen.names() == []
    assert seen.roster.entry_of("a") is None


def test_what_did_not_change_is_left_alone(seen):
    entries = {"a": seen.entry("a")}
    seen.roster.compare(entries)
    seen.names()
    entries["a"] = seen.entry("a")
    seen.roster.must_compare_all = True
    seen.roster.compare(entries)
    assert seen.names() == []
    assert seen.roster.entry_of("a") is entries["a"]


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: setattr(entry, "schedule", crontab(minute=3)),
        lambda entry: setattr(entry, "schedule", schedule(5)),
        lambda entry: setattr(entry, "catch_up", "all"),
        lambda entry: setattr(entry.schedule, "run_every", schedule(5).run_every),
    ],
)
def test_a_change_in_place_is_found_within_a_round(seen, change):
    entries = {f"e{number}": seen.entry(f"e{number}") for number in range(3 * SLICE)}
    seen.roster.compare(entries)
    seen.names()
    change(entries["e17"])
    for _ in range(6):
        seen.roster.compare(entries)
    assert seen.names() == ["e17"]


def test_a_bad_entry_is_told_once_by_name_and_the_others_go_on(seen, caplog):
    entries = {"bad": seen.entry("bad", every=-1), "good": seen.entry("good")}
    for _ in range(3):
        seen.roster.must_compare_all = True
        seen.roster.compare(entries)
    assert seen.names() == ["good"]
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "entry 'bad'" in errors[0].message
    assert "positive" in seen.roster.faults["bad"]
    assert seen.roster.entry_of("bad") is None


@pytest.mark.parametrize("name", [None, "", 5, b"a", ("a",), "\udc80"])
def test_a_name_that_redis_or_a_log_cannot_take_is_told_once_and_the_others_go_on(
    seen, caplog, name
):
    entries = {name: seen.entry(name), "good": seen.entry("good")}
    for _ in range(3):
        seen.roster.compare(entries)
    assert seen.names() == ["good"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert f"entry {name!r}: " in caplog.text


def test_a_timetable_whose_fingerprint_redis_cannot_take_stops_no_other(seen, caplog):
    class Mine(Interval):
        fingerprint = 5

    entries = {"bad": seen.entry("bad"), "good": seen.entry("good")}
    entries["bad"].schedule = Mine(SECOND)
    seen.roster.compare(entries)
    assert seen.names() == ["good"]
    assert "entry 'bad': the fingerprint of its timetable must be a text" in caplog.text


def test_what_is_hardly_meant_is_told_once_and_taken_in(seen, caplog):
    entries = {"a": seen.entry("a", options={"task_id": "x", "expire": 1, "mine": 2})}
    for _ in range(3):
        seen.roster.must_compare_all = True
        seen.roster.compare(entries)
    assert seen.names() == ["a"]
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert len(caplog.records) == 2
    assert "entry a: its options fix the 'task_id'" in caplog.text
    assert "'expire'; did you mean 'expires'?" in caplog.text


def test_a_mended_entry_is_taken_in(seen):
    entries = {"a": seen.entry("a", every=-1)}
    seen.roster.compare(entries)
    entries["a"].schedule = schedule(5)
    seen.roster.must_compare_all = True
    seen.roster.compare(entries)
    assert seen.names() == ["a"]
    assert seen.roster.faults == {}


def test_an_entry_that_goes_bad_is_taken_out(seen):
    entries = {"a": seen.entry("a")}
    seen.roster.compare(entries)
    entries["a"].schedule = schedule(0)
    seen.roster.must_compare_all = True
    seen.roster.compare(entries)
    assert seen.discarded == ["a"]


def test_strict_ends_the_start_with_a_bad_entry():
    seen = Seen(strict=True)
    with pytest.raises(EntryError, match="entry 'bad'"):
        seen.roster.compare({"bad": seen.entry("bad", every=0)})


def test_an_entrys_policy_goes_before_the_setting():
    seen = Seen(catch_up="none", catch_up_window=60.0)
    seen.roster.compare({"a": seen.entry("a"), "b": seen.entry("b", catch_up="all")})
    assert [slot.policy.catch_up for slot in seen.put] == ["none", "all"]
    assert {slot.policy.window for slot in seen.put} == {60 * SECOND}


def test_the_cron_starting_deadline_is_the_grace_of_crontabs_only():
    seen = Seen(cron_starting_deadline=30.0)
    entries = {
        "interval": seen.entry("interval"),
        "crontab": seen.entry("crontab", every=crontab()),
        "string": seen.entry("string", every="* * * * *"),
    }
    seen.roster.compare(entries)
    graces = {slot.name: slot.policy.grace for slot in seen.put}
    assert graces == {"interval": None, "crontab": 30 * SECOND, "string": 30 * SECOND}
