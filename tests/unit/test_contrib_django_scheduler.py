"""The scheduler of rows as its tables and its node see it, on a ledger in memory."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from threading import Event

import pytest
from celery.beat import BeatLazyFunc
from celery.schedules import crontab, schedule
from celery.signals import after_task_publish
from django.db import OperationalError, connection
from kombu.utils.imports import symbol_by_name

from celery_redlock_beat import assembly
from celery_redlock_beat.testing.children import wait_until
from support.django_here import (
    add,
    empty_tables,
    every,
    new_app,
    queries,
    ran,
    row_of,
    set_up,
)

set_up()

from django_celery_beat import models  # noqa: E402 - once Django is set up

from celery_redlock_beat.contrib.django import DatabaseScheduler  # noqa: E402
from celery_redlock_beat.contrib.django import follower as following  # noqa: E402
from celery_redlock_beat.contrib.django.tables import in_one_line  # noqa: E402
from celery_redlock_beat.diagnostics.schedules import Question  # noqa: E402
from celery_redlock_beat.diagnostics.schedules.loading import Schedule, scheduler_of  # noqa: E402
from celery_redlock_beat.errors import ConfigurationError, EntryError  # noqa: E402

LIMIT = 20.0


class Clock:
    """The ledger's clock: the time there is, and what tests put on top of it."""

    def __init__(self):
        self.ahead = 0

    def __call__(self):
        return time.time_ns() // 1000 + self.ahead

    def now(self):
        return dt.datetime.fromtimestamp(self() / 1_000_000, dt.UTC)

    def forward(self, **span):
        self.ahead += dt.timedelta(**span) // dt.timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("celery_redlock_beat.assembly.wall_micros", clock)
    return clock


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    """Look with each pass, so that no test has to wait for the next look."""
    monkeypatch.setattr(following, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(following, "WRITE_EVERY", 0.0)
    monkeypatch.setattr(following, "MOMENT", 5.0)


@pytest.fixture(autouse=True)
def tables():
    empty_tables()
    yield
    empty_tables()


@pytest.fixture
def shared_ledger(monkeypatch, clock):
    """Have schedulers that start one after the other share their ledger."""
    kept = assembly.MemoryServer(clock)
    monkeypatch.setattr(assembly, "MemoryServer", lambda _: kept)


@pytest.fixture
def published():
    messages = []

    def note(headers, **_):
        messages.append(headers)

    after_task_publish.connect(note)
    yield messages
    after_task_publish.disconnect(note)


@pytest.fixture
def start():
    """Start schedulers that are closed with the test."""
    started = []

    def start(kind=DatabaseScheduler, passes=2, **config):
        scheduler = kind(new_app(**config))
        started.append(scheduler)
        for _ in range(passes):  # the second one knows what the ledger's clock told
            scheduler.tick()
        return scheduler

    yield start
    for each in started:
        each.close()


def sent(published):
    return Counter(headers["periodic_task_name"] for headers in published)


def run_until(scheduler, condition, what="it"):
    def met():
        scheduler.tick()
        return condition()

    wait_until(met, LIMIT, what)


def passes(scheduler, number=3):
    for _ in range(number):
        scheduler.tick()


class TestFollowing:
    def test_a_row_is_an_entry_and_is_sent_with_what_it_says(self, start, clock, published):
        add("hourly", args="[1]", queue="fast", headers='{"tenant": 7}')
        scheduler = start()
        clock.forward(hours=1)
        passes(scheduler)
        (headers,) = published
        assert headers["periodic_task_name"] == headers["redlock_entry"] == "hourly"
        assert headers["tenant"] == 7
        assert headers["argsrepr"] in {"(1,)", "[1]"}

    def test_a_row_that_is_added_changed_and_deleted_is_followed(self, start, clock, published):
        scheduler = start()
        row = add("new")
        passes(scheduler)
        clock.forward(hours=1)
        passes(scheduler)
        assert sent(published) == {"new": 1}
        row.interval = every(1, "days")
        row.save()
        passes(scheduler)
        clock.forward(hours=1)
        passes(scheduler)
        assert sent(published)["new"] <= 2, "unless it was midnight"
        row.delete()
        published.clear()
        passes(scheduler)
        clock.forward(days=2)
        passes(scheduler)
        assert sent(published) == {}
        assert scheduler.schedule == {}

    def test_a_change_of_a_schedule_that_rows_share_is_followed(self, start):
        shared = every(3600)
        for name in ("one", "two"):
            add(name, interval=shared)
        scheduler = start()
        shared.every = 60
        shared.save()
        passes(scheduler)
        periods = {each.schedule.run_every for each in scheduler.schedule.values()}
        assert periods == {dt.timedelta(minutes=1)}

    def test_only_rows_that_differ_become_new_entries(self, start):
        add("stays")
        row = add("changes")
        scheduler = start()
        before = dict(scheduler.schedule)
        row.args = "[1]"
        row.save()
        passes(scheduler)
        assert scheduler.schedule["stays"] is before["stays"]
        assert scheduler.schedule["changes"] is not before["changes"]
        assert scheduler.entry_of("changes").args == [1]

    def test_an_update_past_the_signals_is_seen_with_the_next_full_look(self, start, monkeypatch):
        add("a")
        scheduler = start()
        models.PeriodicTask.objects.filter(name="a").update(args="[1]")
        passes(scheduler)
        assert scheduler.schedule["a"].args == ()
        monkeypatch.setattr("celery_redlock_beat.contrib.django.visits.READ_ALL_EVERY", 0.0)
        passes(scheduler)
        assert scheduler.schedule["a"].args == [1]

    def test_a_disabled_row_is_not_sent_and_catches_up_nothing_once_it_is_enabled(
        self, start, clock, published
    ):
        row = add("a")
        scheduler = start()
        row.enabled = False
        row.save()
        passes(scheduler)
        assert scheduler.schedule == {}
        clock.forward(hours=5)
        passes(scheduler)
        row.enabled = True
        row.save()
        passes(scheduler)
        assert sent(published) == {}
        clock.forward(hours=1)
        passes(scheduler)
        assert sent(published) == {"a": 1}

    def test_a_node_that_was_not_there_when_a_row_was_disabled_catches_up_nothing_either(
        self, start, clock, published, shared_ledger
    ):
        row = add("a")
        first = start()
        row.enabled = False
        row.save()
        passes(first)
        first.close()
        clock.forward(minutes=65)
        row.enabled = True
        row.save()
        second = start(passes=4)
        assert sent(published) == {}
        clock.forward(hours=1)
        passes(second)
        assert sent(published) == {"a": 1}

    # A few minutes: what no node has had for longer counts as new anyway.
    @pytest.mark.parametrize("way", ["saved", "by the admin's action"])
    @pytest.mark.parametrize("schedule", ["interval", "crontab"])
    def test_one_that_was_disabled_while_no_node_ran_catches_up_nothing_once_it_is_enabled(
        self, start, clock, published, shared_ledger, way, schedule
    ):
        minutely = {"crontab": models.CrontabSchedule.objects.create()}
        add("a", 60, **(minutely if schedule == "crontab" else {}))
        self._have_it_run_and_be_disabled(start, clock)
        published.clear()
        second = start()
        enabled = clock.now()
        if way == "saved":
            models.PeriodicTask.objects.update(enabled=True, date_changed=enabled)
        else:
            models.PeriodicTask.objects.update(enabled=True)
        models.PeriodicTasks.update_changed()
        passes(second, 4)
        clock.forward(minutes=1)
        run_until(second, lambda: published)
        assert dt.datetime.fromisoformat(published[0]["redlock_tick"]) > enabled

    def test_nor_does_one_that_was_enabled_again_before_a_node_ran_if_it_was_saved(
        self, start, clock, published, shared_ledger
    ):
        add("a", crontab=models.CrontabSchedule.objects.create())
        self._have_it_run_and_be_disabled(start, clock)
        published.clear()
        enabled = clock.now()
        models.PeriodicTask.objects.update(enabled=True, date_changed=enabled)
        second = start(passes=4)
        clock.forward(minutes=1)
        run_until(second, lambda: published)
        assert dt.datetime.fromisoformat(published[0]["redlock_tick"]) > enabled

    def _have_it_run_and_be_disabled(self, start, clock):
        first = start()
        clock.forward(minutes=1)
        run_until(first, lambda: row_of("a").total_run_count)
        first.close()
        # As the admin's action does.
        models.PeriodicTask.objects.update(enabled=False, last_run_at=None)
        models.PeriodicTasks.update_changed()
        clock.forward(minutes=5)

    def test_one_that_runs_once_is_sent_all_the_same(self, start, clock, published, shared_ledger):
        past = models.ClockedSchedule.objects.create(clocked_time=clock.now())
        add("a", clocked=past, one_off=True)
        first = start()
        run_until(first, lambda: not row_of("a").enabled)
        first.close()
        second = start()
        row = row_of("a")
        row.enabled = True
        row.save()
        run_until(second, lambda: len(published) == 2)


class TestBadRows:
    def test_a_bad_row_is_left_out_and_told_and_stays_as_it_is(
        self, start, clock, caplog, published
    ):
        add("good")
        add("bad", args="[")
        scheduler = start()
        passes(scheduler)
        told = [each for each in caplog.messages if "entry 'bad'" in each]
        assert len(told) == 1
        assert told[0].startswith("Left out: entry 'bad': its 'args' are no JSON")
        clock.forward(hours=1)
        passes(scheduler)
        assert sent(published) == {"good": 1}
        assert row_of("bad").enabled

    def test_a_row_that_is_mended_is_sent_and_one_that_goes_bad_is_not(
        self, start, clock, published
    ):
        mended, spoilt = add("mended", args="["), add("spoilt")
        scheduler = start()
        assert set(scheduler.roster.faults) == {"mended"}
        mended.args, spoilt.kwargs = "[]", "{"
        mended.save()
        spoilt.save()
        passes(scheduler)
        assert set(scheduler.roster.faults) == {"spoilt"}
        clock.forward(hours=1)
        passes(scheduler)
        assert sent(published) == {"mended": 1}

    def test_a_bad_row_that_is_deleted_is_a_fault_no_longer(self, start):
        row = add("bad", args="[")
        scheduler = start()
        row.delete()
        passes(scheduler)
        assert scheduler.roster.faults == {}

    def test_a_crontab_that_never_fires_is_a_bad_row(self, start):
        never = models.CrontabSchedule.objects.create(
            minute="0", hour="0", day_of_month="30", month_of_year="2"
        )
        add("bad", crontab=never)
        add("good")
        assert "never fires" in start().roster.faults["bad"]

    def test_a_row_that_django_cannot_read_keeps_no_other_one_out(self, start, caplog):
        for number in range(20):
            zone = models.CrontabSchedule.objects.create(minute=str(number))
            add(f"row {number}", crontab=zone)
        models.PeriodicTasks.update_changed()
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE django_celery_beat_crontabschedule SET timezone = 'Nowhere/Land' "
                "WHERE minute = '7'"
            )
        scheduler = start()
        assert set(scheduler.roster.faults) == {"row 7"}
        assert "Nowhere/Land" in scheduler.roster.faults["row 7"]
        assert len(scheduler.schedule) == 19
        models.PeriodicTasks.update_changed()
        passes(scheduler)
        assert len([each for each in caplog.messages if "Nowhere/Land" in each]) == 1
        assert set(scheduler.roster.faults) == {"row 7"}
        models.CrontabSchedule.objects.filter(minute="7").update(timezone="UTC")
        models.PeriodicTasks.update_changed()
        run_until(scheduler, lambda: len(scheduler.schedule) == 20)
        assert scheduler.roster.faults == {}

    def test_strict_settings_do_not_let_a_row_end_the_start(self, start):
        add("bad", args="[")
        assert start(redlock_beat_strict=True).roster.faults

    def test_strict_settings_let_an_entry_in_code_end_it(self, start):
        with pytest.raises(EntryError, match="unknown key 'tsk'"):
            start(redlock_beat_strict=True, beat_schedule={"bad": {"tsk": 1, "schedule": 1}})


class TestSwitching:
    def test_what_was_sent_is_not_sent_again_and_what_was_due_since_is(
        self, start, clock, published
    ):
        now = clock.now()
        add("sent", 7200)
        ran("sent", now - dt.timedelta(minutes=30))
        add("owed", 7200)
        ran("owed", now - dt.timedelta(hours=3))
        start(passes=4)
        assert sent(published) == {"owed": 1}
        (message,) = published
        due = now - dt.timedelta(hours=1)
        assert dt.datetime.fromisoformat(message["redlock_tick"]) == due

    def test_an_interval_goes_on_with_its_phase(self, start, clock, published):
        last = clock.now() - dt.timedelta(minutes=17)
        add("a")
        ran("a", last)
        scheduler = start()
        clock.forward(minutes=42)
        passes(scheduler)
        assert sent(published) == {}
        clock.forward(minutes=2)
        passes(scheduler)
        (message,) = published
        assert dt.datetime.fromisoformat(message["redlock_tick"]) == last + dt.timedelta(hours=1)

    def test_a_row_that_has_never_run_begins_now(self, start, published):
        add("a", 7200)
        models.PeriodicTask.objects.update(
            date_changed=dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
        )
        start(passes=4)
        assert sent(published) == {}

    def test_a_crontab_that_has_never_run_begins_when_it_was_saved(self, start, clock, published):
        hourly = models.CrontabSchedule.objects.create(minute="0")
        for name, ago in (("owed", 150), ("not yet", 0)):
            add(name, crontab=hourly)
            saved = clock.now() - dt.timedelta(minutes=ago)
            models.PeriodicTask.objects.filter(name=name).update(date_changed=saved)
        start(passes=4)
        assert sent(published) == {"owed": 1}

    def test_one_with_a_start_in_the_past_that_has_never_run_is_sent_at_once(
        self, start, clock, published
    ):
        begin = clock.now() - dt.timedelta(hours=5, minutes=30)
        add("a", start_time=begin)
        scheduler = start(passes=4)
        assert sent(published) == {"a": 1}
        assert published[0]["redlock_passed_over"] == 5
        clock.forward(minutes=31)
        passes(scheduler)
        ticks = [dt.datetime.fromisoformat(each["redlock_tick"]) for each in published]
        assert [(tick - begin).total_seconds() for tick in ticks] == [5 * 3600, 6 * 3600]

    def test_one_with_a_start_ahead_is_sent_at_that_instant(self, start, clock, published):
        begin = clock.now() + dt.timedelta(hours=3, minutes=7)
        add("a", start_time=begin)
        scheduler = start()
        clock.forward(hours=3)
        passes(scheduler)
        assert sent(published) == {}
        clock.forward(minutes=8)
        passes(scheduler)
        assert [dt.datetime.fromisoformat(each["redlock_tick"]) for each in published] == [begin]

    def test_after_a_time_with_django_celery_beat_nothing_of_it_is_sent_again(
        self, start, clock, published
    ):
        add("a")
        scheduler = start()
        clock.forward(hours=1)
        passes(scheduler)
        assert sent(published) == {"a": 1}
        clock.forward(hours=1)
        scheduler._taken.begins["a"] = clock.now()  # as the tables say once the other one sent it
        for slot in scheduler.roster.slots():
            scheduler.node.put(slot)
        passes(scheduler, 4)
        assert sent(published) == {"a": 1}

    def test_what_expires_is_sent_until_then(self, start, clock, published):
        add("a", expires=clock.now() + dt.timedelta(hours=2, minutes=30))
        scheduler = start()
        for _ in range(6):
            clock.forward(hours=1)
            passes(scheduler)
        assert sent(published)["a"] in {2, 3}
        assert row_of("a").enabled


class TestOneOff:
    def test_it_is_sent_once_and_its_row_is_disabled(self, start, clock, published):
        add("a", one_off=True)
        scheduler = start()
        clock.forward(hours=1, seconds=1)
        run_until(scheduler, lambda: not row_of("a").enabled)
        for _ in range(3):
            clock.forward(hours=1)
            passes(scheduler)
        row = row_of("a")
        assert sent(published) == {"a": 1}
        assert (row.total_run_count, row.last_run_at) == (0, None)
        assert scheduler.schedule == {}

    def test_it_is_sent_again_when_it_is_enabled_again(self, start, clock, published):
        add("a", 1, one_off=True)
        scheduler = start()
        for number in range(1, 4):
            clock.forward(seconds=2)
            run_until(scheduler, lambda: not row_of("a").enabled, f"run {number}")
            assert sent(published) == {"a": number}
            row = row_of("a")
            row.enabled = True
            row.save()
            passes(scheduler)

    def test_one_that_was_due_while_no_node_lived_is_sent_late(self, start, clock, published):
        at = models.ClockedSchedule.objects.create(clocked_time=clock.now())
        add("a", clocked=at, one_off=True)
        models.PeriodicTask.objects.update(date_changed=clock.now() - dt.timedelta(hours=1))
        clock.forward(hours=3)
        run_until(start(), lambda: published)
        assert sent(published) == {"a": 1}

    def test_a_clocked_one_whose_time_is_over_is_sent_at_once_each_time_it_is_enabled(
        self, start, clock, published
    ):
        past = clock.now() - dt.timedelta(days=1)
        at = models.ClockedSchedule.objects.create(clocked_time=past)
        add("a", clocked=at, one_off=True)
        scheduler = start()
        run_until(scheduler, lambda: not row_of("a").enabled)
        row = row_of("a")
        row.enabled = True
        row.save()
        run_until(scheduler, lambda: len(published) == 2)

    def test_one_that_has_run_before_is_disabled_and_not_sent(self, start, clock, published):
        add("a", one_off=True)
        ran("a", clock.now())
        scheduler = start()
        run_until(scheduler, lambda: not row_of("a").enabled)
        clock.forward(hours=2)
        passes(scheduler)
        assert sent(published) == {}

    def test_runs_from_before_do_not_count_for_a_row_that_is_to_run_once_by_now(
        self, start, published
    ):
        row = add("a", 1)
        scheduler = start()

        def runs():
            scheduler.node.run()  # which follows no rows
            return sent(published)["a"]

        wait_until(runs, LIMIT, "a run")
        row.one_off = True
        row.save()  # and what was sent is not written by now
        before = sent(published)["a"]
        run_until(scheduler, lambda: not row_of("a").enabled)
        assert sent(published)["a"] == before + 1

    def test_one_that_was_saved_again_meanwhile_is_not_disabled(self, start, clock, published):
        add("a", 1, one_off=True)
        scheduler = start()
        clock.forward(seconds=2)
        row = row_of("a")
        row.interval = every(7200)
        row.save()  # nobody has read it since
        for _ in range(2):
            scheduler.node.run()
        assert sent(published) == {"a": 1}
        passes(scheduler, 6)
        assert row_of("a").enabled

    def test_one_whose_node_died_before_it_said_so_is_disabled_by_another(
        self, start, clock, published, monkeypatch
    ):
        add("a", 1, one_off=True)
        scheduler = start()
        with monkeypatch.context() as patch:
            patch.setattr(scheduler._follower, "ended", lambda *_: None)
            clock.forward(seconds=2)
            run_until(scheduler, lambda: published)
        passes(scheduler)
        assert row_of("a").enabled
        clock.forward(minutes=5)
        passes(scheduler)
        scheduler._sweep_at = 0.0
        run_until(scheduler, lambda: not row_of("a").enabled)
        assert sent(published) == {"a": 1}


def _leave(_event):
    raise SystemExit  # as beat's handler of SIGTERM does, in the middle of it


def _has_run(name, times):
    return row_of(name).total_run_count == times


class TestWritingBack:
    def test_last_runs_and_counts_are_written(self, start, clock):
        add("a")
        scheduler = start()
        for number in range(1, 4):
            clock.forward(hours=1)
            run_until(scheduler, partial(_has_run, "a", number))
        assert row_of("a").last_run_at == scheduler.schedule["a"].last_run_at

    def test_nobody_reads_all_rows_for_a_run(self, start, clock, monkeypatch):
        add("a")
        scheduler = start()
        before = models.PeriodicTasks.last_change()
        clock.forward(hours=1)
        run_until(scheduler, lambda: row_of("a").total_run_count)
        assert models.PeriodicTasks.last_change() == before

    def test_a_run_of_which_the_end_kept_the_answer_is_written_too(self, start, clock, monkeypatch):
        add("a")
        scheduler = start()
        clock.forward(hours=1)
        monkeypatch.setattr(scheduler, "_observe", _leave)
        monkeypatch.setattr(scheduler.node.dispatcher.teller, "observe", _leave)
        with pytest.raises(SystemExit):
            passes(scheduler)
        scheduler.close()
        assert row_of("a").total_run_count == 1

    def test_what_is_owed_is_written_at_the_end(self, start, clock, monkeypatch):
        add("a")
        scheduler = start()
        monkeypatch.setattr(following, "LOOK_EVERY", 3600.0)
        passes(scheduler)
        clock.forward(hours=1)
        passes(scheduler)
        assert row_of("a").total_run_count == 0
        scheduler.close()
        assert row_of("a").total_run_count == 1


class TestDatabaseAway:
    @pytest.fixture
    def away(self, monkeypatch):
        """Have the database refuse, until it is told to answer."""
        gone = Event()
        look = models.PeriodicTasks.last_change.__func__

        def refuse(cls):
            if gone.is_set():
                raise OperationalError("connection refused")
            return look(cls)

        monkeypatch.setattr(models.PeriodicTasks, "last_change", classmethod(refuse))
        return gone

    def test_the_last_known_rows_go_on_and_it_is_told_once(
        self, start, clock, published, away, caplog
    ):
        add("a")
        scheduler = start()
        away.set()
        for _ in range(3):
            clock.forward(hours=1)
            passes(scheduler)
        assert sent(published) == {"a": 3}
        told = [each for each in caplog.messages if "tables cannot be read" in each]
        assert len(told) == 1
        assert "connection refused" in told[0]

    def test_when_it_is_back_rows_are_followed_again(self, start, away, caplog, monkeypatch):
        scheduler = start()
        away.set()
        passes(scheduler)
        add("new")
        monkeypatch.setattr(scheduler._follower, "_look_at", 0.0)
        passes(scheduler)
        assert scheduler.schedule == {}
        away.clear()
        monkeypatch.setattr(scheduler._follower, "_look_at", 0.0)
        run_until(scheduler, lambda: "new" in scheduler.schedule)
        assert "The tables can be read again" in caplog.text

    def test_it_is_looked_at_less_and_less_often(self):
        trouble = following.Trouble("%s", "%f")
        pauses = []
        for _ in range(12):
            trouble.learn(OperationalError("away"))
            pauses.append(trouble.pause)
        assert pauses[0] <= pauses[-1] <= following.LONGEST_BACK_OFF

    def test_a_start_without_it_is_a_start_and_what_is_to_be_written_is_written_later(
        self, start, away, clock, caplog, monkeypatch
    ):
        away.set()
        code = {"mine": {"task": "t", "schedule": 3600}}
        monkeypatch.setattr(
            "celery_redlock_beat.contrib.django.setting_up.SettingUp.write",
            _refuse,
        )
        scheduler = start(beat_schedule=code)
        assert scheduler.schedule == {}
        assert not models.PeriodicTask.objects.exists()
        monkeypatch.undo()
        away.clear()
        scheduler._follower._look_at = 0.0
        run_until(scheduler, lambda: "mine" in scheduler.schedule)
        assert models.PeriodicTask.objects.filter(name="mine").exists()

    def test_a_database_that_does_not_answer_holds_up_no_pass(
        self, start, clock, published, monkeypatch
    ):
        add("a")
        scheduler = start()
        answers = Event()
        monkeypatch.setattr(following, "MOMENT", 0.05)
        monkeypatch.setattr(
            models.PeriodicTasks, "last_change", classmethod(lambda _: answers.wait(LIMIT))
        )
        began = time.monotonic()
        for _ in range(5):
            clock.forward(hours=1)
            passes(scheduler)
        assert sent(published) == {"a": 5}
        assert time.monotonic() - began < 3
        began = time.monotonic()
        scheduler.close()
        assert time.monotonic() - began < following.LAST_MOMENT + 1
        answers.set()

    def test_one_that_hangs_is_told_once_and_once_more_when_it_answers(
        self, start, monkeypatch, caplog
    ):
        scheduler = start()
        answers = Event()
        monkeypatch.setattr(following, "MOMENT", 0.01)
        monkeypatch.setattr(following, "SILENT_AFTER", 0.1)
        monkeypatch.setattr(
            models.PeriodicTasks, "last_change", classmethod(lambda _: answers.wait(LIMIT))
        )
        run_until(scheduler, lambda: "database has not answered for" in caplog.text)
        passes(scheduler)
        assert caplog.text.count("The tables cannot be read") == 1
        answers.set()
        run_until(scheduler, lambda: "The tables can be read again" in caplog.text)

    def test_one_that_hangs_at_the_start_is_told(self, start, monkeypatch, caplog):
        answers = Event()
        monkeypatch.setattr(following, "START_PATIENCE", 0.05)
        monkeypatch.setattr(
            models.PeriodicTasks, "last_change", classmethod(lambda _: answers.wait(LIMIT))
        )
        start(passes=0)
        assert "database has not answered for" in caplog.text
        answers.set()

    @pytest.mark.parametrize("fails", ["hangs", "refuses"])
    def test_an_end_without_it_names_the_rows_whose_last_runs_are_not_written(
        self, start, clock, monkeypatch, caplog, fails
    ):
        for number in range(7):
            add(f"row {number}")
        scheduler = start()
        monkeypatch.setattr(following, "LOOK_EVERY", 3600.0)
        monkeypatch.setattr(following, "LAST_MOMENT", 0.3)
        passes(scheduler)
        clock.forward(hours=1)
        answers = Event()
        write = _refuse if fails == "refuses" else lambda *_: answers.wait(LIMIT)
        monkeypatch.setattr("celery_redlock_beat.contrib.django.writing.Writer.write", write)
        run_until(scheduler, lambda: len(scheduler._follower._owed.last) == 7)
        scheduler.close()
        (told,) = [each for each in caplog.messages if "are not written to the tables" in each]
        assert "7 of them: row 0, row 1, row 2, row 3, row 4, …." in told
        scheduler.close()
        assert caplog.text.count("are not written to the tables") == 1
        answers.set()

    def test_what_postgresql_says_is_told_in_one_line(self):
        error = OperationalError('relation "x" does not exist\nLINE 1: SELECT 1\n        ^')
        assert in_one_line(error) == 'relation "x" does not exist'
        assert in_one_line(OperationalError("down\n\tIs it up?")) == "down Is it up?"

    def test_a_kind_of_error_that_is_none_of_a_database_is_told_and_ends_nothing(
        self, start, monkeypatch, caplog
    ):
        class Odd(DatabaseScheduler):
            def enabled_models(self):
                raise ZeroDivisionError

            def enabled_models_qs(self):
                raise ZeroDivisionError

        scheduler = start(Odd)
        passes(scheduler)
        assert "The tables cannot be read" in caplog.text


def _refuse(*_):
    raise OperationalError("connection refused")


class TestBeatSchedule:
    def test_it_is_written_into_the_tables_as_django_celery_beat_does(self, start):
        entry = {
            "task": "proj.report",
            "schedule": crontab(minute=30, hour="3,4"),
            "args": (1,),
            "kwargs": {"a": 2},
            "options": {"queue": "q", "priority": 3, "expire_seconds": 60, "headers": {"h": 1}},
            "description": "what for",
        }
        start(beat_schedule={"mine": entry}, timezone="Europe/Berlin")
        row = row_of("mine")
        assert (row.task, row.args, row.kwargs) == ("proj.report", "[1]", '{"a": 2}')
        assert (row.queue, row.priority, row.expire_seconds) == ("q", 3, 60)
        assert (row.headers, row.description) == ('{"h": 1}', "what for")
        assert (row.crontab.minute, row.crontab.hour) == ("30", "3,4")
        assert str(row.crontab.timezone) == "Europe/Berlin"

    def test_the_row_is_what_django_celery_beat_itself_would_write(self, start):
        from django_celery_beat.schedulers import ModelEntry

        entries = {
            "number": {"task": "t", "schedule": 30},
            "span": {"task": "t", "schedule": dt.timedelta(days=1)},
            "crontab": {"task": "t", "schedule": crontab(hour="*/2"), "options": {"queue": "q"}},
        }
        app = new_app()
        for name, fields in entries.items():
            ModelEntry.from_entry(name, app=app, **fields)
        theirs = list(models.PeriodicTask.objects.order_by("name").values())
        before = models.PeriodicTasks.last_change()
        start(beat_schedule=entries)
        assert list(models.PeriodicTask.objects.order_by("name").values()) == theirs
        assert models.PeriodicTasks.last_change() == before

    def test_a_row_that_is_as_it_should_be_is_not_touched(self, start):
        code = {
            "mine": {"task": "t", "schedule": 30},
            "other": {"task": "t", "schedule": crontab()},
        }
        start(beat_schedule=code)
        before, saved = models.PeriodicTasks.last_change(), row_of("mine").date_changed
        start(beat_schedule=code)
        assert models.PeriodicTasks.last_change() == before
        assert row_of("mine").date_changed == saved

    def test_a_row_that_an_admin_changed_is_as_the_code_says_after_the_next_start(self, start):
        code = {"mine": {"task": "t", "schedule": 30}}
        start(beat_schedule=code)
        row = row_of("mine")
        row.interval, row.task = every(5, "days"), "other"
        row.save()
        scheduler = start(beat_schedule=code)
        assert row_of("mine").task == scheduler.schedule["mine"].task == "t"
        assert row_of("mine").interval.every == 30

    def test_celerys_own_entry_is_written_where_results_expire(self, start):
        start(result_expires=3600)
        row = row_of("celery.backend_cleanup")
        assert (row.crontab.hour, row.expire_seconds) == ("4", 12 * 3600)

    def test_less_than_a_second_is_written_as_microseconds(self, start):
        scheduler = start(beat_schedule={"mine": {"task": "t", "schedule": 0.25}})
        assert scheduler.schedule["mine"].schedule.run_every == dt.timedelta(seconds=0.25)

    @pytest.mark.parametrize(
        "more",
        [
            {"schedule": "*/5 * * * *"},
            {"catch_up": "all"},
            {"kwargs": {"at": BeatLazyFunc(time.time)}},
            {"relative": True},
            {"schedule": type("Own", (schedule,), {})(dt.timedelta(hours=1))},
        ],
    )
    def test_what_no_column_can_hold_stays_in_code(self, start, more):
        entry = {"task": "t", "schedule": 3600, **more}
        scheduler = start(beat_schedule={"mine": entry})
        assert scheduler.entry_of("mine")
        assert not models.PeriodicTask.objects.exists()
        passes(scheduler)
        assert scheduler.entry_of("mine")

    def test_an_entry_that_stays_in_code_runs_also_where_there_is_a_row(self, start, caplog):
        add("mine")
        scheduler = start(beat_schedule={"mine": {"task": "code", "schedule": "* * * * *"}})
        assert scheduler.entry_of("mine").task == "code"
        assert "the one in code runs" in caplog.text

    def test_an_entry_with_a_name_longer_than_the_column_stays_in_code(self, start):
        name = "n" * 201
        assert start(beat_schedule={name: {"task": "t", "schedule": 30}}).entry_of(name)
        assert not models.PeriodicTask.objects.exists()

    def test_an_option_without_a_column_is_told(self, start, caplog):
        entry = {"task": "t", "schedule": 30, "options": {"countdown": 5}}
        start(beat_schedule={"mine": entry})
        assert "no column for its options countdown" in caplog.text

    def test_an_entry_that_cannot_be_a_row_is_told_and_stops_no_other(self, start):
        code = {
            "long": {"task": "t", "schedule": 30, "start_time": "no time"},
            "mine": {"task": "t", "schedule": 30},
        }
        scheduler = start(beat_schedule=code)
        assert "cannot be written to its row" in scheduler.roster.faults["long"]
        assert scheduler.entry_of("mine")


class TestCost:
    def test_ten_thousand_rows_cost_no_query_each(self, clock, published):
        shared = [every(3600 + number) for number in range(30)]
        models.PeriodicTask.objects.bulk_create(
            models.PeriodicTask(
                name=f"row {number}",
                task="t",
                interval=shared[number % 30],
                last_run_at=clock.now() - dt.timedelta(hours=2),
            )
            for number in range(10_000)
        )
        scheduler = DatabaseScheduler(new_app(), lazy=True)
        visits = scheduler._follower._visits
        with queries() as first:
            news = visits.visit(None).news
        assert len(news.rows) == 10_000
        assert len(first) == 3
        with queries() as idle:
            assert visits.visit(None).news is None
        assert len(idle) == 1
        models.PeriodicTasks.update_changed()
        with queries() as changed:
            assert visits.visit(None).news.rows == {}
        assert len(changed) == 3
        owed = following.Owed()
        for number in range(10_000):
            owed.sent(f"row {number}", clock.now())
        with queries() as written:
            assert visits.visit(owed).owed is None
        updates = [each for each in written if each.startswith("UPDATE")]
        assert len(updates) == 20
        assert len(written) <= 2 * len(updates) + 4
        assert models.PeriodicTask.objects.filter(total_run_count=1).count() == 10_000

    def test_one_change_among_ten_thousand_is_in_force_within_a_second(
        self, start, clock, monkeypatch
    ):
        models.PeriodicTask.objects.bulk_create(
            models.PeriodicTask(name=f"row {number}", task="t", interval=every(3600))
            for number in range(10_000)
        )
        scheduler = start(passes=20)
        row = row_of("row 77")
        row.args = "[1]"
        row.save()
        began = time.monotonic()
        run_until(scheduler, lambda: scheduler.schedule["row 77"].args == [1])
        assert time.monotonic() - began < 2


class TestLookingAtIt:
    def test_the_schedule_of_an_app_has_its_rows_and_nothing_is_written(self):
        add("row")
        add("off", enabled=False)
        app = new_app(
            beat_scheduler="celery_redlock_beat.contrib.django:DatabaseScheduler",
            beat_schedule={
                "mine": {"task": "t", "schedule": 30},
                "off": {"task": "t", "schedule": 30},
                "cron": {"task": "t", "schedule": "* * * * *"},
            },
        )
        before = models.PeriodicTasks.last_change()
        loaded = Schedule(app)
        assert sorted(loaded.names) == ["cron", "mine", "row"]
        assert models.PeriodicTasks.last_change() == before
        assert not models.PeriodicTask.objects.filter(name="mine").exists()

    def test_an_interval_goes_on_from_its_last_run(self, clock):
        last = clock.now() - dt.timedelta(minutes=17)
        add("a")
        ran("a", last)
        app = new_app(beat_scheduler="celery_redlock_beat.contrib.django:DatabaseScheduler")
        loaded = Schedule(app)
        (first,) = loaded.outlook("a", Question(clock.now(), 1)).ticks
        assert first.local.astimezone(dt.UTC) == last + dt.timedelta(hours=1)
        assert loaded.slots["a"].own_fingerprint == "interval:3600000000+0"

    def test_what_was_read_is_read_anew_when_it_is_set_up_again(self):
        row = add("row")
        app = new_app(beat_scheduler="celery_redlock_beat.contrib.django:DatabaseScheduler")
        scheduler = scheduler_of(app)
        add("new")
        row.delete()
        scheduler.setup_schedule()
        scheduler.roster.compare(scheduler.schedule)
        assert {slot.name for slot in scheduler.roster.slots()} == {"new"}

    def test_tables_that_cannot_be_read_are_told_with_the_way_out(self, monkeypatch):
        def refuse(self):
            raise OperationalError("no such table: django_celery_beat_periodictask")

        monkeypatch.setattr(DatabaseScheduler, "enabled_models", refuse)
        app = new_app(beat_scheduler="celery_redlock_beat.contrib.django:DatabaseScheduler")
        with pytest.raises(ConfigurationError, match=r"no such table.* run 'manage.py migrate'"):
            scheduler_of(app)


class TestSubclasses:
    def test_a_subclass_says_which_rows_there_are(self, start):
        class Mine(DatabaseScheduler):
            def enabled_models_qs(self):
                return super().enabled_models_qs().filter(name__startswith="mine")

        add("mine 1")
        add("other")
        assert set(start(Mine).schedule) == {"mine 1"}

    def test_it_may_replace_the_query_and_the_list(self, start):
        class Mine(DatabaseScheduler):
            def enabled_models_qs(self):
                return self.Model.objects.enabled()

            def enabled_models(self):
                return [each for each in super().enabled_models() if each.name == "a"]

        add("a")
        add("b")
        assert set(start(Mine).schedule) == {"a"}

    def test_it_may_have_models_of_its_own(self, start):
        class Task(models.PeriodicTask):
            class Meta:
                proxy = True
                app_label = "django_celery_beat"

        class Changes(models.PeriodicTasks):
            class Meta:
                proxy = True
                app_label = "django_celery_beat"

            asked = 0

            @classmethod
            def last_change(cls):
                Changes.asked += 1
                return super().last_change()

        class Mine(DatabaseScheduler):
            Model = Task
            Changes = None

        Mine.Changes = Changes
        add("a")
        assert set(start(Mine).schedule) == {"a"}
        assert Changes.asked


@pytest.mark.parametrize("name", ["django:DatabaseScheduler", "django.DatabaseScheduler"])
def test_the_scheduler_can_be_named_in_both_ways(name):
    assert symbol_by_name(f"celery_redlock_beat.contrib.{name}") is DatabaseScheduler


@pytest.mark.parametrize("missing", ["django", "django_celery_beat"])
def test_without_django_an_import_says_what_to_install(missing):
    code = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        "import celery_redlock_beat, celery_redlock_beat.cli.import_django\n"
        "try:\n"
        "    import celery_redlock_beat.contrib.django\n"
        "except ImportError as exc:\n"
        "    print(exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "celery_redlock_beat.contrib.django needs django" in done.stdout
    assert "install 'celery-redlock-beat[django]'" in done.stdout
