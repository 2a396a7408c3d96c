"""The scheduler as Celery, its users and its plugins see it, on a ledger in memory."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import celery
import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Service
from celery.schedules import crontab, schedule
from celery.signals import after_task_publish

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.errors import EntryError, SettingError
from celery_redlock_beat.ledger.memory import MemoryLedger
from celery_redlock_beat.ticks import to_micros

START = to_micros(datetime(2030, 1, 1, 0, 0, 10, tzinfo=UTC))
PASSES_IN_FIVE_SECONDS = 10


class Clock:
    """The ledger's clock: it runs, from a moment that tests choose, and can be set forward."""

    def __init__(self):
        self.shift = START - time.monotonic_ns() // 1000

    def __call__(self):
        return time.monotonic_ns() // 1000 + self.shift

    def forward(self, **span):
        self.shift += timedelta(**span) // timedelta(microseconds=1)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("celery_redlock_beat.assembly.wall_micros", clock)
    return clock


def new_app(**settings):
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update({"redlock_beat_url": "memory://", "result_expires": None, **settings})
    return app


@pytest.fixture
def app():
    return new_app()


@pytest.fixture
def published():
    """Collect the entries whose messages reached the broker."""
    entries = []

    def note(headers, **_):
        entries.append(headers["periodic_task_name"])

    after_task_publish.connect(note)
    yield entries
    after_task_publish.disconnect(note)


@pytest.fixture
def passes(clock):
    """Run passes as if time had gone on; the second one knows what the ledger's clock told."""

    def run(scheduler, **span):
        scheduler.tick()
        scheduler.tick()
        clock.forward(**span)
        scheduler.tick()
        scheduler.tick()

    return run


def hourly(task="t", **more):
    return {"task": task, "schedule": 3600, **more}


def timetable_of(scheduler, name):
    slot = scheduler.node.dispatcher.due.get(name)
    return slot and slot.timetable


class TestStart:
    @pytest.fixture(autouse=True)
    def no_network(self, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("the network was touched")

        for name in ("connect", "connect_ex"):
            monkeypatch.setattr(socket.socket, name, refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)

    @pytest.mark.parametrize("lazy", [True, False])
    def test_creating_it_and_describing_it_touches_no_network(self, lazy):
        app = Celery("shop", broker="redis://:s3cret@ledger:7777/0", set_as_current=False)
        scheduler = RedlockScheduler(app, lazy=lazy)
        assert "ledger:7777" in scheduler.info
        assert "s3cret" not in scheduler.info + repr(scheduler) + repr(scheduler.settings)

    def test_the_banner_of_an_app_without_a_redis_names_the_setting(self):
        app = Celery("shop", broker="memory://", set_as_current=False)
        assert "redlock_beat_url is not set" in RedlockScheduler(app, lazy=True).info
        with pytest.raises(SettingError, match="redlock_beat_url"):
            RedlockScheduler(app)

    @pytest.mark.parametrize("lazy", [True, False])
    @pytest.mark.parametrize(
        ("url", "told"),
        [
            ("redis://:s3cret/x@host/0", "cannot be read as a URL"),
            ("rabbit://h", "such as redis://"),
        ],
    )
    def test_a_broker_url_that_nobody_can_read_is_refused_before_the_banner(self, url, told, lazy):
        app = Celery("shop", broker=url, set_as_current=False)
        with pytest.raises(SettingError, match=f"broker_url .*{told}") as caught:
            RedlockScheduler(app, lazy=lazy)
        assert "s3cret" not in str(caught.value)
        assert caught.value.__suppress_context__

    @pytest.mark.parametrize("zone", ["Europe/Berlim", 5, "/etc/passwd"])
    def test_an_unknown_time_zone_ends_the_start(self, zone):
        with pytest.raises(SettingError, match=f"setting timezone = {zone!r} .* IANA name"):
            RedlockScheduler(new_app(timezone=zone))

    @pytest.mark.parametrize("entries", [None, "x", [{"task": "t", "schedule": 1}], 5])
    def test_a_beat_schedule_that_is_no_dict_ends_the_start(self, entries):
        with pytest.raises(SettingError, match=r"beat_schedule must be a dict .* is of type"):
            RedlockScheduler(new_app(beat_schedule=entries))

    def test_the_dict_that_is_passed_in_is_the_schedule(self, app):
        given = {}
        scheduler = RedlockScheduler(app, schedule=given)
        assert scheduler.data is given
        assert scheduler.schedule is given

    def test_a_schedule_file_is_ignored_with_a_word(self, app, caplog):
        RedlockScheduler(app, schedule_filename="/var/run/mine")
        assert "schedule file /var/run/mine is ignored" in caplog.text

    def test_the_name_that_celery_gives_by_itself_is_passed_over_in_silence(self, app, caplog):
        Service(app, scheduler_cls=RedlockScheduler).get_scheduler()
        assert "ignored" not in caplog.text

    @pytest.mark.skipif(celery.__version__ < "5.6", reason="Celery 5.5 mixes up the arguments")
    def test_a_service_with_it_can_be_pickled(self, app):
        service = pickle.loads(pickle.dumps(Service(app, scheduler_cls=RedlockScheduler)))
        assert isinstance(service.scheduler, RedlockScheduler)

    def test_celerys_own_entry_is_there_where_results_do_not_expire_by_themselves(self):
        app = new_app(result_expires=30, result_backend="cache+memory://")
        app.backend.supports_autoexpire = False
        assert "celery.backend_cleanup" in RedlockScheduler(app).schedule


class TestChanges:
    def test_an_entry_that_is_added_is_seen_at_the_next_pass(self, app, passes, published):
        scheduler = RedlockScheduler(app)
        scheduler.tick()
        scheduler.add(name="new", **hourly())
        passes(scheduler, hours=1)
        assert published == ["new"]

    def test_update_from_dict_is_seen_at_the_next_pass(self, app, passes, published):
        scheduler = RedlockScheduler(app)
        scheduler.tick()
        scheduler.update_from_dict({"new": hourly()})
        passes(scheduler, hours=1)
        assert published == ["new"]

    def test_another_dict_is_seen_at_the_next_pass(self, passes, published):
        scheduler = RedlockScheduler(new_app(beat_schedule={"old": hourly()}))
        scheduler.tick()
        entry = RedlockEntry(name="new", app=scheduler.app, **hourly())
        scheduler.schedule = {"new": entry}
        passes(scheduler, hours=1)
        assert published == ["new"]
        assert scheduler.schedule == {"new": entry}

    def test_add_periodic_task_is_seen_at_the_next_pass(self, app, passes, published):
        scheduler = RedlockScheduler(app)
        scheduler.tick()
        app.finalize()
        app.add_periodic_task(3600, app.signature("t"), name="new")
        passes(scheduler, hours=1)
        assert published == ["new"]

    def test_what_is_taken_out_of_beat_schedule_is_not_sent(self, passes, published):
        app = new_app(beat_schedule={"out": hourly(), "stays": hourly()})
        scheduler = RedlockScheduler(app)
        scheduler.tick()
        del app.conf.beat_schedule["out"]
        passes(scheduler, hours=1)
        assert published == ["stays"]

    @pytest.mark.parametrize("entries", [None, [1]])
    def test_a_beat_schedule_that_is_no_dict_any_more_is_told_once_and_stops_nothing(
        self, passes, published, caplog, entries
    ):
        app = new_app(beat_schedule={"a": hourly()})
        scheduler = RedlockScheduler(app)
        app.conf.beat_schedule = entries
        passes(scheduler, hours=1)
        assert published == ["a"]
        assert caplog.text.count("The schedule stays as it was: beat_schedule must be") == 1
        app.conf.beat_schedule = {"b": hourly()}
        passes(scheduler, hours=1)
        assert published == ["a", "b"]

    def test_a_changed_definition_in_beat_schedule_is_taken_over(self, passes, clock):
        app = new_app(beat_schedule={"a": hourly()})
        scheduler = RedlockScheduler(app)
        entry = scheduler.schedule["a"]
        scheduler.tick()
        app.conf.beat_schedule["a"] = {"task": "other", "schedule": 60}
        scheduler.tick()
        assert scheduler.schedule["a"] is entry
        assert entry.task == "other"
        assert timetable_of(scheduler, "a").period == 60_000_000

    def test_changes_in_place_among_10000_entries_are_seen_within_5_seconds(self, app, clock):
        entries = {
            f"e{number}": RedlockEntry(name=f"e{number}", app=app, **hourly())
            for number in range(10_000)
        }
        scheduler = RedlockScheduler(app, schedule=entries)
        for _ in range(4):
            scheduler.tick()
        changed = [entries[f"e{number}"] for number in (0, 2999, 3000, 9999)]
        for entry in changed:
            entry.schedule = schedule(60)
        for _ in range(PASSES_IN_FIVE_SECONDS):
            scheduler.tick()
        assert {timetable_of(scheduler, entry.name).period for entry in changed} == {60_000_000}

    def test_everything_is_compared_when_a_plugin_throws_the_heap_away(self, app, clock):
        entries = {
            f"e{number}": RedlockEntry(name=f"e{number}", app=app, **hourly())
            for number in range(5000)
        }
        scheduler = RedlockScheduler(app, schedule=entries)
        scheduler.tick()
        for entry in entries.values():
            entry.schedule = schedule(60)
        scheduler._heap = None
        scheduler.tick()
        assert {timetable_of(scheduler, name).period for name in entries} == {60_000_000}

    def test_what_is_equal_only_to_itself_is_not_registered_anew_in_every_pass(
        self, app, clock, monkeypatch
    ):
        class Mine(schedule):
            pass

        registered = []
        register = MemoryLedger.register

        def note(ledger, registrations):
            registered.extend(registration.entry for registration in registrations)
            return register(ledger, registrations)

        scheduler = RedlockScheduler(app)
        scheduler.add(name="mine", task="t", schedule=Mine(3600))
        scheduler.tick()
        scheduler.tick()
        monkeypatch.setattr(MemoryLedger, "register", note)
        for _ in range(5):
            scheduler.tick()
        assert registered == []

    def test_a_subclass_with_another_source_does_not_get_beat_schedule(self, passes, published):
        class FromElsewhere(RedlockScheduler):
            def setup_schedule(self):
                self.add(name="elsewhere", **hourly())

        scheduler = FromElsewhere(new_app(beat_schedule={"configured": hourly()}))
        passes(scheduler, hours=1)
        assert published == ["elsewhere"]


@pytest.mark.parametrize(
    "when", ["0 * * * *", 3600, 3600.0, timedelta(hours=1), crontab(minute=0), schedule(3600)]
)
def test_a_schedule_is_whatever_celery_takes_or_a_cron_string(passes, published, when):
    app = new_app(beat_schedule={"a": {"task": "t", "schedule": when}})
    passes(RedlockScheduler(app), hours=1)
    assert published == ["a"]


BAD = {
    "misspelt": ({"task": "t", "shedule": 1}, "did you mean 'schedule'?"),
    "without task": ({"schedule": 3600}, "it has no 'task'"),
    "without schedule": ({"task": "t"}, "it has no 'schedule'"),
    "never": ({"task": "t", "schedule": -1}, "an interval must be positive"),
    "not cron": ({"task": "t", "schedule": "every day"}, ""),
    "no mapping": (["t", 3600], "it must be a mapping"),
}


@pytest.mark.parametrize(("fields", "problem"), BAD.values(), ids=BAD)
class TestBadEntries:
    def test_one_is_left_out_by_name_and_the_others_are_sent(
        self, passes, published, caplog, fields, problem
    ):
        app = new_app(beat_schedule={"the bad one": fields, "good": hourly()})
        passes(RedlockScheduler(app), hours=1)
        assert published == ["good"]
        errors = [each.message for each in caplog.records if each.levelno == logging.ERROR]
        assert len(errors) == 1
        assert errors[0].startswith("Left out: entry 'the bad one': ")
        assert problem in errors[0]

    def test_with_strict_settings_one_ends_the_start(self, fields, problem):
        app = new_app(beat_schedule={"the bad one": fields}, redlock_beat_strict=True)
        with pytest.raises(EntryError, match="entry 'the bad one': "):
            RedlockScheduler(app)

    def test_with_strict_settings_one_that_comes_later_stops_nothing(
        self, passes, published, caplog, fields, problem
    ):
        app = new_app(beat_schedule={"good": hourly()}, redlock_beat_strict=True)
        scheduler = RedlockScheduler(app)
        app.conf.beat_schedule["the bad one"] = fields
        passes(scheduler, hours=1)
        assert published == ["good"]
        assert "Left out: entry 'the bad one': " in caplog.text

    def test_one_that_is_removed_is_no_longer_a_fault(self, clock, fields, problem):
        app = new_app(beat_schedule={"the bad one": fields, "good": hourly()})
        scheduler = RedlockScheduler(app)
        assert list(scheduler.roster.faults) == ["the bad one"]
        del app.conf.beat_schedule["the bad one"]
        scheduler.tick()
        assert scheduler.roster.faults == {}


def test_an_entry_without_a_task_is_left_out_until_it_has_one(app, passes, published, caplog):
    scheduler = RedlockScheduler(app)
    entry = scheduler.add(name="a", schedule=3600)
    passes(scheduler, hours=1)
    assert published == []
    assert "entry 'a': it has no 'task'" in caplog.text
    entry.task = "t"
    passes(scheduler, hours=1)
    assert published == ["a"]


@pytest.mark.parametrize("thing", ["bar", {"task": "t", "schedule": 1}, None, 5])
def test_a_thing_in_the_schedule_that_is_no_entry_stops_nothing(app, passes, published, thing):
    scheduler = RedlockScheduler(app, schedule={"foo": thing})
    scheduler.add(name="good", **hourly())
    passes(scheduler, hours=1)
    assert published == ["good"]


class TestNames:
    PROGRAM = """
from celery import Celery
from celery_redlock_beat import RedlockScheduler
app = Celery("shop", broker="memory://")
app.conf.update(redlock_beat_url="memory://", result_expires=None)
app.add_periodic_task(3600, app.signature("t", ({"pear", "apple", "fig", "plum"},)))
app.add_periodic_task(3600, app.signature("t", (), {"of": frozenset({"a", "b", "c", "d"})}))
app.add_periodic_task(3600, app.signature("t", (1, "x")))
app.finalize()
print(*sorted(RedlockScheduler(app).schedule), sep="\\n")
"""

    def names(self, seed):
        return subprocess.run(
            [sys.executable, "-c", self.PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def test_unnamed_entries_have_the_same_names_in_every_process(self):
        names = self.names("1")
        assert len(names.splitlines()) == 3
        assert {self.names(seed) for seed in "234"} == {names}

    def test_an_unnamed_entry_that_no_other_process_would_name_so_is_refused(self, app, caplog):
        app.add_periodic_task(3600, app.signature("t", (object(),)))
        app.finalize()
        scheduler = RedlockScheduler(app)
        assert scheduler.schedule == {}
        assert "name it: add_periodic_task(..., name='...')" in caplog.text


class TestTick:
    @pytest.mark.parametrize("broken", ["get_schedule", "_merge_conf", "_assemble"])
    def test_no_error_leaves_it(self, app, monkeypatch, caplog, broken):
        scheduler = RedlockScheduler(app)

        def fail(*args):
            raise RuntimeError("out of order")

        if broken == "get_schedule":
            monkeypatch.setattr(RedlockScheduler, "schedule", property(fail))
        else:
            monkeypatch.setattr(scheduler, broken, fail)
        assert 0 <= scheduler.tick() <= 0.5
        assert "out of order" in caplog.text

    def test_a_failure_that_lasts_is_not_logged_in_each_pass(self, app, monkeypatch, caplog):
        def fail(*args):
            raise RuntimeError(f"out of order at {time.monotonic()}")

        scheduler = RedlockScheduler(app)
        monkeypatch.setattr(scheduler, "_assemble", fail)
        for _ in range(5):
            scheduler.tick()
        assert caplog.text.count("This pass failed") == 1
        monkeypatch.setattr("celery_redlock_beat.complaints.SILENCE", 0)
        scheduler._complaints._silent_until.clear()
        scheduler.tick()
        scheduler.tick()
        assert caplog.text.count("This pass failed") == 3

    @pytest.mark.parametrize("longest", [1e-9, -1])
    def test_no_setting_makes_it_spin(self, clock, longest):
        scheduler = RedlockScheduler(new_app(beat_max_loop_interval=longest))
        scheduler.add(name="a", **hourly())
        assert min(scheduler.tick() for _ in range(4)) >= 0.01

    def test_no_error_of_the_ledger_leaves_it(self, app, monkeypatch, caplog):
        def fail(*args):
            raise RuntimeError("out of order")

        scheduler = RedlockScheduler(app)
        scheduler.tick()
        monkeypatch.setattr(MemoryLedger, "claim", fail)
        assert 0 <= scheduler.tick() <= 0.5

    def test_one_failing_schedule_stops_no_other_entry(self, app, passes, published, caplog):
        class Failing(schedule):
            def is_due(self, last_run_at):
                raise RuntimeError("cannot say")

        scheduler = RedlockScheduler(app)
        scheduler.add(name="bad", task="t", schedule=Failing(1))
        scheduler.add(name="good", **hourly())
        passes(scheduler, hours=1)
        assert published == ["good"]
        assert "'bad': the schedule failed" in caplog.text

    @pytest.mark.parametrize(
        ("given", "most"),
        [({}, 0.5), ({"redlock_beat_poll": 0.25}, 0.25), ({"redlock_beat_poll": 2}, 0.5)],
    )
    def test_it_answers_at_most_the_poll_and_the_longest_interval(self, clock, given, most):
        scheduler = RedlockScheduler(new_app(**given))
        scheduler.add(name="a", **hourly())
        assert max(scheduler.tick() for _ in range(4)) == most

    @pytest.mark.parametrize("way", ["option", "setting"])
    def test_celerys_longest_interval_is_kept(self, clock, way):
        app = new_app(beat_max_loop_interval=0.1 if way == "setting" else 0)
        scheduler = RedlockScheduler(app, max_interval=0.1 if way == "option" else None)
        scheduler.add(name="a", **hourly())
        assert max(scheduler.tick() for _ in range(4)) == 0.1

    def test_the_entry_in_the_schedule_tells_of_its_last_run(self, app, passes):
        scheduler = RedlockScheduler(app)
        entry = scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        assert scheduler.schedule["a"] is entry
        assert entry.last_run_at == datetime(2030, 1, 1, 1, tzinfo=UTC)
        assert entry.total_run_count == 1
        passes(scheduler, hours=1)
        assert entry.last_run_at == datetime(2030, 1, 1, 2, tzinfo=UTC)
        assert entry.total_run_count == 2


class TestSending:
    def test_apply_entry_gets_a_private_copy_in_exactly_celerys_form(self, app, passes):
        calls = []

        class Mine(RedlockScheduler):
            def apply_entry(self, *args, **kwargs):
                calls.append((args, kwargs))

        headers = {"mine": 1}
        scheduler = Mine(app)
        entry = scheduler.add(name="a", args=[1], options={"headers": headers}, **hourly())
        passes(scheduler, hours=1)
        ((sent,), kwargs), *others = calls
        assert others == []
        assert list(kwargs) == ["producer"]
        assert (sent.name, sent.task, sent.args) == ("a", "t", [1])
        assert sent is not entry
        assert sent.args is not entry.args
        assert sent.options["headers"]["redlock_tick"] == "2030-01-01T01:00:00.000000+00:00"

    def test_sending_changes_nothing_that_the_user_owns(self, passes, published):
        fields = hourly(options={"headers": {"mine": 1}, "queue": "q"}, kwargs={"k": [1]})
        app = new_app(beat_schedule={"a": fields})
        passes(RedlockScheduler(app), hours=1)
        assert published == ["a"]
        assert fields == hourly(options={"headers": {"mine": 1}, "queue": "q"}, kwargs={"k": [1]})

    def test_an_error_tracker_that_wraps_celerys_apply_entry_sees_it(
        self, app, passes, published, monkeypatch
    ):
        seen = []
        original = RedlockScheduler.apply_entry

        def wrapper(scheduler, schedule_entry, *args, **kwargs):
            seen.append(schedule_entry.name)
            return original(scheduler, schedule_entry, *args, **kwargs)

        monkeypatch.setattr("celery.beat.Scheduler.apply_entry", wrapper)
        scheduler = RedlockScheduler(app)
        scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        assert seen == published == ["a"]

    def test_a_subclass_may_send_in_its_own_way(self, app, passes, published):
        class Mine(RedlockScheduler):
            def apply_async(self, entry, producer=None, advance=True, **kwargs):
                entry.options["priority"] = 7
                return super().apply_async(entry, producer=producer, advance=advance, **kwargs)

        scheduler = Mine(app)
        entry = scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        assert published == ["a"]
        assert entry.options == {}

    def test_what_a_plugin_set_on_the_scheduler_itself_stays_in_use(self, app, passes, published):
        scheduler = RedlockScheduler(app)
        original, used = scheduler.apply_async, []

        def mine(entry, **kwargs):
            used.append(entry.name)
            return original(entry, **kwargs)

        scheduler.apply_async = mine
        scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        passes(scheduler, hours=1)
        assert used == published == ["a", "a"]

    def test_what_celery_only_logs_is_tried_again_with_the_same_id(self, app, passes, caplog):
        ids = []

        class Failing(RedlockScheduler):
            def send_task(self, *args, task_id, **kwargs):
                ids.append(task_id)
                raise ConnectionResetError("away")

        scheduler = Failing(app)
        entry = scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        passes(scheduler, seconds=20)
        assert len(ids) > 1
        assert len(set(ids)) == 1
        assert entry.total_run_count == 0
        assert "Message Error" in caplog.text  # as Celery logs it


class TestOwnIsDue:
    """Where a subclass decides what is due, it is asked, and the ledger sees that it is once."""

    def decide(self, now):
        return now.hour % 2 == 0

    @pytest.fixture
    def entry_class(self):
        decide = self.decide

        class EvenHours(RedlockEntry):
            def is_due(self):
                due, delay = super().is_due()
                return due and decide(self.schedule.now()), delay

        return EvenHours

    def test_an_entry_class_is_asked_at_the_ledgers_time(self, app, passes, published, entry_class):
        class Mine(RedlockScheduler):
            Entry = entry_class

        scheduler = Mine(app)
        scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        assert published == []
        passes(scheduler, hours=1)
        assert published == ["a"]

    def test_a_scheduler_class_is_asked_at_the_ledgers_time(self, app, passes, published):
        decide = self.decide

        class Mine(RedlockScheduler):
            def is_due(self, entry):
                due, delay = super().is_due(entry)
                return due and decide(entry.schedule.now()), delay

        scheduler = Mine(app)
        scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        assert published == []
        passes(scheduler, hours=1)
        assert published == ["a"]

    def test_celerys_own_entries_are_taken_as_they_are(self, app, passes, published):
        entry = ScheduleEntry(name="a", app=app, **hourly())
        scheduler = RedlockScheduler(app, schedule={"a": entry})
        passes(scheduler, hours=1)
        assert published == ["a"]
        assert entry.total_run_count == 1


class TestClose:
    def test_it_may_be_closed_before_it_did_anything(self, app):
        scheduler = RedlockScheduler(app)
        scheduler.close()
        scheduler.close()
        assert scheduler.node is None

    def test_it_may_be_closed_twice(self, app, passes):
        scheduler = RedlockScheduler(app)
        scheduler.add(name="a", **hourly())
        passes(scheduler, hours=1)
        scheduler.close()
        scheduler.close()

    def test_what_the_node_holds_is_given_back_even_if_a_subclass_cannot_sync(
        self, app, clock, monkeypatch
    ):
        class Mine(RedlockScheduler):
            def sync(self):
                raise OSError("the disk is full")

        scheduler, left = Mine(app), []
        scheduler.tick()
        monkeypatch.setattr(scheduler.node, "leave", lambda _words: left.append(True))
        with pytest.raises(OSError, match="the disk is full"):
            scheduler.close()
        assert left == [True]
