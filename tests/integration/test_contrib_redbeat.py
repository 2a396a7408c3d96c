"""What is saved through RedBeat's interface is stored, and all nodes send it, on a real server."""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, schedule, solar
from dateutil.rrule import FR, MO

from celery_redlock_beat import (
    Control,
    ControlError,
    EntryError,
    EntryExists,
    EntryPaused,
    NoSuchEntry,
    NotStored,
    cron,
)
from celery_redlock_beat.contrib.redbeat import (
    RedBeatScheduler,
    RedBeatSchedulerEntry,
    get_redis,
)
from celery_redlock_beat.contrib.redbeat.decoder import RedBeatJSONEncoder
from celery_redlock_beat.contrib.redbeat.keeper import keeper_of
from celery_redlock_beat.contrib.redbeat.schedules import rrule
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SECOND
from support.control_case import HALF_AN_HOUR_AWAY
from support.node_here import QUICK
from support.nodes import BeatNode, WorkerNode, write_project
from support.servers import wait_until

LIMIT = 20.0
HOUR = timedelta(hours=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
DECADE = timedelta(days=3650)
STATIC = {"static": {"task": "shop.static", "schedule": DECADE, "args": [1]}}
SCHEDULER = "celery_redlock_beat.contrib.redbeat.RedBeatScheduler"


class Shop:
    """An app on a server, whose entries are saved as RedBeat's; nodes pass when told to."""

    def __init__(self, server, **conf):
        self.app = Celery("shop", broker=server.url, set_as_current=False)
        self.app.conf.update(
            result_expires=None, beat_schedule=STATIC, beat_scheduler=SCHEDULER, **QUICK, **conf
        )
        self.control = Control(self.app, who="anna@here")
        self.client = server.client()
        self.nodes = []

    def close(self):
        for node in self.nodes:
            node.close()
        keeper_of(self.app).close()
        self.control.close()
        self.client.close()

    def entry(self, spec=60, name="report", **fields):
        spec = schedule(spec) if isinstance(spec, int | float) else spec
        return RedBeatSchedulerEntry(name, "shop.report", spec, app=self.app, **fields)

    def load(self, name="report"):
        return RedBeatSchedulerEntry.from_key(f"redbeat:{name}", self.app)

    def phase(self, name="report"):
        return self.control.get(name).definition.get("phase")

    def starts(self, number=2):
        self.nodes = [RedBeatScheduler(app=self.app) for _ in range(number)]

    def until(self, condition):
        wait_until(lambda: condition() or self.passes(), LIMIT, "what nodes should do", 0.01)

    def passes(self):
        for node in self.nodes:
            node.tick()

    def knows(self, name="report"):
        """Have all nodes know a stored entry."""
        self.until(lambda: all(node.entry_of(name) for node in self.nodes))

    def messages(self):
        return [json.loads(each)["headers"] for each in self.client.lrange("celery", 0, -1)]

    def sent(self, name="report"):
        """Count the messages by tick."""
        told = [each for each in self.messages() if each["redlock_entry"] == name]
        return Counter(each["redlock_tick"] for each in told)


@pytest.fixture
def shop(shared_redis):
    shop = Shop(shared_redis)
    yield shop
    shop.close()


def test_a_saved_entry_is_sent_by_all_nodes_once_per_tick(shop):
    shop.starts()
    shop.entry(0.2, args=["a"], kwargs={"b": 1}, options={"expires": 60}).save()
    shop.until(lambda: len(shop.sent()) >= 5)
    assert set(shop.sent().values()) == {1}
    assert {each["task"] for each in shop.messages()} == {"shop.report"}


def test_an_interval_first_runs_one_period_after_it_was_saved(shop):
    entry = shop.entry(3600)
    entry.save()
    assert shop.control.get("report").next == entry.last_run_at + HOUR == entry.due_at


def test_a_clock_that_is_ahead_sends_nothing_early(shop):
    entry = shop.entry(3600, last_run_at=datetime.now(UTC) + timedelta(minutes=10))
    before = datetime.now(UTC)
    entry.save()
    assert before < shop.control.get("report").next - HOUR < datetime.now(UTC)


def test_a_later_save_keeps_the_beat_and_changes_the_rest(shop):
    shop.entry(3600).save()
    view = shop.control.get("report")
    changed = shop.entry(3600, args=[2], enabled=False).save()
    assert isinstance(changed, RedBeatSchedulerEntry)
    again = shop.control.get("report")
    assert again.definition["phase"] == view.definition["phase"]
    assert (again.definition["args"], again.state) == ([2], "disabled")


def test_to_save_the_same_again_changes_nothing(shop):
    shop.entry(3600).save()
    view = shop.control.get("report")
    shop.entry(3600).save()
    shop.load().save()
    assert shop.control.get("report").revision == view.revision


def test_another_period_counts_from_the_last_run(shop):
    entry = shop.entry(3600).save()
    loaded = shop.load()
    loaded.schedule = schedule(7200)
    loaded.save()
    assert shop.control.get("report").next == entry.last_run_at + timedelta(hours=2)


def test_an_interval_may_become_something_else_and_come_back(shop):
    shop.entry(3600).save()
    loaded = shop.load()
    loaded.schedule = crontab(minute=HALF_AN_HOUR_AWAY)
    loaded.save()
    assert shop.phase() is None
    loaded.schedule = schedule(3600)
    loaded.save()
    assert shop.phase() is not None


def test_what_was_due_since_its_last_run_is_sent_when_it_is_saved(shop):
    shop.starts()
    shop.entry(3600, last_run_at=datetime.now(UTC) - timedelta(minutes=90)).save()
    shop.entry(3600, "fresh").save()
    shop.knows("fresh")
    shop.until(lambda: len(shop.sent()) == 1)
    assert sum(shop.sent("fresh").values()) == 0


def test_an_entry_that_never_ran_by_its_own_account_is_sent_once(shop):
    shop.starts()
    shop.entry(3600, last_run_at=datetime.min).save()
    shop.until(lambda: len(shop.sent()) == 1)
    for _ in range(5):
        shop.passes()
    assert sum(shop.sent().values()) == 1


KINDS = {
    "interval": schedule(90.5),
    "interval in step": schedule(3600, relative=True),
    "crontab": crontab(minute="*/5", day_of_week="mon-fri"),
    "solar": solar("sunset", 52.5, 13.4),
    "rule": rrule(
        "MONTHLY",
        dtstart=datetime(2026, 1, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")),
        byweekday=[MO(2), FR(-1)],
    ),
    "cron string": cron("*/5 9-17 * * MON-FRI"),
}


@pytest.mark.parametrize("spec", KINDS.values(), ids=KINDS)
def test_every_schedule_is_stored_and_comes_back(shop, spec):
    entry = shop.entry(spec).save()
    shop.starts(1)
    shop.knows()
    assert shop.control.get("report").state == "active"
    loaded = shop.load()
    assert loaded == entry
    assert loaded.schedule == spec
    assert isinstance(loaded.schedule, rrule) == isinstance(spec, rrule)
    assert abs(loaded.due_at - shop.control.get("report").next) < timedelta(seconds=1)


def test_an_entry_comes_back_by_its_key_with_all_that_was_saved(shop):
    entry = shop.entry(args=[1, "a"], kwargs={"b": [2]}, options={"queue": "q"}, enabled=False)
    loaded = RedBeatSchedulerEntry.from_key(entry.save().key, app=shop.app)
    assert loaded == entry
    assert (loaded.name, loaded.task, loaded.enabled) == ("report", "shop.report", False)
    assert (loaded.args, loaded.kwargs, loaded.options) == ([1, "a"], {"b": [2]}, {"queue": "q"})
    assert (loaded.last_run_at, loaded.total_run_count) == (entry.last_run_at, 0)
    assert shop.entry().args is None


def test_what_a_caller_does_to_an_entry_is_not_remembered_until_it_is_saved(shop):
    shop.entry(args=[1], kwargs={"a": {}}).save()
    loaded = shop.load()
    loaded.args.append(2)
    loaded.kwargs["a"]["b"] = 3
    assert (shop.load().args, shop.load().kwargs) == ([1], {"a": {}})
    loaded.save()
    assert (shop.load().args, shop.load().kwargs) == ([1, 2], {"a": {"b": 3}})


def test_its_last_run_and_the_number_of_runs_are_the_ledgers(shop):
    shop.starts()
    shop.entry(0.2).save()
    shop.until(lambda: len(shop.sent()) >= 3)
    shop.control.pause("report")
    loaded = shop.load()
    assert loaded.total_run_count == len(shop.sent())
    assert loaded.last_run_at.isoformat(timespec="microseconds") == max(shop.sent())


def test_definition_and_meta_are_told_by_key(shop):
    entry = shop.entry(args=[1]).save()
    definition = RedBeatSchedulerEntry.load_definition(entry.key, shop.app)
    assert RedBeatSchedulerEntry(**definition, app=shop.app) == entry
    meta = RedBeatSchedulerEntry.load_meta(entry.key, shop.app)
    assert meta == {"last_run_at": entry.last_run_at, "total_run_count": 0}
    assert RedBeatSchedulerEntry.load_meta("redbeat:nobody", shop.app) == {"last_run_at": None}
    text = json.dumps({"name": "a", "schedule": schedule(60)}, cls=RedBeatJSONEncoder)
    told = RedBeatSchedulerEntry.load_definition(entry.key, shop.app, definition=text)
    assert told == {"name": "a", "schedule": schedule(60)}
    assert RedBeatSchedulerEntry.decode_meta(json.dumps({"total_run_count": 7})) == {
        "total_run_count": 7
    }


@pytest.mark.parametrize("load", ["from_key", "load_definition"])
def test_a_key_of_no_entry_is_an_error(shop, load):
    with pytest.raises(KeyError, match="redbeat:nobody"):
        getattr(RedBeatSchedulerEntry, load)("redbeat:nobody", shop.app)


def test_an_entry_that_is_stored_and_cannot_be_read_is_told_and_can_be_replaced(shop):
    entry = shop.entry().save()
    key = ledger_keys("shop")["entries"]
    revision = shop.client.hget(key, "report").split()[0]
    shop.client.hset(key, "report", revision + b" {}")
    with pytest.raises(EntryError, match="task"):
        shop.load()
    entry.save()
    assert shop.load() == entry


def test_a_user_may_have_an_entry_class_of_their_own(shop):
    class Own(RedBeatSchedulerEntry):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.label = f"<{self.name}>"

    Own("report", "shop.report", schedule(60), app=shop.app).save()
    assert Own.from_key("redbeat:report", shop.app).label == "<report>"


def test_an_entry_from_code_is_found_and_cannot_be_saved_or_deleted(shop):
    loaded = shop.load("static")
    assert (loaded.task, loaded.args, loaded.last_run_at) == ("shop.static", [1], None)
    with pytest.raises(EntryExists, match="defined in code"):
        loaded.save()
    with pytest.raises(NotStored):
        loaded.delete()
    shop.starts(1)
    shop.until(lambda: shop.load("static").last_run_at)


def test_what_is_deleted_is_gone_and_may_be_deleted_again(shop):
    entry = shop.entry().save()
    shop.load().delete()
    entry.delete()
    RedBeatSchedulerEntry("report", app=shop.app).delete()
    with pytest.raises(NoSuchEntry):
        shop.control.get("report")


@pytest.mark.parametrize("deed", ["delete", "reschedule"])
def test_a_name_is_no_pattern(shop, deed):
    shop.entry(name="report-1").save()
    shop.entry(name="*").save().delete()
    if deed == "delete":
        shop.entry(name="report-*").delete()
    else:
        with pytest.raises(NoSuchEntry):
            shop.entry(name="report-*").reschedule(LONG_AGO)
    assert shop.control.get("report-1").last is None
    assert shop.messages() == []


def test_its_rank_is_its_place_among_what_is_due_next(shop):
    entries = [shop.entry(period, f"every {period}").save() for period in (1800, 300, 900)]
    disabled = shop.entry(60, "off", enabled=False).save()
    assert [entry.rank for entry in entries] == [2, 0, 1]
    assert disabled.rank is None
    assert shop.entry(name="nobody").rank is None


def test_rescheduled_without_an_instant_an_interval_counts_from_now(shop):
    shop.entry(3600, last_run_at=datetime.now(UTC) - timedelta(minutes=30)).save()
    entry = shop.load()
    before = datetime.now(UTC)
    entry.reschedule()
    assert before <= entry.last_run_at
    assert before <= shop.control.get("report").next - HOUR <= datetime.now(UTC)
    assert shop.messages() == []


def test_rescheduled_to_a_recent_run_an_interval_is_due_a_period_after_that(shop):
    entry = shop.entry(3600).save()
    at = entry.last_run_at - timedelta(minutes=50)
    entry.reschedule(at)
    assert shop.control.get("report").next == at + HOUR == entry.due_at
    assert shop.load().save() is not None
    assert shop.control.get("report").next == at + HOUR


@pytest.mark.parametrize("last_run_at", [LONG_AGO, datetime.min])
def test_rescheduled_to_be_overdue_it_is_sent_once_and_at_once(shop, last_run_at):
    shop.starts()
    entry = shop.entry(3600).save()
    shop.knows()
    before = datetime.now(UTC)
    entry.reschedule(last_run_at)
    for _ in range(5):
        shop.passes()
    assert sum(shop.sent().values()) == 1
    assert before <= shop.control.get("report").next - HOUR <= datetime.now(UTC)


def test_a_crontab_and_an_entry_from_code_are_sent_and_keep_their_instants(shop):
    shop.entry(crontab(minute=HALF_AN_HOUR_AWAY)).save()
    before = [shop.control.get(name).next for name in ("report", "static")]
    for name in ("report", "static"):
        shop.load(name).reschedule(datetime.min)
        assert sum(shop.sent(name).values()) == 1
    assert [shop.control.get(name).next for name in ("report", "static")] == before


def test_what_was_due_before_a_reschedule_is_not_caught_up(shop):
    hours_ago = datetime.now(UTC) - timedelta(hours=3)
    shop.entry(crontab(minute="*"), last_run_at=hours_ago).save()
    shop.load().reschedule()
    assert shop.control.get("report").state == "active"
    assert shop.control.totals()["skipped:paused"] >= 179
    shop.starts(1)
    shop.knows()
    shop.passes()
    assert all(tick > hours_ago.isoformat() for tick in shop.sent())
    assert len(shop.sent()) <= 1  # the minute may have ended meanwhile


def test_rescheduled_to_an_instant_to_come_it_is_held_back_until_then(shop):
    entry = shop.entry(3600).save()
    at = datetime.now(UTC) + timedelta(hours=5)
    entry.reschedule(at)
    view = shop.control.get("report")
    assert view.state == "paused"
    assert view.paused.until == at
    shop.control.resume("report")
    assert (shop.control.get("report").next - at) % (HOUR) == timedelta(0)


def test_the_next_reschedule_ends_what_the_last_one_held_back(shop):
    entry = shop.entry(3600).save()
    at = datetime.now(UTC) + timedelta(hours=5)
    entry.reschedule(at)
    entry.reschedule(at + HOUR)
    assert shop.control.get("report").paused.until == at + HOUR
    entry.reschedule()
    assert shop.control.get("report").state == "active"


def test_an_operators_pause_outlasts_a_reschedule(shop):
    entry = shop.entry(3600).save()
    shop.control.pause("report", note="the database moves")
    entry.reschedule(datetime.now(UTC) + timedelta(hours=5))
    entry.reschedule()
    held = shop.control.get("report").paused
    assert (held.note, held.until) == ("the database moves", None)


def test_what_is_disabled_or_paused_is_not_sent_by_a_reschedule(shop):
    shop.entry(3600, enabled=False).save().reschedule(LONG_AGO)
    assert shop.messages() == []
    shop.entry(3600).save()
    shop.control.pause("report")
    with pytest.raises(EntryPaused):
        shop.load().reschedule(LONG_AGO)
    shop.load().reschedule()
    assert shop.control.get("report").state == "paused"
    assert shop.messages() == []


def test_what_is_not_there_cannot_be_rescheduled(shop):
    with pytest.raises(NoSuchEntry, match="save it first"):
        shop.entry().reschedule()


class Whim(schedule):
    """A schedule class of a user's own."""


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"spec": Whim(60)}, "is code"),
        ({"spec": 0}, "no time at all"),
        ({"args": [object()]}, "does not come back"),
        ({"name": ""}, "empty"),
    ],
)
def test_what_could_not_be_sent_is_not_saved(shop, fields, told):
    with pytest.raises(EntryError, match=told):
        shop.entry(**fields).save()


def test_of_many_who_save_one_entry_each_is_done_and_one_is_last(shop):
    together = Barrier(8)

    def save(number):
        entry = shop.entry(3600, args=[number])
        together.wait(LIMIT)
        for _ in range(5):
            entry.save()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(8)))
    assert shop.load().args[0] in range(8)
    assert shop.control.get("report").next > datetime.now(UTC)


def test_of_two_that_save_one_entry_by_connections_of_their_own_both_are_done(shop, shared_redis):
    others = [Shop(shared_redis) for _ in range(2)]  # each with a keeper of its own, as processes

    def save(other):
        for number in range(20):
            other.entry(3600, args=[number]).save()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save, others))
    for other in others:
        other.close()
    assert shop.load().args == [19]


def interfering(shop, monkeypatch, times):
    """Have somebody else change the entry after each of so many looks at it."""
    access, numbers = keeper_of(shop.app)._access, iter(range(times))
    look = access.looks

    def looks(names):
        looked = list(look(names))
        for number in numbers:
            shop.control.update("report", args=[f"theirs {number}"])
            break
        return iter(looked)

    monkeypatch.setattr(access, "looks", looks)


def test_a_save_that_somebody_else_was_quicker_than_looks_again(shop, monkeypatch):
    shop.entry(3600).save()
    phase = shop.phase()
    interfering(shop, monkeypatch, 3)
    shop.entry(3600, args=["ours"]).save()
    assert (shop.control.get("report").definition["args"], shop.phase()) == (["ours"], phase)
    details = [(each.node, each.action) for each in shop.control.history("report")]
    assert details.count(("anna@here", "changed")) == 3


def test_a_save_that_is_always_too_late_is_given_up_and_says_so(shop, monkeypatch):
    shop.entry(3600).save()
    interfering(shop, monkeypatch, 1000)
    with pytest.raises(ControlError, match="save it again"):
        shop.entry(3600, args=["ours"]).save()
    assert shop.control.get("report").definition["args"] == ["theirs 19"]


def _save_in_fork(shop, answers):
    shop.entry(3600, "from the child").save()
    answers.put((shop.load("from the parent").name, keeper_of(shop.app).rank("from the child")))


def test_a_fork_has_connections_of_its_own(shop):
    shop.entry(7200, "from the parent").save()
    parents = keeper_of(shop.app)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_save_in_fork, args=(shop, answers))
    child.start()
    assert answers.get(timeout=LIMIT) == ("from the parent", 0)
    child.join(LIMIT)
    assert child.exitcode == 0
    assert keeper_of(shop.app) is parents
    assert shop.load("from the child").due_at > datetime.now(UTC)


def test_redbeats_client_answers_with_texts_and_has_nothing_of_ours(shop):
    shop.entry().save()
    client = get_redis(shop.app)
    client.set("redbeat:own", "text")
    assert client.get("redbeat:own") == "text"
    assert client.keys("redbeat:*") == ["redbeat:own"]
    client.close()


def test_the_history_says_who_did_what_and_how(shop):
    shop.entry().save()
    (record,) = shop.control.history("report")
    assert (record.action, record.detail) == ("added", "through RedBeat's interface")


def test_nodes_send_static_and_saved_entries_after_a_change_of_imports_alone(shop):
    shop.app.conf.beat_schedule = {"often": {"task": "shop.often", "schedule": 0.2}}
    shop.starts()
    shop.entry(0.2).save()
    shop.until(lambda: len(shop.sent("often")) >= 3 and len(shop.sent()) >= 3)
    assert set(shop.sent("often").values()) == set(shop.sent().values()) == {1}


def test_the_phase_is_exact_to_the_microsecond(shop):
    entry = shop.entry(7.000001).save()
    following = shop.control.get("report").next
    assert (following - entry.last_run_at) / timedelta(microseconds=1) % (7 * SECOND + 1) == 0


PROJECT = f"""
import redbeat.schedulers  # its receiver of beat_init is still there
from celery_redlock_beat.contrib.redbeat import RedBeatSchedulerEntry

app.conf.beat_scheduler = {SCHEDULER!r}

@app.task
def save():
    RedBeatSchedulerEntry("saved", "proj.noop", schedule(0.5)).save()
"""
SAVES = """{"save": {"task": "proj.save", "schedule": 1.0}}"""


@pytest.mark.slow
def test_beats_and_a_worker_with_one_run_on_it_and_a_task_saves(shared_redis, tmp_path):
    conf = {"result_expires": None, **QUICK}
    write_project(tmp_path, shared_redis.url, SAVES, config=conf, extra=PROJECT)
    app = Celery("proj", broker=shared_redis.url, set_as_current=False)
    app.conf.update(conf)
    with (
        BeatNode(tmp_path, "one", scheduler=SCHEDULER) as one,
        BeatNode(tmp_path, "two", scheduler=SCHEDULER.replace("redbeat.R", "redbeat:R")) as two,
        WorkerNode(tmp_path, beat=True, scheduler=SCHEDULER) as worker,
        Control(app) as control,
    ):
        nodes = (one, two, worker)
        wait_until(lambda: all(node.takes_part() for node in nodes), LIMIT, "all three nodes")
        for _ in range(3):
            since = len(worker.log)
            worker.wait_for_log(r"Task proj\.noop\S* succeeded", since=since)
        assert control.get("saved").runs >= 3
        told = [each for each in control.history("saved", number=100) if each.action == "sent"]
        assert len(told) == len({each.tick for each in told})
        assert [each.action for each in control.history("saved", number=100)].count("added") == 1
        assert sum(node.troubles() != [] for node in nodes) == 0
