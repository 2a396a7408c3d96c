"""After stock beat, ours goes on where its file says that it stopped: real beats, real files."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.beat import PersistentScheduler

from celery_redlock_beat import Control, RedlockScheduler
from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger import Ask
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.ledger.testimony import Testimony
from celery_redlock_beat.predecessors.shelve_file import read, write
from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import Tick, to_micros
from support.nodes import BeatNode, write_project
from support.operator import Operator, check
from support.queued import messages, ticks

PROJECT = """
from datetime import timedelta

from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker={url!r}, set_as_current=False)
app.conf.redlock_beat_hold_down = 1.6
app.conf.result_expires = None
app.conf.beat_schedule = {{
    "goes on": {{"task": "t", "schedule": timedelta(hours=1)}},
    "phased": {{"task": "t", "schedule": timedelta(hours=1), "phase": 60}},
    "nightly": {{"task": "t", "schedule": crontab(hour=3, minute=0)}},
    "new": {{"task": "t", "schedule": 3600}},
}}
"""


def stock_file(path, last_runs):
    """Write a file as stock beat does when it stops."""
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.result_expires = None
    app.conf.beat_schedule = {name: {"task": "t", "schedule": 3600} for name in last_runs}
    with closing(PersistentScheduler(app, schedule_filename=str(path))) as scheduler:
        for name, at in last_runs.items():
            scheduler.schedule[name].last_run_at = at
    return str(path)


@pytest.fixture
def operator(tmp_path, shared_redis):
    operator = Operator(tmp_path, shared_redis.url, PROJECT)
    yield operator
    operator.control.close()


@pytest.fixture
def at():
    """When stock beat ran everything last: a moment ago, at no round instant."""
    return datetime.now(UTC) - timedelta(seconds=75, microseconds=1234)


@pytest.fixture
def file(tmp_path, at):
    return stock_file(
        tmp_path / "schedule", dict.fromkeys(["goes on", "phased", "nightly", "removed"], at)
    )


def done(operator, *words, code=0):
    told = operator.here("import-shelve", *words, "--json")
    assert told.exit_code == code, told.output
    document = json.loads(told.stdout)
    check("import-shelve", document)
    return {each["name"]: each for each in document["entries"]}


def test_entries_begin_where_it_stopped_and_what_shifts_is_told(operator, file, at):
    told = done(operator, file, code=1)
    assert {name: each["done"] for name, each in told.items()} == {
        "goes on": "seeded",
        "phased": "seeded",
        "nightly": "seeded",
        "removed": "refused",
    }
    assert "no such entry" in told["removed"]["problem"]
    assert told["goes on"]["shift"] == 0
    assert datetime.fromisoformat(told["goes on"]["next"]) == at + timedelta(hours=1)
    assert datetime.fromisoformat(told["phased"]["next"]).minute == 1
    assert told["phased"]["shift"] != 0
    next_run = operator.control.get("goes on").next
    assert next_run == at + timedelta(hours=1)


def test_a_node_that_starts_then_goes_on_with_the_same_phase(operator, file, at):
    done(operator, file, code=1)
    with closing(RedlockScheduler(app=operator.app)) as scheduler:
        wait_until(lambda: scheduler.tick() and operator.control.nodes(), 20, "a node")
        (slot,) = [each for each in scheduler.roster.slots() if each.name == "goes on"]
        assert slot.timetable.next_after(slot.cursor) == slot.cursor + slot.period
        assert operator.control.get("goes on").next == at + timedelta(hours=1)


def test_told_only_it_does_nothing(operator, file):
    told = done(operator, file, "--dry-run", code=1)
    assert told["goes on"]["shift"] == 0
    assert operator.control.get("goes on").runs == 0
    assert operator.control.history("goes on") == []
    assert done(operator, file, code=1) == told


def test_it_is_refused_while_a_node_lives_and_once_it_has_claimed(operator, file, tmp_path):
    with closing(RedlockScheduler(app=operator.app)) as scheduler:
        wait_until(lambda: scheduler.tick() and operator.control.nodes(), 20, "a node")
        for words in ([file, "--dry-run"], [file]):
            told = done(operator, *words, code=1)
            assert told["goes on"]["done"] == "refused"
            assert "a node lives" in told["goes on"]["problem"]


def test_a_person_sees_a_table(operator, file):
    told = operator.here("import-shelve", file)
    assert told.exit_code == 1
    assert "seeded" in told.output
    assert "shifts by" in told.output


def test_it_is_in_the_history_with_a_note(operator, file):
    operator.here("import-shelve", file, "--note", "the switch")
    (record,) = operator.control.history("goes on")
    assert (record.action, record.detail) == ("seeded", "the switch")


@pytest.mark.parametrize(
    ("name", "said"), [("nowhere", "there is no file"), ("proj.py", "cannot be read")]
)
def test_a_file_that_is_none_is_wrong_usage(operator, name, said):
    told = operator.here("import-shelve", str(operator.directory / name))
    assert told.exit_code == 2
    assert said in told.output


class TestSeedingThroughControl:
    def test_what_was_due_since_is_sent_at_once_and_only_that(self, operator, shared_redis):
        last = datetime.now(UTC) - timedelta(minutes=90)
        with closing(Control(operator.app)) as control:
            (told,) = control.seed({"goes on": last})
        assert told.next == last + timedelta(hours=1)
        with closing(RedlockScheduler(app=operator.app)) as scheduler:
            client = shared_redis.client()
            wait_until(lambda: scheduler.tick() and messages(client), 20, "a message")
            assert [each.entry for each in messages(client)] == ["goes on"]
            assert ticks(client, "goes on") == [last + timedelta(hours=1)]


class TestTheWayBack:
    def test_stock_beat_goes_on_where_the_nodes_stopped(self, operator, file, at, tmp_path):
        operator.here("import-shelve", file)
        told = operator.here("export-shelve", str(tmp_path / "back"), "--json")
        assert told.exit_code == 0, told.output
        document = json.loads(told.stdout)
        check("export-shelve", document)
        assert {each["name"] for each in document["entries"]} == {"goes on", "phased", "nightly"}
        app = Celery("shop", broker="memory://", set_as_current=False)
        app.conf.result_expires = None
        app.conf.timezone = "Europe/Berlin"
        app.conf.beat_schedule = {
            name: {"task": "t", "schedule": 3600} for name in ("goes on", "nightly", "other")
        }
        path = str(tmp_path / "zoned")
        write(path, app, operator.control.last_runs())
        with closing(PersistentScheduler(app, schedule_filename=path)) as scheduler:
            entries = dict(scheduler.schedule)
        assert set(entries) == {"goes on", "nightly", "other"}
        assert entries["goes on"].last_run_at == at
        assert entries["nightly"].last_run_at == at
        assert entries["goes on"].last_run_at.tzinfo == app.timezone
        assert entries["goes on"].schedule.run_every == timedelta(hours=1)

    def test_a_file_that_is_there_is_never_written_over(self, operator, file):
        before = read(file, UTC)
        told = operator.here("export-shelve", file)
        assert told.exit_code == 2
        assert "there is a file" in told.output
        assert read(file, UTC) == before

    def test_an_interval_is_told_by_its_last_tick(self, operator, shared_redis):
        with closing(RedlockScheduler(app=operator.app)) as scheduler:
            wait_until(lambda: scheduler.tick() and operator.control.nodes(), 20, "a node")
        last = operator.control.last_runs()["goes on"]
        assert (last.minute, last.second, last.microsecond) == (0, 0, 0)


@pytest.mark.slow
def test_real_beats_change_over_by_a_setting_and_every_tick_is_sent_once(tmp_path, shared_redis):
    """Stock beat is stopped, ours starts after a while: it sends what was due, once, in phase."""
    file = tmp_path / "schedule"
    write_project(
        tmp_path,
        shared_redis.url,
        """{
            "often": {"task": noop.name, "schedule": 1.5},
            "minutely": {"task": noop.name, "schedule": crontab()},
        }""",
        config={"redlock_beat_seed": str(file), "redlock_beat_catch_up": "all"},
    )
    client = shared_redis.client()
    stock = BeatNode(
        tmp_path,
        "stock",
        scheduler="celery.beat:PersistentScheduler",
        args=["-s", str(file)],
        loglevel="debug",
    )
    with stock:
        wait_until(lambda: len(messages(client)) >= 3, 30, "messages of stock beat")
        # Asked in mid-work it may end in the traceback of whatever call it was in.
        stock.wait_for_log(r"Waking up in (1\.|0\.[3-9])", since=len(stock.log))
        stock.ask_to_end()
        assert stock.wait_for_exit() == 0
    last = read(str(file), UTC).last_runs["often"]
    with BeatNode(tmp_path, "one") as one, BeatNode(tmp_path, "two") as two:
        wait_until(lambda: len(ticks(client, "often")) >= 6, 30, "our messages")
        assert one.alive
        assert two.alive
    sent = ticks(client, "often")
    assert sent == [last + timedelta(seconds=1.5 * (i + 1)) for i in range(len(sent))]
    assert "begin where stock beat stopped" in one.log + two.log
    stock_file(file, {"often": last + timedelta(seconds=0.7)})
    with BeatNode(tmp_path, "again") as again:
        again.wait_for_log("stay as they are")


def test_who_had_gone_back_to_stock_beat_takes_its_runs_with_again(operator, file, tmp_path):
    with closing(RedlockScheduler(app=operator.app)) as scheduler:
        wait_until(lambda: scheduler.tick() and operator.control.nodes(), 20, "a node")
    later = datetime.now(UTC)
    back = stock_file(tmp_path / "back", {"goes on": later})
    refused = done(operator, back, "--dry-run")
    assert refused["goes on"]["done"] == "seeded", "no node lives, and nothing was claimed"
    assert done(operator, back, "--again")["goes on"]["done"] == "seeded"
    assert operator.control.get("goes on").next == later + timedelta(hours=1)


def test_a_tick_that_nobody_finished_is_not_told_as_run(operator, shared_redis):
    last = datetime.now(UTC) - timedelta(minutes=90)
    operator.control.seed({"goes on": last})
    ledger = RedisLedger(shared_redis.client, LedgerClock(), "shop", hold_down=0)
    while ledger.recover(Testimony()).wait:
        pass
    tick = Tick("goes on", to_micros(last + timedelta(hours=1)))
    (answer,) = ledger.claim([Ask(tick, tick.at)]).answers
    assert answer.grant
    assert operator.control.last_runs()["goes on"] == last
    told = operator.here("export-shelve", str(operator.directory / "back"))
    assert "stock beat sends what nobody finished here: 1 entry (goes on)" in told.output
