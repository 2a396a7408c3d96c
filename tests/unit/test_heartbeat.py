"""What a node tells of itself, as whoever reads the ledger gets it."""

from __future__ import annotations

import json
import os

import pytest

from celery_redlock_beat import __version__
from celery_redlock_beat.heartbeat import About, Heartbeat, Longest, fingerprint_of
from celery_redlock_beat.ticks import SECOND

ABOUT = About("1.2.3", "host", 7, started=1_800_000_000 * SECOND, delivery="publish", poll=0.5)
ENTRIES = [("a", "every 60", "shop.a"), ("b", "every 30", "shop.b")]
NOW = 500 * SECOND


class Sources:
    """What the heartbeat asks, and how often it did."""

    def __init__(self):
        self.entries, self.faults, self.offset = list(ENTRIES), set(), None
        self.asked = 0

    def all_entries(self):
        self.asked += 1
        return iter(self.entries)


@pytest.fixture
def sources():
    return Sources()


@pytest.fixture
def heartbeat(sources):
    return Heartbeat(ABOUT, sources.all_entries, lambda: sources.faults, lambda: sources.offset)


def record(heartbeat, now=NOW):
    return json.loads(heartbeat.told(now))


def test_it_tells_who_the_node_is_and_how_it_stands(heartbeat, sources):
    sources.offset = -SECOND // 4
    heartbeat.passed(SECOND // 2)
    heartbeat.sent(SECOND // 8, NOW)
    assert record(heartbeat) == {
        "version": "1.2.3",
        "host": "host",
        "pid": 7,
        "started": 1_800_000_000_000_000,
        "delivery": "publish",
        "poll": 0.5,
        "offset": -0.25,
        "schedule": fingerprint_of(ENTRIES),
        "entries": 2,
        "bad": 0,
        "bad_names": [],
        "lateness": 0.125,
        "pass": 0.5,
        "ready": True,
        "problems": [],
        "left": False,
    }


def test_it_tells_at_most_once_a_second(heartbeat):
    assert heartbeat.told(NOW)
    assert heartbeat.told(NOW + SECOND - 1) == ""
    assert heartbeat.told(NOW + SECOND)


def test_an_offset_that_is_not_known_yet_is_null(heartbeat):
    assert record(heartbeat)["offset"] is None


class TestSchedule:
    def test_it_is_looked_at_only_when_it_changed(self, heartbeat, sources):
        for second in range(5):
            record(heartbeat, NOW + second * SECOND)
        assert sources.asked == 1
        sources.entries.pop()
        heartbeat.changed()
        assert record(heartbeat, NOW + 9 * SECOND)["entries"] == 1
        assert sources.asked == 2

    def test_its_fingerprint_does_not_depend_on_the_order(self, heartbeat, sources):
        before = record(heartbeat)["schedule"]
        sources.entries.reverse()
        heartbeat.changed()
        assert record(heartbeat, NOW + SECOND)["schedule"] == before

    @pytest.mark.parametrize("place", range(3))
    def test_a_name_a_time_or_a_task_that_differs_makes_another_one(self, place):
        other = list(ENTRIES[0])
        other[place] += "x"
        assert fingerprint_of([tuple(other), ENTRIES[1]]) != fingerprint_of(ENTRIES)

    def test_what_belongs_to_one_entry_is_not_taken_for_the_next_one(self):
        assert fingerprint_of([("a", "b", "c")]) != fingerprint_of([("ab", "", "c")])

    def test_a_name_that_is_no_proper_text_has_one_as_well(self):
        assert fingerprint_of([("\udc80", "", "")]) != fingerprint_of([("\udc81", "", "")])

    def test_a_schedule_that_fails_is_told_once_and_keeps_nothing_back(self, sources, caplog):
        def broken():
            raise RuntimeError("no fingerprint today")

        heartbeat = Heartbeat(ABOUT, broken, lambda: ["x"], lambda: None)
        for second in range(3):
            told = record(heartbeat, NOW + second * SECOND)
        assert (told["schedule"], told["entries"], told["bad"]) == ("", None, 1)
        assert len(caplog.records) == 1
        assert "no fingerprint today" in caplog.text


class TestReady:
    def test_a_node_with_a_problem_is_not_ready(self, heartbeat):
        heartbeat.problem("ledger", "the ledger is away")
        heartbeat.problem("broker", "the broker cannot be reached")
        told = record(heartbeat)
        assert not told["ready"]
        assert told["problems"] == ["the ledger is away", "the broker cannot be reached"]

    def test_a_problem_that_changes_is_told_anew_and_ends(self, heartbeat):
        heartbeat.problem("ledger", "no route")
        heartbeat.problem("ledger", "wrong password")
        assert heartbeat.problems == ["wrong password"]
        heartbeat.problem("ledger")
        heartbeat.problem("ledger")
        assert heartbeat.problems == []
        assert record(heartbeat)["ready"]

    def test_a_node_that_leaves_entries_out_is_not_ready(self, heartbeat, sources):
        sources.faults = {"x", "y"}
        assert heartbeat.problems == ["left out as bad: 'x', 'y'"]
        told = record(heartbeat)
        assert (told["ready"], told["bad"], told["bad_names"]) == (False, 2, ["x", "y"])
        sources.faults = set()
        heartbeat.changed()
        assert heartbeat.problems == []

    def test_a_bad_entry_may_have_a_name_that_is_no_text(self, heartbeat, sources):
        sources.faults = {None, 7, "x"}
        assert record(heartbeat)["bad_names"] == ["7", "None", "x"]

    def test_the_first_bad_names_stand_for_all(self, heartbeat, sources):
        sources.faults = {f"entry {number:03}" for number in range(100)}
        told = record(heartbeat)
        assert told["bad"] == 100
        assert told["bad_names"] == [f"entry {number:03}" for number in range(20)]
        assert told["problems"] == [
            "left out as bad: 'entry 000', 'entry 001', 'entry 002' and 97 more"
        ]

    def test_a_node_that_leaves_says_so_at_any_time(self, heartbeat):
        record(heartbeat)
        told = json.loads(heartbeat.last_words(NOW))
        assert (told["left"], told["ready"]) == (True, False)


class TestSize:
    @pytest.mark.parametrize("name", ["x" * 500, "ü" * 500, "漢" * 500, "\udc80" * 500, '"' * 500])
    def test_names_and_problems_however_long_do_not_make_it_large(self, heartbeat, sources, name):
        sources.faults = {f"{number:02}{name}" for number in range(50)}
        for number in range(20):
            heartbeat.problem(f"kind {number}", name)
        text = heartbeat.told(NOW)
        assert len(text.encode()) <= 2000
        assert json.loads(text)["bad"] == 50
        assert not json.loads(text)["ready"]

    def test_the_host_and_the_delivery_alone_fit(self, sources):
        about = About("1.2.3", "h" * 255, 2**31, 2**53, "d" * 100, 0.5)
        heartbeat = Heartbeat(about, sources.all_entries, set, lambda: 1)
        assert len(heartbeat.told(NOW)) < 1000


class TestLateness:
    def test_it_is_the_longest_of_the_last_minute(self):
        longest = Longest()
        longest.add(5 * SECOND, 100 * SECOND)
        longest.add(2 * SECOND, 130 * SECOND)
        assert longest.until(159 * SECOND) == 5 * SECOND
        assert longest.until(160 * SECOND) == 2 * SECOND
        assert longest.until(190 * SECOND) == 0

    def test_however_many_are_sent_it_keeps_one_for_each_second(self):
        longest = Longest()
        for number in range(100_000):
            longest.add(100_000 - number, number * 10_000)
        assert longest.until(1000 * SECOND) == 5900
        assert len(longest._seconds) <= 60

    def test_one_that_was_early_by_the_clock_is_no_lateness_of_others(self):
        longest = Longest()
        longest.add(-3, 0)
        assert longest.until(0) == -3


def test_a_node_knows_its_own_process():
    about = About.this_process(started=1, delivery="enqueue", poll=0.5)
    assert (about.pid, about.version) == (os.getpid(), __version__)
    assert about.host
