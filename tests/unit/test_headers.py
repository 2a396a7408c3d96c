"""What a message tells of its tick, and that nothing of the user's is touched."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import crontab

from celery_redlock_beat.delivery.headers import CurrentTick, current_tick, message_for
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.lateness import PassedOver
from celery_redlock_beat.ledger import Grant
from celery_redlock_beat.ticks import Reason, Tick, to_micros

INSTANT = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)
THREE = PassedOver({Reason.SUPERSEDED: 3})
GRANT = Grant(Tick("report", to_micros(INSTANT)), fence=7, attempt=2, previous=0, deadline=1)
TOLD = CurrentTick("report", INSTANT, fence=7, attempt=2, passed_over=3)


class OwnEntry(ScheduleEntry):
    def __init__(self, *args, colour="blue", **kwargs):
        super().__init__(*args, **kwargs)
        self.colour = colour


@pytest.fixture
def app():
    app = Celery("shop", set_as_current=False)
    app.conf.task_always_eager = True
    app.conf.beat_schedule = {}
    return app


def entry_for(app, kind=ScheduleEntry, **fields):
    fields = {"name": "report", "task": "t", "schedule": timedelta(1), "app": app, **fields}
    return kind(**fields)


def test_the_message_carries_its_tick(app):
    message = message_for(entry_for(app), GRANT, "shop", THREE)
    assert message.options == {
        "task_id": GRANT.tick.task_id("shop"),
        "headers": {
            "redlock_tick": "2024-02-29T12:00:00.000001+00:00",
            "redlock_entry": "report",
            "redlock_fence": 7,
            "redlock_attempt": 2,
            "redlock_passed_over": 3,
            "redlock_passed_over_exact": True,
            "periodic_task_name": "report",
            "celery_beat_task": True,
        },
    }


def test_a_full_second_keeps_its_microseconds(app):
    grant = Grant(Tick("report", to_micros(INSTANT.replace(microsecond=0))), 1, 1, 0, 0)
    message = message_for(entry_for(app), grant, "shop")
    assert message.options["headers"]["redlock_tick"] == "2024-02-29T12:00:00.000000+00:00"


def test_nothing_that_the_user_owns_is_changed(app):
    options = {"queue": "q", "headers": {"mine": 1}}
    args, kwargs = [1, [2]], {"a": {"b": 1}}
    entry = entry_for(app, args=args, kwargs=kwargs, options=options)
    before = copy.deepcopy((options, args, kwargs))
    message = message_for(entry, GRANT, "shop")
    message.options["headers"]["celery_beat_task"] = "changed"
    message.options["x"] = message.kwargs["x"] = 1
    message.args.append(3)
    assert (options, args, kwargs) == before
    assert entry.options is options
    assert entry.args is args
    assert entry.kwargs is kwargs


def test_the_users_own_headers_travel_but_cannot_pose_as_a_tick(app):
    options = {"headers": {"mine": 1, "redlock_fence": 99, "periodic_task_name": "theirs"}}
    headers = message_for(entry_for(app, options=options), GRANT, "shop").options["headers"]
    assert headers["mine"] == 1
    assert headers["redlock_fence"] == 7
    assert headers["periodic_task_name"] == "theirs"


def test_a_crontab_is_told_in_the_zone_of_its_entry_and_the_users_own_stays_as_it_was(app):
    spec = crontab(minute=0, app=app)
    entry = entry_for(app, RedlockEntry, schedule=spec, timezone="America/New_York")
    assert str(message_for(entry, GRANT, "shop").schedule.tz) == "America/New_York"
    assert entry.schedule is spec
    assert "tz" not in vars(spec)


def test_a_fixed_task_id_is_kept(app):
    message = message_for(entry_for(app, options={"task_id": "mine"}), GRANT, "shop")
    assert message.options["task_id"] == "mine"


def test_a_task_id_of_none_is_no_task_id(app):
    message = message_for(entry_for(app, options={"task_id": None}), GRANT, "shop")
    assert message.options["task_id"] == GRANT.tick.task_id("shop")


def test_any_subclass_survives_the_copy(app):
    entry = entry_for(app, OwnEntry, colour="red")
    message = message_for(entry, GRANT, "shop")
    assert type(message) is OwnEntry
    assert message.colour == "red"
    assert message.app is app
    assert message.schedule is entry.schedule


@pytest.mark.parametrize("args", [None, (), (1, 2), [1]])
def test_arguments_of_every_form_survive_the_copy(app, args):
    assert message_for(entry_for(app, args=args), GRANT, "shop").args == args


def test_there_is_no_current_tick_outside_of_a_task():
    assert current_tick() is None


def test_there_is_no_current_tick_in_a_task_that_was_not_sent_by_beat(app):
    task = app.task(current_tick, name="t", shared=False)
    assert task() is None
    assert task.apply().get() is None


def test_an_eager_task_knows_its_tick(app):
    task = app.task(current_tick, name="t", shared=False)
    options = message_for(entry_for(app), GRANT, "shop", THREE).options
    assert task.apply(headers=options["headers"]).get() == TOLD


def test_what_a_periodic_task_calls_or_sends_has_no_tick(app):
    def ask():
        return current_tick()

    inner = app.task(ask, name="inner", shared=False)

    def outer():
        return inner(), inner.delay().get(disable_sync_subtasks=False), current_tick()

    task = app.task(outer, name="t", shared=False)
    headers = message_for(entry_for(app), GRANT, "shop", THREE).options["headers"]
    assert task.apply(headers=headers).get() == (None, None, TOLD)


def test_celerys_own_apply_async_leaves_the_schedule_as_it_was(app):
    app.task(current_tick, name="t", shared=False)
    options = {"headers": {"mine": 1}}
    entry = entry_for(app, options=options)
    scheduler = Scheduler(app=app, lazy=True)
    scheduler.apply_async(message_for(entry, GRANT, "shop"), advance=False)
    assert options == {"headers": {"mine": 1}}
