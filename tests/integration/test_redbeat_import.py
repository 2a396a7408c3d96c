"""What a real RedBeat keeps is taken over, and written back, and none is sent twice or lost."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from dateutil.rrule import MO
from redbeat.schedulers import RedBeatScheduler, RedBeatSchedulerEntry, get_redis
from redbeat.schedules import rrule

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.predecessors.redbeat.keys import CHUNK, Keys
from celery_redlock_beat.predecessors.redbeat.records import read
from celery_redlock_beat.predecessors.redbeat.writing import Ran, write_back
from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import to_micros
from celery_redlock_beat.timetables import app_zone
from support.operator import Operator, check
from support.queued import messages, ticks

PROJECT = """
from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker={url!r}, set_as_current=False)
app.conf.redlock_beat_socket_timeout = 0.5
app.conf.redlock_beat_hold_down = 1.1
app.conf.redbeat_redis_url = {url!r}
app.conf.redbeat_redis_options = {{"socket_timeout": 1}}
app.conf.timezone = "Europe/Berlin"
app.conf.result_expires = None
app.conf.beat_schedule = {{
    "hourly": {{"task": "proj.hourly", "schedule": 3600}},
    "nightly": {{"task": "proj.nightly", "schedule": crontab(minute=30, hour=2)}},
}}
"""
STATIC = {
    "hourly": {"task": "proj.hourly", "schedule": 3600.0},
    "nightly": {"task": "proj.nightly", "schedule": crontab(minute=30, hour=2)},
    "gone": {"task": "proj.gone", "schedule": 60.0},
}
KEYS = Keys("redbeat:", "redbeat::lock")
HOUR = timedelta(hours=1)


@pytest.fixture
def operator(shared_redis, tmp_path):
    operator = Operator(tmp_path, shared_redis.url, PROJECT)
    yield operator
    operator.control.close()


@pytest.fixture
def client(shared_redis):
    with shared_redis.client() as client:
        yield client


@pytest.fixture
def redbeat(shared_redis):
    app = Celery("shop", broker=shared_redis.url, set_as_current=False)
    app.conf.update(
        redbeat_redis_url=shared_redis.url,
        redbeat_redis_options={"socket_timeout": 1},
        redbeat_lock_key=None,
        timezone="Europe/Berlin",
        result_expires=None,
        beat_schedule=STATIC,
    )
    yield app
    get_redis(app).close()


@pytest.fixture
def now():
    return datetime.now(UTC)


@pytest.fixture
def ran(now):
    """When RedBeat ran everything last: a moment ago, at no round instant."""
    return now - timedelta(seconds=75, microseconds=1234)


def saved(app, name, spec, ran=None, **more):
    """Save an entry as RedBeat does, and when it ran last."""
    entry = RedBeatSchedulerEntry(name, f"proj.{name}", spec, app=app, **more)
    entry.save()
    if ran is not None:
        entry.reschedule(ran.astimezone(app.timezone))
    return entry


def kept(client):
    """Return all that RedBeat keeps, as it is."""
    return {key: client.dump(key) for key in client.scan_iter("redbeat:*")}


def done(operator, *words, code=0):
    told = operator.here(*words, "--json")
    assert told.exit_code == code, told.output
    document = json.loads(told.stdout)
    check(words[0], document)
    return {each["name"]: each for each in document["entries"]}


def in_word(told):
    return {name: each["done"] for name, each in told.items()}


def imported(operator, *words, code=0):
    return done(operator, "import-redbeat", *words, code=code)


def exported(operator, *words, code=0):
    return done(operator, "export-redbeat", "--yes", *words, code=code)


def put(client, name, definition, meta=None, score=1.0):
    """Write an entry by hand, as programs in other languages do."""
    key = f"redbeat:{name}"
    client.hset(
        key, "definition", definition if isinstance(definition, str) else json.dumps(definition)
    )
    if meta is not None:
        client.hset(key, "meta", json.dumps(meta))
    if score is not None:
        client.zadd("redbeat::schedule", {key: score})


def simple(**more):
    return {
        "task": "proj.it",
        "schedule": {"__type__": "interval", "every": 3600, "relative": False},
        **more,
    }


class TestImport:
    def test_entries_go_on_where_redbeat_stopped(self, operator, redbeat, ran):
        saved(
            redbeat, "every", schedule(90), ran, args=[1], kwargs={"a": 2}, options={"queue": "q"}
        )
        saved(redbeat, "cron", crontab(minute="*/5", hour="8-17"), ran)
        saved(redbeat, "off", schedule(60), ran, enabled=False)
        saved(redbeat, "rule", rrule("HOURLY", dtstart=ran), ran)
        told = imported(operator, "--note", "the switch")
        assert in_word(told) == dict.fromkeys(["every", "cron", "off", "rule"], "added")
        assert {datetime.fromisoformat(each["last_run"]) for each in told.values()} == {ran}
        views = {view.name: view for view in operator.control.entries(origin="stored")}
        assert views["every"].next == ran + timedelta(seconds=90)
        assert views["every"].definition["args"] == [1]
        assert views["every"].definition["options"] == {"queue": "q"}
        assert views["rule"].next == ran.replace(microsecond=0) + HOUR
        assert views["off"].state == "disabled"
        assert {record.detail for record in operator.control.history("every")} == {"the switch"}

    def test_entries_from_code_only_begin_there(self, operator, redbeat, client, ran):
        RedBeatScheduler(redbeat)
        for name in STATIC:
            RedBeatSchedulerEntry.from_key(f"redbeat:{name}", app=redbeat).reschedule(
                ran.astimezone(redbeat.timezone)
            )
        before = kept(client)
        told = imported(operator)
        assert in_word(told) == {"hourly": "seeded", "nightly": "seeded", "gone": "left"}
        assert "has it no more" in told["gone"]["problem"]
        assert operator.control.entries(origin="stored") == []
        assert operator.control.get("hourly").next == ran + HOUR
        assert kept(client) == before

    def test_told_only_it_does_nothing(self, operator, redbeat, ran):
        RedBeatScheduler(redbeat)
        saved(redbeat, "every", schedule(90), ran)
        told = imported(operator, "--dry-run")
        assert told["every"]["done"] == "added"
        assert operator.control.entries(origin="stored") == []
        assert operator.control.history() == []
        assert in_word(imported(operator)) == in_word(told)

    def test_what_redbeat_lost_is_told(self, operator, redbeat, ran):
        saved(redbeat, "rule", rrule("MONTHLY", dtstart=ran, byweekday=MO(+2)), ran)
        told = operator.told("import-redbeat")
        assert "RedBeat keeps no number of a weekday" in told
        assert "RedBeat keeps an offset" in told

    def test_what_holds_for_many_is_said_once(self, operator, redbeat, ran):
        for number in range(5):
            saved(redbeat, f"dynamic-{number}", crontab(minute=number), ran)
        told = operator.here("import-redbeat").output
        assert told.count("RedBeat keeps no zone of a crontab") == 1
        assert "Of 5 entries: RedBeat keeps no zone" in told

    def test_it_can_be_done_again_while_redbeat_goes_on(self, operator, redbeat, ran):
        cron = saved(redbeat, "cron", crontab(minute="*/5"), ran)
        every = saved(redbeat, "every", schedule(90), ran)
        imported(operator)
        assert in_word(imported(operator)) == {"cron": "same", "every": "same"}
        later = ran + timedelta(seconds=60)
        for entry in (cron, every):
            entry.reschedule(later.astimezone(redbeat.timezone))
        assert in_word(imported(operator)) == {"cron": "same", "every": "same"}
        assert operator.control.get("every").next == later + timedelta(seconds=90)

    def test_what_was_sent_is_not_sent_again_and_what_is_owed_is_caught_up(
        self, operator, redbeat, client, now
    ):
        saved(redbeat, "owed", schedule(3600), now - timedelta(minutes=61))
        saved(redbeat, "sent", schedule(3600), now - timedelta(minutes=59))
        saved(redbeat, "soon", schedule(3600), now - HOUR + timedelta(seconds=4))
        imported(operator)
        with closing(RedlockScheduler(app=operator.app)) as scheduler:
            wait_until(lambda: scheduler.tick() and ticks(client, "soon"), 20, "its tick")
        assert ticks(client, "soon") == [now + timedelta(seconds=4)]
        assert ticks(client, "owed") == [now - timedelta(minutes=1)]
        assert ticks(client, "sent") == []

    def test_a_redbeat_that_runs_is_told(self, operator, redbeat, client, ran):
        saved(redbeat, "every", schedule(90), ran)
        with client.lock("redbeat::lock", timeout=60):
            told = operator.run("import-redbeat")
            assert told.returncode == 0
            assert "a RedBeat holds its lock, which ends in" in told.stderr
            assert operator.json("import-redbeat")["locked"] is True
        assert operator.json("import-redbeat")["locked"] is False

    def test_another_place_may_be_named(self, operator, client, shared_redis):
        client.hset("old:it", "definition", json.dumps(simple()))
        client.zadd("old::schedule", {"old:it": 1})
        assert imported(operator) == {}
        told = imported(operator, "--prefix", "old:", "--url", shared_redis.url)
        assert in_word(told) == {"it": "added"}

    def test_where_there_is_none_that_is_told(self, operator):
        assert "There is no RedBeat with the prefix redbeat: at redis://" in operator.told(
            "import-redbeat"
        )

    def test_a_server_that_is_away_is_told_in_a_line(self, operator):
        told = operator.refused("import-redbeat", "--url", "redis://127.0.0.1:1/0", code=1)
        assert "nothing listens at the server's address" in told

    def test_a_url_that_is_none_is_told_in_a_line(self, operator):
        assert "the URL is no Redis URL" in operator.refused(
            "import-redbeat", "--url", "amqp://host", code=1
        )


class TestWhatIsOdd:
    """Written by hand, or half lost; nothing of it is changed or deleted."""

    def records(self, client, app):
        now = datetime.now(UTC)
        return {each.name: each for each in read(client, KEYS, app_zone(app), now)}

    def test_all_that_is_there_is_found_and_stays(self, operator, client):
        put(client, "good", simple())
        put(client, "orphan", simple(), score=None)
        put(client, "broken", "{", meta={"last_run_at": None})
        client.set("redbeat:text", "no hash")
        client.zadd("redbeat::schedule", {"redbeat:text": 1, "redbeat:ghost": 2})
        client.hset("redbeat:meta only", "meta", "{}")
        client.set("redbeat:somebody's", "else")
        client.hset("redbeat:other", "field", "of somebody else")
        before = kept(client)
        told = imported(operator, code=1)
        assert in_word(told) == {
            "good": "added",
            "orphan": "added",
            "broken": "refused",
            "text": "refused",
            "ghost": "left",
            "meta only": "left",
        }
        assert "another type than a hash" in told["text"]["problem"]
        assert "its key is gone" in told["ghost"]["problem"]
        assert "it has no definition" in told["meta only"]["problem"]
        assert operator.control.get("orphan").state == "disabled"
        assert "not in RedBeat's schedule" in told["orphan"]["warnings"][-1]
        assert kept(client) == before

    def test_one_that_redbeat_never_looks_at_comes_disabled(self, client, redbeat):
        put(client, "stopped", simple(), score=-1)
        record = self.records(client, redbeat)["stopped"]
        assert (record.score, record.document["enabled"]) == (-1, False)

    def test_a_bare_name_in_the_schedule_is_found_at_both_places(self, client, redbeat):
        put(client, "dropped", simple(), score=None)
        client.hset("sent", "definition", json.dumps(simple()))
        put(client, "sent", simple(task="proj.other"), {"last_run_at": None}, score=None)
        client.zadd("redbeat::schedule", {"dropped": 1, "sent": 1})
        records = self.records(client, redbeat)
        assert records.keys() == {"dropped", "sent"}
        assert records["dropped"].document["enabled"] is False
        assert records["sent"].document["task"] == "proj.it"
        assert records["sent"].document.get("enabled", True)
        assert "without the prefix" in records["sent"].warnings[0]

    def test_entries_of_a_longer_prefix_are_not_its_own(self, client, redbeat):
        put(client, "staging:it", simple(), score=None)
        client.zadd("redbeat:staging::schedule", {"redbeat:staging:it": 1})
        put(client, "it", simple())
        put(client, "a:schedule", simple())
        put(client, "a", simple(), score=None)
        assert self.records(client, redbeat).keys() == {"it", "a", "a:schedule"}

    def test_a_prefix_may_have_what_patterns_have(self, client, redbeat):
        client.hset("a[b]*:it", "definition", json.dumps(simple()))
        client.hset("ab:other", "definition", json.dumps(simple()))
        now = datetime.now(UTC)
        (record,) = read(client, Keys("a[b]*:"), app_zone(redbeat), now)
        assert record.name == "it"

    def test_a_name_that_is_no_utf_8_is_kept_aside(self, client, redbeat):
        client.hset(b"redbeat:caf\xe9", "definition", json.dumps(simple()))
        (record,) = self.records(client, redbeat).values()
        assert "no UTF-8" in record.problem

    def test_keys_of_another_type_are_as_if_they_were_not_there(self, client, redbeat):
        put(client, "it", simple(), score=None)
        client.set("redbeat::schedule", "x")
        client.zadd("redbeat::statics", {"it": 1})
        record = self.records(client, redbeat)["it"]
        assert (record.is_static, record.score) == (False, None)

    def test_many_are_read_in_chunks(self, client, redbeat):
        pipe = client.pipeline()
        for number in range(2 * CHUNK + 1):
            pipe.hset(f"redbeat:{number}", "definition", json.dumps(simple()))
            pipe.zadd("redbeat::schedule", {f"redbeat:{number}": number})
        pipe.execute()
        records = self.records(client, redbeat)
        assert len(records) == 2 * CHUNK + 1
        assert not any(each.problem for each in records.values())


class TestExport:
    def test_redbeat_reads_what_was_written_and_goes_on(self, operator, redbeat, client, ran):
        saved(
            redbeat, "every", schedule(90), ran, args=[1], kwargs={"a": 2}, options={"queue": "q"}
        )
        saved(redbeat, "rule", rrule("HOURLY", dtstart=ran, count=3), ran)
        imported(operator)
        was = {key: client.hgetall(key) for key in ("redbeat:every", "redbeat:rule")}
        told = exported(operator)
        assert in_word(told) == dict.fromkeys(["every", "rule", "hourly", "nightly"], "written")
        entry = RedBeatSchedulerEntry.from_key("redbeat:every", app=redbeat)
        assert (entry.task, entry.args, entry.kwargs) == ("proj.every", [1], {"a": 2})
        assert (entry.options, entry.enabled) == ({"queue": "q"}, True)
        assert entry.last_run_at == ran
        assert entry.schedule.run_every == timedelta(seconds=90)
        score = (ran + timedelta(seconds=90)).timestamp()
        assert client.zscore("redbeat::schedule", "redbeat:every") == int(score)
        assert client.hgetall("redbeat:every")[b"definition"] == was["redbeat:every"][b"definition"]
        again = RedBeatSchedulerEntry.from_key("redbeat:rule", app=redbeat)
        assert again.schedule.rrule.after(again.last_run_at) == ran.replace(microsecond=0) + HOUR
        assert client.smembers("redbeat::statics") == {b"hourly", b"nightly"}

    def test_a_redbeat_started_on_it_sends_what_is_owed_and_nothing_else(
        self, operator, redbeat, client, now
    ):
        saved(redbeat, "mine", schedule(3600), now - timedelta(minutes=61))
        saved(redbeat, "owed", schedule(3600), now - timedelta(minutes=59))
        saved(redbeat, "cron", crontab(minute=(now.minute - 2) % 60), now - timedelta(hours=2))
        redbeat.conf.beat_schedule = {name: STATIC[name] for name in ("hourly", "nightly")}
        imported(operator)
        with closing(RedlockScheduler(app=operator.app)) as scheduler:
            ready = lambda: {"mine", "cron"} <= {each.entry for each in messages(client)}  # noqa: E731
            wait_until(lambda: scheduler.tick() and ready(), 20, "what was owed")
        client.delete("celery")
        assert in_word(exported(operator))["mine"] == "written"
        put(client, "theirs", simple(name="theirs"), {"last_run_at": None})
        RedBeatScheduler(redbeat).tick()
        assert [each.entry for each in messages(client)] == ["proj.it"]
        record = {each.name: each for each in read(client, KEYS, app_zone(redbeat), now)}["mine"]
        assert record.last_run_at == now - timedelta(minutes=1)

    def test_runs_are_counted_on(self, operator, redbeat, client, now):
        put(
            client,
            "it",
            simple(name="it"),
            {"last_run_at": _moment(now - timedelta(minutes=61)), "total_run_count": 41},
        )
        imported(operator)
        with closing(RedlockScheduler(app=operator.app)) as scheduler:
            wait_until(lambda: scheduler.tick() and ticks(client, "it"), 20, "what was owed")
        for _ in range(2):
            exported(operator)
            assert json.loads(client.hget("redbeat:it", "meta"))["total_run_count"] == 42

    def test_a_later_run_of_redbeat_counts(self, operator, redbeat, client, ran):
        entry = saved(redbeat, "every", schedule(90), ran)
        imported(operator)
        entry.reschedule((ran + timedelta(seconds=70)).astimezone(redbeat.timezone))
        told = exported(operator)["every"]
        assert "RedBeat ran it later than we did" in told["warnings"][0]
        entry = RedBeatSchedulerEntry.from_key("redbeat:every", app=redbeat)
        assert entry.last_run_at == ran + timedelta(seconds=70)

    def test_what_redbeat_cannot_do_is_told(self, operator, client):
        add = operator.control.add
        add("both", task="t", schedule="0 0 13 * FRI")
        add("seconds", task="t", schedule="*/5 * * * * *")
        add("last", task="t", schedule="0 0 L * *")
        add("once", task="t", schedule={"kind": "once", "at": "2090-01-01T00:00:00+00:00"})
        add("ends", task="t", schedule=60, end=datetime(2090, 1, 1, tzinfo=UTC))
        add("elsewhere", task="t", schedule=crontab(), timezone="Asia/Tokyo")
        add("second monday", task="t", schedule="FREQ=MONTHLY;BYDAY=2MO")
        add("bytes", task="t", schedule=60, args=[b"x"])
        add("zoned", task="t", schedule="FREQ=DAILY;BYHOUR=9")
        add("policies", task="t", schedule=crontab(), jitter=3, catch_up="all", tags=["a"])
        add("paused", task="t", schedule=60)
        operator.control.pause("paused")
        told = exported(operator, code=1)
        problems = {name: each["problem"] for name, each in told.items() if each["problem"]}
        expected = {
            "both": "make two entries",
            "seconds": "no seconds",
            "last": "nothing like 'L'",
            "once": "no schedule of the kind 'once'",
            "ends": "RedBeat has no 'end'",
            "elsewhere": "told in Asia/Tokyo",
            "second monday": "number of a weekday",
            "bytes": "class bytes",
        }
        assert problems.keys() == expected.keys()
        assert [name for name, part in expected.items() if part not in problems[name]] == []
        assert "present offset of Europe/Berlin" in told["zoned"]["warnings"][0]
        assert told["policies"]["warnings"][0].endswith("forgets: catch_up, jitter, tags")
        assert "it is paused here" in told["paused"]["warnings"][-1]
        assert json.loads(client.hget("redbeat:paused", "definition"))["enabled"] is False
        assert not client.exists(*(f"redbeat:{name}" for name in expected))

    def test_what_is_stored_and_bad_is_told(self, operator, client):
        operator.control.add("bad", task="t", schedule=60)
        key = operator.control._access.names["entries"]
        revision = client.hget(key, "bad").split()[0]
        client.hset(key, "bad", revision + b" no document")
        told = exported(operator, code=1)
        assert told["bad"]["done"] == "refused"
        assert told["bad"]["problem"]

    def test_what_only_redbeat_has_is_told_and_left(self, operator, redbeat, client):
        RedBeatScheduler(redbeat)
        put(client, "theirs", simple(name="theirs"))
        before = kept(client)
        told = exported(operator)
        assert told["theirs"]["done"] == told["gone"]["done"] == "left"
        assert "goes on with it" in told["theirs"]["problem"]
        assert "deletes it as it starts" in told["gone"]["problem"]
        after = kept(client)
        for key in (b"redbeat:theirs", b"redbeat:gone", b"redbeat::statics"):
            assert after[key] == before[key]

    def test_told_only_or_without_an_answer_it_writes_nothing(self, operator, client):
        told = operator.json("export-redbeat", "--dry-run")
        assert {each["done"] for each in told["entries"]} == {"written"}
        assert "add --yes" in operator.refused("export-redbeat", code=2)
        assert kept(client) == {}

    def test_it_is_refused_while_a_redbeat_runs(self, operator, client):
        with client.lock("redbeat::lock", timeout=60):
            told = operator.refused("export-redbeat", "--yes", code=1)
        assert "a RedBeat holds its lock" in told
        assert kept(client) == {}

    def test_nodes_that_live_are_told(self, operator):
        with closing(RedlockScheduler(app=operator.app)) as scheduler:
            wait_until(lambda: scheduler.tick() and operator.control.nodes(), 20, "a node")
            told = operator.run("export-redbeat", "--yes")
        assert told.returncode == 0
        assert "Warning: 1 node lives" in told.stderr


class TestWriteBack:
    """What the nodes tell RedBeat as they send."""

    def write(self, client, app, ran, now):
        return write_back(client, KEYS, ran, app_zone(app), to_micros(now))

    def test_only_what_redbeat_has_is_written(self, client, redbeat, now, ran):
        saved(redbeat, "every", schedule(3600), ran)
        told = {"every": Ran(to_micros(now), 2), "unknown": Ran(to_micros(now))}
        assert self.write(client, redbeat, told, now) == {"every"}
        entry = RedBeatSchedulerEntry.from_key("redbeat:every", app=redbeat)
        assert (entry.last_run_at, entry.total_run_count) == (now, 2)
        assert client.zscore("redbeat::schedule", "redbeat:every") == int(now.timestamp()) + 3600
        assert not client.exists("redbeat:unknown")

    def test_a_last_run_never_falls_and_counts_once(self, client, redbeat, now, ran):
        saved(redbeat, "every", schedule(3600), now)
        for at in (ran, now):
            self.write(client, redbeat, {"every": Ran(to_micros(at))}, now)
            entry = RedBeatSchedulerEntry.from_key("redbeat:every", app=redbeat)
            assert (entry.last_run_at, entry.total_run_count) == (now, 0)

    def test_what_redbeat_took_out_of_its_schedule_stays_out(self, client, redbeat, now):
        put(client, "orphan", simple(), score=None)
        self.write(client, redbeat, {"orphan": Ran(to_micros(now))}, now)
        assert client.zcard("redbeat::schedule") == 0

    def test_a_rule_that_is_over_is_never_looked_at_again(self, client, redbeat, now, ran):
        saved(redbeat, "rule", rrule("HOURLY", dtstart=now, count=1), ran)
        self.write(client, redbeat, {"rule": Ran(to_micros(now.replace(microsecond=0)))}, now)
        assert client.zscore("redbeat::schedule", "redbeat:rule") == -1

    def test_what_cannot_be_read_stops_no_other(self, client, redbeat, now):
        put(client, "broken", "{", score=7)
        client.set("redbeat:text", "x")
        put(client, "good", simple(), score=7)
        told = dict.fromkeys(["broken", "text", "good"], Ran(to_micros(now)))
        assert self.write(client, redbeat, told, now) == {"broken", "good"}
        assert client.zscore("redbeat::schedule", "redbeat:broken") == 7
        assert client.zscore("redbeat::schedule", "redbeat:good") == int(now.timestamp()) + 3600


def _moment(when):
    parts = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    return {"__type__": "datetime", **{part: getattr(when, part) for part in parts}}
