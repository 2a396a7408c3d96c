"""RedBeat's entry and scheduler without a server: arguments, keys, when it is due, and the line."""

from __future__ import annotations

import logging
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery, current_app
from celery.beat import ScheduleEntry
from celery.schedules import crontab, schedule
from kombu.utils.imports import symbol_by_name

from celery_redlock_beat import ConfigurationError, RedlockScheduler
from celery_redlock_beat.contrib import redbeat
from celery_redlock_beat.contrib.redbeat import (
    RedBeatScheduler,
    RedBeatSchedulerEntry,
    ensure_conf,
    get_redis,
)
from celery_redlock_beat.contrib.redbeat.keeper import keeper_of
from celery_redlock_beat.contrib.redbeat.schedules import rrule
from celery_redlock_beat.timetables import Opaque
from celery_redlock_beat.timetables.interval import Interval

START = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
STATIC = {
    "minutely": {"task": "shop.a", "schedule": 60.0},
    "off": {"task": "shop.b", "schedule": 60.0, "enabled": False},
    "weekly": {"task": "shop.c", "schedule": crontab(0, 9, "mon"), "args": (1,), "jitter": 5},
}


def app_with(**conf):
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(redlock_beat_url="memory://", result_expires=None, **conf)
    return app


@pytest.fixture
def app():
    return app_with()


def entry_in(app, spec=60, **fields):
    return RedBeatSchedulerEntry("report", "shop.report", spec, app=app, **fields)


def slots_of(scheduler):
    return {slot.name: slot for slot in scheduler.roster.slots()}


def test_its_arguments_are_in_redbeats_order(app):
    entry = RedBeatSchedulerEntry(
        "report", "shop.report", schedule(60), [1], {"a": 2}, False, {"queue": "q"}, app=app
    )
    assert (entry.name, entry.task, entry.schedule) == ("report", "shop.report", schedule(60))
    assert (entry.args, entry.kwargs, entry.options) == ([1], {"a": 2}, {"queue": "q"})
    assert (entry.enabled, entry.total_run_count) == (False, 0)


def test_what_is_left_out_is_as_with_redbeat(app):
    entry = entry_in(app)
    assert (entry.args, entry.kwargs, entry.options, entry.enabled) == (None, {}, {}, True)
    assert entry.last_run_at.tzinfo


def test_without_an_app_it_is_the_current_one(app):
    before = current_app._get_current_object()
    app.set_current()
    try:
        entry = RedBeatSchedulerEntry("report", "shop.report", 60)
        assert entry.app is app
        assert entry.key == "redbeat:report"
        assert ensure_conf() is ensure_conf(app)
    finally:
        before.set_current()


def test_it_takes_policies_and_refuses_what_nobody_knows(app):
    assert entry_in(app, timezone="Europe/Berlin").timezone == "Europe/Berlin"
    with pytest.raises(ConfigurationError, match="jitter"):
        entry_in(app, jitterr=5)


def test_its_key_has_the_prefix_that_is_set():
    app = app_with(redbeat_key_prefix="here:")
    assert entry_in(app).key == RedBeatSchedulerEntry.generate_key(app, "report") == "here:report"


@pytest.mark.parametrize("key", ["elsewhere:report", "redbeat:", "report"])
def test_a_key_that_is_none_of_an_entry_is_not_found(app, key):
    with pytest.raises(KeyError):
        RedBeatSchedulerEntry.from_key(key, app)


def test_an_interval_is_due_a_period_after_its_last_run(app):
    entry = entry_in(app, schedule(3600))
    assert entry.due_at == entry.last_run_at + timedelta(hours=1)
    assert entry.score == int(entry.due_at.timestamp())


@pytest.mark.parametrize("last_run_at", [LONG_AGO, datetime.min, None])
@pytest.mark.parametrize("spec", [60, crontab(minute="*/5")])
def test_what_is_overdue_is_due_now(app, spec, last_run_at):
    entry = entry_in(app, spec)
    entry.last_run_at = last_run_at
    before = entry.default_now()
    assert before <= entry.due_at <= entry.default_now()


def test_a_crontab_is_due_at_its_minute_and_never_before(app):
    entry = entry_in(app, crontab(minute=(datetime.now(UTC).minute + 30) % 60))
    due_at = entry.due_at
    assert timedelta(0) <= due_at - due_at.replace(second=0, microsecond=0) < timedelta(seconds=1)
    assert due_at.minute == next(iter(entry.schedule.minute))


def test_what_is_over_is_not_due_any_more(app):
    entry = entry_in(app, rrule("DAILY", dtstart=START, count=2), last_run_at=START)
    assert entry.due_at is not None
    entry.last_run_at = START + timedelta(days=1)
    assert (entry.due_at, entry.score) == (None, -1)


def test_it_is_due_when_its_schedule_says_so_and_never_while_disabled(app):
    entry = entry_in(app, last_run_at=LONG_AGO)
    assert entry.is_due().is_due
    entry.enabled = False
    assert tuple(entry.is_due()) == (False, 5.0)


def test_next_is_how_it_is_after_a_run(app):
    entry = entry_in(app, args=[1], enabled=False, timezone="UTC")
    after = next(entry)
    assert (after.total_run_count, after.enabled, after.timezone) == (1, False, "UTC")
    assert after.last_run_at >= entry.last_run_at
    assert entry.next(START).last_run_at == START
    assert entry._next_instance(only_update_last_run_at=True).total_run_count == 0


def test_it_is_pickled_with_all_that_it_says(app):
    entry = entry_in(app, args=[1], options={"queue": "q"}, enabled=False, jitter=5)
    again = pickle.loads(pickle.dumps(entry))
    assert type(again) is RedBeatSchedulerEntry
    assert again == entry
    assert (again.name, again.last_run_at) == (entry.name, entry.last_run_at)
    assert (again.enabled, again.jitter) == (False, 5)


def test_entries_are_equal_that_say_the_same(app):
    assert entry_in(app) == entry_in(app, args=[], kwargs={})
    assert entry_in(app, args=(1, 2)) == entry_in(app, args=[1, 2], phase=7)
    assert entry_in(app, phase=8) != entry_in(app, phase=7)
    assert entry_in(app) != entry_in(app, args=[1])
    assert entry_in(app) != entry_in(app, enabled=False)


def test_one_without_a_schedule_can_be_made_to_be_deleted(app):
    assert RedBeatSchedulerEntry("report", app=app).key == "redbeat:report"


@pytest.mark.parametrize("separator", [".", ":"])
def test_the_scheduler_is_found_by_its_name(separator):
    name = f"celery_redlock_beat.contrib.redbeat{separator}RedBeatScheduler"
    assert symbol_by_name(name) is RedBeatScheduler


def test_its_names_are_redbeats():
    names = {"RedBeatScheduler", "RedBeatSchedulerEntry", "ensure_conf", "get_redis"}
    assert set(redbeat.__all__) == names


def test_entries_from_code_are_redbeats_with_the_timetables_of_ours():
    app = app_with(beat_schedule=STATIC)
    theirs, ours = RedBeatScheduler(app), RedlockScheduler(app)
    assert {type(entry) for entry in theirs.schedule.values()} == {RedBeatSchedulerEntry}
    assert slots_of(theirs) == slots_of(ours)
    assert isinstance(slots_of(theirs)["off"].timetable, Interval)
    assert theirs.roster.faults == {}
    assert theirs.info == ours.info
    assert theirs.entry_of("off") is None
    assert theirs.entry_of("weekly").args == (1,)


def test_an_entry_that_is_there_stays_as_it_is(app):
    entry = entry_in(app)
    scheduler = RedBeatScheduler(app, schedule={"report": entry})
    scheduler.update_from_dict({"report": entry})
    assert scheduler.schedule["report"] is entry
    assert entry.app is app


def test_celerys_own_entries_are_taken(app):
    stock = ScheduleEntry("stock", "shop.stock", schedule=schedule(60), app=app)
    scheduler = RedBeatScheduler(app)
    scheduler.update_from_dict({"stock": stock})
    assert scheduler.schedule["stock"].task == "shop.stock"


def test_an_entry_of_a_users_own_class_decides_itself():
    class Own(RedBeatSchedulerEntry):
        def is_due(self):
            return super().is_due()

    class Scheduler(RedBeatScheduler):
        Entry = Own

    scheduler = Scheduler(app_with(beat_schedule=STATIC))
    assert isinstance(slots_of(scheduler)["minutely"].timetable, Opaque)
    assert scheduler.schedule["off"].is_due().is_due is False


def test_a_rule_without_a_start_is_left_out_of_the_code_with_the_way_out():
    at_once = {"task": "shop.a", "schedule": rrule("DAILY")}
    started = {"task": "shop.a", "schedule": rrule("DAILY", dtstart=START)}
    scheduler = RedBeatScheduler(app_with(beat_schedule={"at once": at_once, "started": started}))
    assert set(slots_of(scheduler)) == {"started"}
    assert "give it one" in scheduler.roster.faults["at once"]


def test_the_lock_is_told_once_to_have_no_effect(app, caplog):
    with caplog.at_level(logging.WARNING):
        RedBeatScheduler(app, lock_key="key", lock_timeout=7, lazy=True)
        assert "lock_key" not in caplog.text
        scheduler = RedBeatScheduler(app, "key", 7)
    assert caplog.text.count("have no effect") == 1
    assert scheduler.lock_timeout == 7


@pytest.mark.parametrize("conf", [{}, {"redbeat_lock_key": "key", "redbeat_lock_timeout": 9}])
def test_redbeats_own_receiver_finds_no_lock_to_wait_for(conf):
    scheduler = RedBeatScheduler(app_with(**conf))
    assert scheduler.lock_key is scheduler.lock is None
    assert scheduler.lock_timeout == conf.get("redbeat_lock_timeout", scheduler.max_interval * 5)


def test_the_configuration_has_redbeats_names_and_is_kept_on_the_app():
    app = app_with(
        REDBEAT_KEY_PREFIX="here:",
        redbeat_redis_url="redis://elsewhere/3",
        redbeat_redis_options={"socket_timeout": 1},
        redbeat_redis_use_ssl={"ssl_ca_certs": "ca.pem"},
        redbeat_lock_key=":alone",
        redbeat_lock_timeout=9,
    )
    conf = ensure_conf(app)
    assert conf is app.redbeat_conf is ensure_conf(app)
    assert (conf.key_prefix, conf.schedule_key) == ("here:", "here::schedule")
    assert (conf.statics_key, conf.lock_key) == ("here::statics", "here::alone")
    assert (conf.redis_url, conf.lock_timeout) == ("redis://elsewhere/3", 9)
    assert conf.redbeat_redis_options == {"socket_timeout": 1}
    assert conf.redis_use_ssl == {"ssl_ca_certs": "ca.pem"}


def test_the_configuration_falls_back_to_the_brokers():
    app = Celery("shop", broker="redis://broker/1", set_as_current=False)
    app.conf.update(broker_transport_options={"visibility_timeout": 5}, redbeat_lock_key=None)
    conf = ensure_conf(app)
    assert (conf.key_prefix, conf.redis_url, conf.lock_key) == (
        "redbeat:",
        "redis://broker/1",
        None,
    )
    assert conf.redbeat_redis_options == {"visibility_timeout": 5}
    conf.schedule = STATIC
    assert conf.schedule is app.conf.beat_schedule is STATIC


def test_redbeats_client_is_made_without_connecting_and_kept():
    app = app_with(redbeat_redis_url="redis://elsewhere:7/3")
    client = get_redis(app)
    told = client.connection_pool.connection_kwargs
    assert client is app.redbeat_redis is get_redis(app)
    assert (told["host"], told["port"], told["db"]) == ("elsewhere", 7, 3)
    assert told["decode_responses"] is True


def test_a_client_that_is_there_is_taken(app):
    app.redbeat_redis = object()
    assert get_redis(app) is app.redbeat_redis


def test_a_process_has_one_keeper_per_app(app):
    assert keeper_of(app) is keeper_of(app)
    assert keeper_of(app_with()) is not keeper_of(app)
