"""One project under Celery's own beat, and then under ours: the same messages, each tick once.

Nothing but the name of the scheduler is changed. What is due on the minute, at four in the morning
or at noon by the sun is made to be due soon, by the zone of the app and by the place.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

import pytest
import redis
from celery import Celery
from celery.schedules import solar
from kombu import Connection, Exchange, Queue
from kombu.compression import decompress
from kombu.serialization import loads

from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import timetable_for
from support.nodes import BeatNode, Node, WorkerNode, write_project
from support.requirements import require
from support.servers import Server, have_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STOCK = "celery.beat:PersistentScheduler"
QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2}
CONFIG = {
    **QUICK,
    "accept_content": ["json", "pickle", "yaml"],
    "task_routes": {"proj.routed": {"queue": "routed", "priority": 6}},
}
PROJECT = """
from datetime import timedelta, timezone
from uuid import uuid4

from celery import Celery
from celery.beat import BeatLazyFunc
from celery.schedules import crontab, schedule, solar

app = Celery("proj")


@app.task
def noop(*args, **kwargs):
    "Do nothing."


@app.task
def routed(*args):
    "Go where task_routes says."


@app.task(serializer="yaml", priority=9)
def in_yaml(*args):
    "Be written as the task itself says."


@app.task
def linked(result, told):
    print(f"linked to {told}")


@app.on_after_configure.connect
def with_the_configuration(sender, **_):
    sender.add_periodic_task(1.0, noop.s("configured"), name="configured", expires=600)
    sender.add_periodic_task(1.0, noop.s("unnamed", colour="blue").set(priority=3), queue="other")


@app.on_after_finalize.connect
def with_the_tasks(sender, **_):
    sender.add_periodic_task(timedelta(seconds=1), noop.si("finalized"), headers={"tenant": "a"})


def something_new():
    return uuid4().hex


def entry(schedule, task="proj.noop", **more):
    return {"task": task, "schedule": schedule, **more}


def optional(**options):
    return entry(1, options=options)


lazy = BeatLazyFunc(something_new)
beat_schedule = {
    "number": entry(1),
    "float": entry(1.5),
    "timedelta": entry(timedelta(seconds=1)),
    "schedule": entry(schedule(1)),
    "relative": entry(1, relative=True),
    "crontab": entry(crontab()),
    "daily": entry(crontab(minute=0, hour=4)),
    "sun": entry(SUN),
    "no options": entry(1, options=None, kwargs=None),
    "kwargs": entry(1, kwargs={"colour": "blue", "sizes": [1, 2]}),
    "lazy": entry(1, args=["lazy", lazy], kwargs={"called": lazy, "given": 1}),
    "queue": optional(queue="other"),
    "priority": optional(priority=3),
    "expires": optional(expires=600),
    "countdown": optional(countdown=60),
    "headers": optional(headers={"tenant": "a", "nested": {"n": [1]}}),
    "routing": optional(exchange="letters", routing_key="letters.air"),
    "limits": optional(time_limit=60, soft_time_limit=50, shadow="another name"),
    "compressed": optional(compression="zlib"),
    "pickled": optional(serializer="pickle"),
    "yaml": entry(1, "proj.in_yaml"),
    "routed": entry(1, "proj.routed"),
}
for name, fields in beat_schedule.items():
    fields.setdefault("args", [name])
app.config_from_object({**CONFIG, "timezone": ZONE, "beat_schedule": beat_schedule})
app.conf.beat_schedule["link"] = {**optional(link=linked.s("ours")), "args": ["link"]}
"""
INTERVALS = [
    *("configured", "unnamed", "finalized"),
    *("number", "float", "timedelta", "schedule", "relative", "no options", "kwargs", "lazy"),
    *("queue", "priority", "expires", "countdown", "headers", "routing", "link", "limits"),
    *("compressed", "pickled", "yaml", "routed"),
]
ON_TIME = ["crontab", "daily", "sun", "celery.backend_cleanup"]
ENTRIES = [*INTERVALS, *ON_TIME]
QUEUES = ["celery", "other", "routed"]
LETTERS = Queue("letters", Exchange("letters"), "letters.air")
OURS = re.compile(r"redlock_\w+|periodic_task_name|celery_beat_task")  # 5.7's own has the last one
DIFFERENT = {"id", "root_id", "origin", "correlation_id", "reply_to", "delivery_tag"}
MOVING = {"eta": 60, "expires": 600}  # seconds from when it is sent

# A crontab that comes too late, beside an entry that shows that beat goes on.
DEADLINE = 3
LATE = """{
    "pulse": {"task": noop.name, "schedule": 1},
    "late": {"task": noop.name, "schedule": crontab(), "args": ["late"]},
}"""


@dataclass(frozen=True)
class Message:
    """One message as it lies in its queue."""

    queue: str
    headers: dict[str, Any]
    properties: dict[str, Any]
    rest: dict[str, Any]
    body: Any

    @classmethod
    def of(cls, queue: str, told: dict[str, Any]) -> Message:
        headers, properties = told.pop("headers"), told.pop("properties")
        raw = base64.b64decode(told.pop("body"))
        if "compression" in headers:
            raw = decompress(raw, headers["compression"])
        body = loads(raw, told["content-type"], told["content-encoding"], force=True)
        return cls(queue, headers, properties, told, body)

    @property
    def entry(self) -> str:
        """Which entry it is of: they say so in their arguments, but for Celery's own."""
        return self.body[0][0] if self.body[0] else self.headers["task"]

    @property
    def tick(self) -> tuple[str, str]:
        return self.headers["redlock_entry"], self.headers["redlock_tick"]

    @property
    def lazily(self) -> list[str]:
        """What its lazy functions answered."""
        args, kwargs, _ = self.body
        return [*args[1:], kwargs["called"]]

    def comparable(self) -> tuple[Any, ...]:
        """Return what has to be that of every other scheduler."""
        body: Any = self.body
        if self.entry == "lazy":
            args, kwargs, embed = body
            body = args[:1], {**kwargs, "called": ...}, embed
        shown = {
            **self.headers,
            **{name: ... for name in MOVING if self.headers.get(name)},
            **{name: ... for name in ("argsrepr", "kwargsrepr") if self.entry == "lazy"},
        }
        return self.queue, _without(shown), _without(self.properties), self.rest, body


def _without(told):
    return {
        name: value
        for name, value in told.items()
        if name not in DIFFERENT and not OURS.fullmatch(name)
    }


def messages(url):
    """Return all messages in the queues of a database, by entry, the first of each first."""
    found = defaultdict(list)
    with redis.Redis.from_url(url, protocol=2, socket_timeout=5, decode_responses=True) as client:
        for key in client.scan_iter(_type="list"):
            for raw in reversed(client.lrange(key, 0, -1)):
                message = Message.of(key, json.loads(raw))
                found[message.entry].append(message)
    return found


def sun_at(moment):
    """Return the source of a schedule whose noon by the sun is at a moment, in seconds."""
    east = 0.0
    for _ in range(3):  # a degree is about four minutes, and the sun is not as regular
        noon = timetable_for(solar("solar_noon", 0.0, east), Celery(set_as_current=False))
        at = noon.next_after(int((moment - 43_200) * SECOND)) / SECOND
        east = (east + (at - moment) / 240 + 180) % 360 - 180
    return f"solar('solar_noon', 0.0, {east!r})"


def four_at(moment):
    """Return the source of a zone in which it is four in the morning at a moment, in seconds."""
    minutes = (4 * 60 - int(moment) // 60) % 1440
    return f"timezone(timedelta(minutes={minutes if minutes <= 720 else minutes - 1440}))"


@dataclass
class Seen:
    """What became of the project under the one scheduler and the other."""

    stock: dict[str, list[Message]] = field(default_factory=dict)
    ours: dict[str, list[Message]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    pid: tuple[str, str] = ("", "")
    left: list[str] = field(default_factory=list)


class Stage:
    """A directory, a server, and the processes of all projects, which wait for one minute."""

    def __init__(self, place, server, stack):
        self.place, self.server, self.stack = place, server, stack
        # Nothing is started shortly before a minute: the next one must find all of it at work.
        wait_until(lambda: time.time() % 60 < 35, 30, "a new minute", 0.05)
        self.minute = int(time.time()) // 60 * 60 + 60
        self.nodes = {}

    def url(self, db):
        return f"redis://127.0.0.1:{self.server.port}/{db}"

    def start(self, name, db, scheduler="redlock", module="proj", args=()):
        args = ["-s", f"{name}.db", *args]
        env = {"CELERY_BROKER_URL": self.url(db)}
        node = BeatNode(self.place, name, scheduler=scheduler, module=module, env=env, args=args)
        self.nodes[name] = self.stack.enter_context(node)
        return node

    def declare(self, queue, *dbs):
        """Declare a queue as a worker does that takes from it."""
        for db in dbs:
            with Connection(self.url(db)) as connection:
                queue(connection.default_channel).declare()

    def until(self, seconds):
        """Wait until so many seconds after the minute."""
        wait_until(lambda: time.time() >= self.minute + seconds, 70, "the minute", 0.05)

    def sent(self, db, entries, number=1):
        """Wait until each of these entries was sent so often."""
        deadline = time.monotonic() + 40
        while missing := self.missing(db, entries, number):
            if time.monotonic() > deadline:
                raise TimeoutError(f"database {db}: {', '.join(missing)}: not {number} messages")
            time.sleep(0.2)

    def missing(self, db, entries, number):
        assert all(node.alive for node in self.nodes.values())
        found = messages(self.url(db))
        return [entry for entry in entries if len(found[entry]) < number]


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    require("redis-server", have_server())
    place = tmp_path_factory.mktemp("stock")
    with ExitStack() as stack:
        yield Stage(place, stack.enter_context(Server()), stack)


@pytest.fixture(scope="module")
def seen(stage):
    """Run all of it at once, to wait only once."""
    place, seen = stage.place, Seen()
    (place / "results").mkdir()
    config = {**CONFIG, "result_backend": f"file://{place}/results"}
    source = PROJECT.replace("SUN", sun_at(stage.minute + 2)).replace("CONFIG", repr(config))
    (place / "proj.py").write_text(source.replace("ZONE", four_at(stage.minute)))
    stage.declare(LETTERS, 1, 2)
    late = {**QUICK, "beat_cron_starting_deadline": DEADLINE}
    write_project(place, None, LATE, config=late, module="late")

    stage.start("stock", 1, STOCK)
    one = stage.start("one", 2, args=["--pidfile=one.pid", "--max-interval=1"])
    stage.start("two", 2)
    frozen = [
        stage.start("late_stock", 3, STOCK, "late"),
        stage.start("late_ours", 4, module="late"),
    ]
    for db, entries in ((1, INTERVALS), (2, INTERVALS), (3, ["late.noop"]), (4, ["late.noop"])):
        stage.sent(db, entries)
    seen.pid = str(one.pid), (place / "one.pid").read_text().strip()
    stage.until(-1)
    for node in frozen:
        node.freeze()
    stage.until(2 * DEADLINE)
    before = {db: len(messages(stage.url(db))["late.noop"]) for db in (3, 4)}
    for node in frozen:
        node.thaw()
    # Celery's own sends one more and then, before 5.7, waits with all others for the crontab.
    for db, more in ((3, 1), (4, 3)):
        stage.sent(db, ["late.noop"], before[db] + more)
    for db in (1, 2):
        stage.sent(db, ENTRIES)
    for node in stage.nodes.values():
        node.stop()
    seen.stock, seen.ours = messages(stage.url(1)), messages(stage.url(2))
    seen.logs = {name: node.log for name, node in stage.nodes.items()}
    seen.left = sorted(path.name for path in place.iterdir())
    return seen


@pytest.fixture(scope="module")
def worker_log(stage, seen):
    """What a worker says that takes what ours has sent."""
    env = {"CELERY_BROKER_URL": stage.url(2), "C_FORCE_ROOT": "1"}  # root may not take pickle
    sent = {each.headers["id"] for each in chain(*seen.ours.values()) if each.queue != "letters"}
    waiting = {each.headers["id"] for each in seen.ours["countdown"]}
    with WorkerNode(stage.place, env=env, args=["-Q", ",".join(QUEUES)]) as worker:

        def done():
            assert worker.alive, worker.log
            return {*re.findall(r"\[([\w-]+)\] succeeded", worker.log)} >= sent - waiting

        wait_until(done, 60, "all tasks", 0.2)
        worker.stop()
        return worker.log


@pytest.mark.parametrize("name", ENTRIES)
def test_a_message_is_that_of_stock_beat_but_for_ids_and_headers_of_ours(seen, name):
    assert seen.ours[name][0].comparable() == seen.stock[name][0].comparable()


def test_each_tick_is_sent_once_by_two_nodes(seen):
    assert seen.ours.keys() == seen.stock.keys() == {*ENTRIES}
    ticks = Counter(each.tick for each in chain(*seen.ours.values()))
    assert set(ticks.values()) == {1}
    for log in (seen.logs["one"], seen.logs["two"]):
        assert "Sending due task" in log


@pytest.mark.parametrize(("name", "header"), [("countdown", "eta"), ("expires", "expires")])
def test_a_moment_in_the_future_is_counted_from_when_it_is_sent(seen, name, header):
    message = seen.ours[name][0]
    due, told = map(datetime.fromisoformat, (message.tick[1], message.headers[header]))
    assert 0 <= (told - due).total_seconds() - MOVING[header] < 10


def test_a_lazy_function_is_called_anew_for_each_message(seen):
    for found in (seen.stock["lazy"], seen.ours["lazy"]):
        answers = [answer for message in found for answer in message.lazily]
        assert len(answers) >= 4
        assert len(set(answers)) == len(answers)


def test_a_worker_runs_all_of_it(worker_log):
    assert "linked to ours" in worker_log
    assert "celery.backend_cleanup" in worker_log
    assert re.findall(r"^.*(?:ERROR|CRITICAL|Traceback).*$", worker_log, re.MULTILINE) == []


def test_a_crontab_that_is_later_than_its_deadline_is_not_sent_by_either(stage, seen):
    for db in (3, 4):
        assert messages(stage.url(db)).keys() == {"late.noop"}
    assert re.search(r"late @ .*skipped:grace", seen.logs["late_ours"])


def test_a_pid_file_is_written_and_removed(seen):
    there, told = seen.pid
    assert told == there
    assert "one.pid" not in seen.left


def test_a_schedule_file_is_not_written_and_told_in_one_line(seen):
    assert [name for name in seen.left if re.match(r"(one|two|late_ours)\.db", name)] == []
    assert [name for name in seen.left if name.startswith("stock.db")]
    for name in ("one", "two"):
        assert len(re.findall(rf"{name}\.db is ignored", seen.logs[name])) == 1


def test_the_longest_interval_is_taken_from_the_command_line(seen):
    assert re.search(r"maxinterval -> .*\(1s\)", seen.logs["one"])
    assert re.search(r"maxinterval -> .*\(0\.5s\)", seen.logs["two"])


def test_neither_tells_of_an_error(seen):
    for log in seen.logs.values():
        assert re.findall(r"^.*(?:ERROR|CRITICAL|Traceback).*$", log, re.MULTILINE) == []


OLD_PROJECT = """
import redbeat.schedulers  # what is still installed, and imported, hears the signals of every beat
from celery import Celery

app = Celery("old", config_source="old_settings")
"""
OLD_TASKS = """
from celery import current_app

@current_app.task(name="old.task")
def task(*args):
    "Be found by CELERY_IMPORTS."
"""
OLD_SETTINGS = """
from datetime import timedelta

from celery.schedules import crontab

CELERY_IMPORTS = ["old_tasks"]
CELERY_TIMEZONE = "Europe/Berlin"
CELERY_TASK_SERIALIZER = "pickle"
CELERY_ACCEPT_CONTENT = ["pickle"]
CELERY_DEFAULT_QUEUE = "old"
CELERY_ROUTES = {"old.elsewhere": {"queue": "elsewhere"}}
CELERYBEAT_MAX_LOOP_INTERVAL = 2
CELERYBEAT_SCHEDULER = "SCHEDULER"
CELERYBEAT_SCHEDULE = {
    "plain": {"task": "old.task", "schedule": timedelta(seconds=1), "args": ["plain"]},
    "routed": {"task": "old.elsewhere", "schedule": 1, "args": ["routed"]},
    "nightly": {"task": "old.task", "schedule": crontab(hour=3, minute=0)},
}
"""
OLD_OURS = """
REDLOCK_BEAT_HOLD_DOWN = 1.6
CELERY_REDLOCK_BEAT_LEASE = 2
"""


def test_settings_in_the_upper_case_of_celery_3_will_do(tmp_path, shared_redis):
    found, logs = {}, {}
    for db, scheduler in ((1, STOCK), (2, "redlock"), (3, "celery_redlock_beat:RedlockScheduler")):
        place = tmp_path / str(db)
        place.mkdir()
        settings = OLD_SETTINGS.replace('SCHEDULER"', scheduler + '"')
        (place / "old.py").write_text(OLD_PROJECT)
        (place / "old_tasks.py").write_text(OLD_TASKS)
        (place / "old_settings.py").write_text(settings + (OLD_OURS if db > 1 else ""))
        url = f"redis://127.0.0.1:{shared_redis.port}/{db}"
        command = ["beat", "--pidfile=", "-l", "info"]
        with Node(place, "old", command, module="old", env={"CELERY_BROKER_URL": url}) as node:

            def enough(url=url, node=node):
                assert node.alive, node.log
                return {"plain", "routed"} <= messages(url).keys()

            wait_until(enough, 30, "a message of each entry", 0.1)
            node.stop()
        found[db], logs[db] = messages(url), node.log
    for db in (2, 3):
        for name in ("plain", "routed"):
            assert found[db][name][0].comparable() == found[1][name][0].comparable()
        assert "ERROR" not in logs[db]
    assert found[2]["plain"][0].queue == "old"
    assert found[2]["routed"][0].queue == "elsewhere"


# It ends by itself, should this test not come to its end.
DETACHED = """
import signal


@signals_of_celery.beat_init.connect
def end_some_time(**_):
    signal.alarm(60)
"""


def test_a_detached_beat_sends_and_ends_by_its_pid(tmp_path, shared_redis):
    extra = "from celery import signals as signals_of_celery\n" + DETACHED
    write_project(tmp_path, shared_redis.url, config=QUICK, extra=extra)
    pidfile, log = tmp_path / "beat.pid", tmp_path / "beat.log"
    options = ["--detach", f"--pidfile={pidfile}", f"--logfile={log}"]
    with BeatNode(tmp_path, "starter", args=options) as starter:
        assert starter.wait_for_exit(20) == 0, starter.log
    wait_until(pidfile.exists, 20, "the file with the pid")
    pid = int(pidfile.read_text())
    try:
        wait_until(lambda: messages(shared_redis.url)["proj.noop"], 20, "a message", 0.1)
    finally:
        os.kill(pid, 15)
    wait_until(lambda: not pidfile.exists(), 20, "its end")
    assert "ERROR" not in log.read_text()
