"""The roster: what changed in the dicts that users change in place."""

import logging

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import EntryError
from celery_redlock_beat.lateness import Policy
from celery_redlock_beat.roster import SLICE, Roster
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import CeleryCrontab, RealCrontab
from celery_redlock_beat.timetables.interval import Interval


class Known:
    """A schedule of a user's own."""

    def is_due(self, _last_run_at):
        return False, 5


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
        lambda entry: setattr(entry, "jitter", 5),
        lambda entry: setattr(entry, "enabled", False),
        lambda entry: setattr(entry, "start", "2026-01-01T00:00"),
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


def test_what_an_entry_says_goes_before_the_settings():
    seen = Seen(
        catch_up="none",
        catch_up_window=60.0,
        catch_up_limit=7,
        misfire_grace_time=5.0,
        jitter=3.0,
        expires="next",
        dst="real",
    )
    own = {
        "catch_up": "all",
        "catch_up_window": 90,
        "catch_up_limit": 8,
        "misfire_grace_time": 6,
        "jitter": 4,
        "dst": "celery",
        "max_runs": 2,
        "run_on_start": True,
    }
    entries = {
        "said": seen.entry("said", every=crontab(), **own),
        "not said": seen.entry("not said", every=crontab()),
    }
    seen.roster.compare(entries)
    said, not_said = seen.put
    tolerance = said.policy.tolerance
    assert said.policy == Policy(
        "all",
        90 * SECOND,
        8,
        6 * SECOND,
        tolerance,
        4 * SECOND,
        expires=True,
        max_runs=2,
        run_on_start=True,
    )
    assert not_said.policy == Policy(
        "none", 60 * SECOND, 7, 5 * SECOND, tolerance, 3 * SECOND, expires=True
    )
    assert isinstance(said.timetable, CeleryCrontab)
    assert isinstance(not_said.timetable, RealCrontab)


def test_the_grace_of_an_entry_goes_before_the_starting_deadline_and_that_before_the_setting():
    seen = Seen(cron_starting_deadline=30.0, misfire_grace_time=20.0)
    entries = {
        "interval": seen.entry("interval"),
        "crontab": seen.entry("crontab", every=crontab()),
        "own": seen.entry("own", every=crontab(), misfire_grace_time=10),
    }
    seen.roster.compare(entries)
    graces = {slot.name: slot.policy.grace for slot in seen.put}
    assert graces == {"interval": 20 * SECOND, "crontab": 30 * SECOND, "own": 10 * SECOND}


def test_a_disabled_entry_is_put_and_cannot_be_sent(seen):
    entries = {"a": seen.entry("a", enabled=False), "b": seen.entry("b")}
    seen.roster.compare(entries)
    assert [(slot.name, slot.policy.enabled) for slot in seen.put] == [("a", False), ("b", True)]
    assert seen.roster.entry_of("a") is None
    assert seen.roster.entry_of("b") is entries["b"]
    assert seen.roster.faults == {}
    entries["a"].enabled = True
    seen.roster.compare(entries)
    assert seen.roster.entry_of("a") is entries["a"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"every": crontab(), "phase": 5}, "phase shifts intervals"),
        ({"dst": "real"}, "dst = 'real' is about Celery's crontab"),
        (
            {"start": "2026-01-02T00:00", "end": "2026-01-01T00:00"},
            "never fires",
        ),
        ({"run_on_start": True, "start": "2026-01-02T00:00"}, "'run_on_start' sends once"),
        ({"expires": "next", "options": {"expires": 5}}, "it has 'expires' twice"),
        ({"every": Known(), "expires": "next"}, "'expires' needs a schedule that tells its next"),
        ({"every": Known(), "jitter": 5}, "'jitter' needs a schedule that tells its next instant"),
        ({"every": Known(), "phase": 5}, "phase cannot be used with Known"),
    ],
)
def test_policies_that_cannot_be_together_are_refused_by_name(seen, caplog, fields, problem):
    entries = {"bad": seen.entry("bad", **fields), "good": seen.entry("good")}
    seen.roster.compare(entries)
    assert seen.names() == ["good"]
    assert "entry 'bad': " in caplog.text
    assert problem in seen.roster.faults["bad"]


def test_the_settings_of_all_entries_do_not_concern_opaque_ones():
    seen = Seen(jitter=5.0, expires="next")
    seen.roster.compare({"a": seen.entry("a", every=Known())})
    assert seen.names() == ["a"]
    assert seen.roster.faults == {}


def test_an_opaque_schedule_stays_what_it_is_until_its_terms_change(seen):
    entries = {"a": seen.entry("a", every=Known())}
    seen.roster.compare(entries)
    seen.roster.must_compare_all = True
    seen.roster.compare(entries)
    assert seen.names() == ["a"]
    entries["a"].end = "2026-01-01T00:00"
    seen.roster.compare(entries)
    assert seen.names() == ["a"]


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"every": "0 9 13 * FRI"}, "is a cron string, and due on days that are in either"),
        (
            {"every": crontab("0", "9", day_of_month=13, day_of_week="fri")},
            "is due only on days that are in both",
        ),
        ({"catch_up": "latest", "catch_up_window": 5}, "'catch_up_window' has no effect unless"),
        ({"catch_up_limit": 5}, "'catch_up_limit' has no effect unless"),
        ({"misfire_grace_time": 0.5}, "what is 0.5 s late is not sent"),
        ({"catch_up": "all", "catch_up_window": 1e-7}, "what is 0 s late is not sent"),
        ({"expires": "next", "options": {"countdown": 5}}, "may be before its 'countdown' or"),
    ],
)
def test_what_may_not_be_meant_is_a_warning_once(seen, caplog, fields, warning):
    entries = {"a": seen.entry("a", **fields)}
    for _ in range(3):
        seen.roster.must_compare_all = True
        seen.roster.compare(entries)
    assert seen.names() == ["a"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert warning in caplog.text


def test_a_schedule_that_cannot_even_be_shown_stops_no_other(seen, caplog):
    class Shy(Known):
        def __repr__(self):
            raise RuntimeError("not shown")

    entries = {"shy": seen.entry("shy"), "good": seen.entry("good")}
    entries["shy"].schedule = Shy()
    seen.roster.compare(entries)
    assert "good" in seen.names()
    assert caplog.records == []
