"""What users get wrong, told to real beats: the others go on, and the log says what to do.

A bad setting ends the start. A bad entry is left out. A server that refuses is waited for. Many
rows share a process, since each of them costs a start.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
import redis

from support.nodes import BeatNode, write_project
from support.requirements import require
from support.servers import Server, free_port, have_server, replica_of, wait_for_replica, wait_until

PASSWORD = "s3cret-pw"
WRONG = "wr0ng-pw"
EVERY_SECOND = '{"good": {"task": noop.name, "schedule": 1.0}}'
QUICK = {
    "redlock_beat_poll": 0.1,
    "redlock_beat_hold_down": 1.2,
    "redlock_beat_catch_up": "all",  # so that on a busy machine a tick is late, and not skipped
}
PRIORITY_3 = "celery\x06\x163"  # as kombu names the queue of such messages
CPU = """
import atexit, os, time
def cpu():
    return sum(os.times()[:2])
begun = cpu(), time.monotonic()
def tell():
    with open("cpu-" + app.main, "w") as told:
        told.write(str((cpu() - begun[0]) / (time.monotonic() - begun[1])))
atexit.register(tell)
"""


def beat(directory, name, broker, schedule=EVERY_SECOND, *, extra="", args=(), debug=False, **conf):
    """Return a beat, not yet started, whose module, app and namespace have this name."""
    code = CPU + textwrap.dedent(extra)
    write_project(directory, broker, schedule, config={**QUICK, **conf}, extra=code, module=name)
    level = "debug" if debug else "info"
    return BeatNode(directory, name, module=name, args=args, loglevel=level)


def wait_for_sent(node, entry, number):
    sent = re.compile(rf"\] {entry} @ .*: sent")

    def enough():
        assert node.alive, node.log[-3000:]
        return len(sent.findall(node.log)) >= number

    wait_until(enough, 20, f"{number} messages of {entry!r}")


def lines(log, level):
    return [line for line in log.splitlines() if f": {level}/" in line]


def warnings(log):
    """Return the warnings but the one of each first start: that the ledger is empty."""
    return [line for line in lines(log, "WARNING") if "The ledger is empty" not in line]


@dataclass(frozen=True)
class Message:
    entry: str
    at: datetime
    headers: dict
    properties: dict

    @classmethod
    def of(cls, raw):
        told = json.loads(raw)
        headers = told["headers"]
        instant = datetime.fromisoformat(headers["redlock_tick"])
        return cls(headers["redlock_entry"], instant, headers, told["properties"])


def messages(server, db, *queues):
    with redis.Redis.from_url(url(server, db), protocol=2, socket_timeout=5) as client:
        found = [raw for queue in queues or ["celery"] for raw in client.lrange(queue, 0, -1)]
    return [Message.of(raw) for raw in found]


def doubled(found):
    counts = Counter((each.entry, each.at) for each in found)
    return [what for what, number in counts.items() if number > 1]


def gaps(found, entry, every=1):
    """Return the instants that are missing between the first and the last message of an entry."""
    there = {each.at for each in found if each.entry == entry}
    assert len(there) > 1
    spans = range(0, int((max(there) - min(there)).total_seconds()) + 1, every)
    return {min(there) + timedelta(seconds=span) for span in spans} - there


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("bad_input")


@pytest.fixture(scope="module")
def server():
    require("redis-server", have_server())
    with Server() as server:
        yield server


def url(server, db, password=""):
    secret = f":{password}@" if password else ""
    return f"redis://{secret}127.0.0.1:{server.port}/{db}"


# --- settings: each ends the start, and the last line says which one and what to write ------------

SETTINGS = {
    "misspelt": (
        {"redlock_beat_leese": 1},
        r"redlock_beat_leese .* did you mean redlock_beat_lease",
    ),
    "zone": ({"timezone": "Europe/Berlim"}, "timezone = 'Europe/Berlim' .* use an IANA name"),
    "rabbit_url": (
        {"redlock_beat_url": f"amqp://me:{PASSWORD}@localhost//"},
        "redlock_beat_url is no Redis URL: it has to begin with one of redis://",
    ),
    "no_redis": ({"broker_url": "memory://"}, "redlock_beat_url is not set, .* set it, as in"),
    "secret_port": (
        {"broker_url": f"redis://:{PASSWORD}/more@localhost:6379/0"},
        "broker_url cannot be read as a URL: percent-encode",
    ),
    "a_list": ({"beat_schedule": [{"task": "t"}]}, "beat_schedule must be a dict .* type list"),
    "strict": (
        {
            "redlock_beat_strict": True,
            "beat_schedule": {"bad": {"task": "t", "schedule": "61 * * * *"}},
        },
        "entry 'bad': .* the minute field '61' is not valid; allowed are 0-59",
    ),
}


@pytest.fixture(scope="module")
def ended(place):
    """Start a beat with each of them; return their exit codes and logs."""
    broker = f"redis://127.0.0.1:{free_port()}/0"
    with ExitStack() as stack:
        beats = {
            name: beat(place, name, broker, extra=f"app.conf.update({conf!r})")
            for name, (conf, _) in SETTINGS.items()
        }
        for each in beats.values():
            stack.enter_context(each)
        return {name: (each.wait_for_exit(30), each.log) for name, each in beats.items()}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_setting_ends_the_start_and_the_last_line_tells_the_way_out(ended, name):
    code, log = ended[name]
    assert code != 0
    assert re.search(SETTINGS[name][1], log.rstrip().splitlines()[-1])
    assert "s3cret" not in log


# --- entries: one beat with everything that can be wrong with an entry ----------------------------

LEFT_OUT = {
    "zero": ('{"task": noop.name, "schedule": 0}', "must be positive .* not 0 s; to switch"),
    "negative": ('{"task": noop.name, "schedule": -5}', "must be positive .* not -5 s"),
    "infinite": ('{"task": noop.name, "schedule": float("inf")}', "must be a finite number"),
    "bool": ('{"task": noop.name, "schedule": True}', "True is not a schedule; use a number"),
    "class": ('{"task": noop.name, "schedule": crontab}', "is not a schedule; use a number"),
    "listed": ('{"task": noop.name, "schedule": [1]}', "is not a schedule; use a number"),
    "four fields": ('{"task": noop.name, "schedule": "* * * *"}', "it has 4 fields; write 5"),
    "61": ('{"task": noop.name, "schedule": "61 * * * *"}', "minute field '61' .* 0-59"),
    "30 February": ('{"task": noop.name, "schedule": "0 0 30 2 *"}', "never fires; correct one"),
    "args text": ('{"task": noop.name, "schedule": 1, "args": "hello"}', "'args' must be a list"),
    "args lazy": (
        '{"task": noop.name, "schedule": 1, "args": BeatLazyFunc(boom)}',
        "'args' must be a list or a tuple, as in .* is of type BeatLazyFunc",
    ),
    "kwargs": ('{"task": noop.name, "schedule": 1, "kwargs": [1]}', "'kwargs' must be a dict"),
    "keys": ('{"task": noop.name, "schedule": 1, "kwargs": {1: 1}}', "'kwargs' has a key that"),
    "options": ('{"task": noop.name, "schedule": 1, "options": "q"}', "'options' must be a dict"),
    "headers": (
        '{"task": noop.name, "schedule": 1, "options": {"headers": ["x"]}}',
        "'headers' must be a dict",
    ),
    "task": ('{"task": noop, "schedule": 1}', "must be the name of a task, .*write 'mixed.noop'"),
    "key": ('{"task": noop.name, "shedule": 1}', "did you mean 'schedule'"),
    "catch up": (
        '{"task": noop.name, "schedule": 1, "catch_up": "al"}',
        "catch_up = 'al' is not understood: did you mean 'all'",
    ),
    "policy": ('{"task": noop.name, "schedule": 1, "jiter": 5}', "did you mean 'jitter'"),
    "jitter": ('{"task": noop.name, "schedule": 1, "jitter": -5}', "jitter = -5 is out of range"),
    "zone": (
        '{"task": noop.name, "schedule": "0 0 * * *", "timezone": "Europe/Berln"}',
        "timezone = 'Europe/Berln' is no time zone: .* did you mean 'Europe/Berlin'",
    ),
    "start": (
        '{"task": noop.name, "schedule": 1, "start": "tomorrow"}',
        "start = 'tomorrow' is no instant: give a datetime",
    ),
    "backwards": (
        '{"task": noop.name, "schedule": 1, "start": "2030-01-02T00", "end": "2030-01-01T00"}',
        "after its end at .* never fires",
    ),
    "phase": ('{"task": noop.name, "schedule": crontab(), "phase": 5}', "phase shifts intervals"),
    "runs": ('{"task": noop.name, "schedule": 1, "max_runs": 0}', "max_runs = 0 is too few"),
    "expiry": ('{"task": noop.name, "schedule": 1, "expires": 60}', "expires = 60 is not underst"),
    "expiries": (
        '{"task": noop.name, "schedule": 1, "expires": "next", "options": {"expires": 60}}',
        "'expires' twice",
    ),
    "nickname": ('{"task": noop.name, "schedule": "@dayly"}', "did you mean '@daily'"),
    "every": ('{"task": noop.name, "schedule": "@every 5"}', "needs a duration as 90s"),
    "hash": ('{"task": noop.name, "schedule": "H(50-70) * * * *"}', "the minute field"),
    "rule": ('{"task": noop.name, "schedule": "FREQ=NEVER"}', "FREQ"),
    "no dict": ("5", "it must be a mapping"),
    "": ('{"task": noop.name, "schedule": 1}', "its name is empty; give it one"),
    None: ('{"task": noop.name, "schedule": 1}', "its name must be a text; write it in quotes"),
    5: ('{"task": noop.name, "schedule": 1}', "its name must be a text; write it in quotes"),
    b"bytes": ('{"task": noop.name, "schedule": 1}', "its name must be a text"),
    ("a", 1): ('{"task": noop.name, "schedule": 1}', "its name must be a text"),
    "half \udc80": ('{"task": noop.name, "schedule": 1}', "cannot be written as UTF-8; give it"),
}
NOT_SENT = {
    "unserialisable": ('{"task": noop.name, "schedule": 1, "args": [object()]}', "EncodeError"),
    "unroutable": (
        '{"task": noop.name, "schedule": 1, "options": {"queue": "nowhere"}}',
        "QueueNotFound: .*nowhere.* missing from task_queues",
    ),
    "expires soon": (
        '{"task": noop.name, "schedule": 1, "options": {"expires": "soon"}}',
        "ValueError: .*soon",
    ),
}
LONG = "long " * 1000
NAMES = [LONG, "new\nline", "{brace}}", "日本 ñ", "nul\0", "%s %d", "a b'\"c"]
SENT = {
    "good": '{"task": noop.name, "schedule": 1}',
    "unregistered": '{"task": "nobody.knows", "schedule": 1}',
    "received": '{"task": noop.name, "schedule": 1}',
    "fixed id": '{"task": noop.name, "schedule": 1, "options": {"task_id": "fixed"}}',
    "misspelt option": '{"task": noop.name, "schedule": 1, "options": {"expire": 5}}',
    "expires": '{"task": noop.name, "schedule": 1, "options": {"expires": 60}}',
    "countdown": '{"task": noop.name, "schedule": 1, "options": {"countdown": 60}}',
    "eta": '{"task": noop.name, "schedule": 1, "options": {"eta": datetime(2040, 1, 1)}}',
    "priority": '{"task": noop.name, "schedule": 1, "options": {"priority": 3}}',
    "queue": '{"task": noop.name, "schedule": 1, "options": {"queue": "other"}}',
    "link": '{"task": noop.name, "schedule": 1, "options": {"link": noop.s(7)}}',
    **dict.fromkeys(NAMES, '{"task": noop.name, "schedule": 1}'),
}
REST = {
    "lazy": '{"task": noop.name, "schedule": 1, "args": [BeatLazyFunc(boom)]}',
    "raising": '{"task": noop.name, "schedule": Raising(1)}',
    "10,000 days": '{"task": noop.name, "schedule": timedelta(days=10_000)}',
}
DEFINITIONS = """
from celery.beat import BeatLazyFunc
from kombu import Queue

app.conf.task_create_missing_queues = False
app.conf.task_queues = [Queue("celery"), Queue("other")]

class Raising(schedule):
    def is_due(self, last_run_at):
        raise RuntimeError("cannot say")

def boom():
    raise RuntimeError("lazy boom")

@signals.before_task_publish.connect
def refuse(headers=None, **_):
    if headers.get("periodic_task_name") == "received":
        raise RuntimeError("receiver boom")

app.conf.beat_schedule = {
"""


@dataclass
class Mixed:
    log: str
    found: list
    cpu: float

    def of(self, entry):
        return [each for each in self.found if each.entry == entry]


def everything():
    """Return the source of a schedule with all of them."""
    left_out = {name: source for name, (source, _) in LEFT_OUT.items()}
    not_sent = {name: source for name, (source, _) in NOT_SENT.items()}
    sources = {**left_out, **not_sent, **SENT, **REST}
    return DEFINITIONS + ",\n".join(f"{name!a}: {source}" for name, source in sources.items()) + "}"


@pytest.fixture(scope="module")
def running(place, server):
    """Start the beats that have something to send, together, to wait only once."""
    beats = [
        beat(place, "mixed", url(server, 1), extra=everything()),
        beat(place, "crowd", url(server, 2), extra=CROWD),
        beat(place, "app_one", url(server, 3), extra=APP_ONE),
        beat(place, "app_other", url(server, 3), extra=APP_OTHER),
        beat(place, "odd", url(server, 4), ODD_SCHEDULE, args=["-s", "mine.db"], **odd(server)),
    ]
    with ExitStack() as stack:
        yield {each.name: stack.enter_context(each) for each in beats}


@pytest.fixture(scope="module")
def mixed(place, server, running):
    """What became of everything within some seconds."""
    node = running["mixed"]
    wait_for_sent(node, "good", 4)
    node.stop()
    cpu = float((place / "cpu-mixed").read_text())
    return Mixed(node.log, messages(server, 1, "celery", "other", PRIORITY_3), cpu)


@pytest.mark.parametrize("name", LEFT_OUT, ids=ascii)
def test_a_bad_entry_is_left_out_and_told_once_by_name_with_the_way_out(mixed, name):
    errors = [line for line in lines(mixed.log, "ERROR") if f"entry {name!a}: " in line]
    assert len(errors) == 1
    assert re.search(LEFT_OUT[name][1], errors[0])
    assert mixed.of(name) == mixed.of(str(name)) == []


@pytest.mark.parametrize("name", NOT_SENT)
def test_what_cannot_be_sent_is_settled_once_for_each_tick_with_the_reason(mixed, name):
    errors = [line for line in lines(mixed.log, "ERROR") if f"] {name} @ " in line]
    assert errors
    assert all(re.search(rf"skipped:error .*{NOT_SENT[name][1]}", line) for line in errors)
    assert len(errors) <= len(mixed.of("good")) + 1
    assert mixed.of(name) == []


@pytest.mark.parametrize("name", SENT, ids=lambda name: ascii(name[:20]))
def test_the_others_are_sent_each_second_and_once(mixed, name):
    assert gaps(mixed.found, name) == set()
    assert doubled(mixed.found) == []
    # The first and the last instant may be shared with the start and the end.
    assert abs(len(mixed.of(name)) - len(mixed.of("good"))) <= 1


def test_a_name_never_breaks_a_line_of_ours_or_fills_the_log(mixed):
    ours = [line for line in mixed.log.splitlines() if "instant, id" in line]
    assert all(line.startswith("[") and len(line) < 500 for line in ours)
    assert any("] 'new\\nline' @ " in line for line in ours)


def test_options_reach_the_message(mixed):
    by_name = {each.entry: each for each in mixed.found}
    at = {name: each.at for name, each in by_name.items()}

    def moment(name, header):
        told = by_name[name].headers[header]
        return datetime.fromisoformat(told).replace(tzinfo=at[name].tzinfo) - at[name]

    assert timedelta(seconds=59) < moment("expires", "expires") < timedelta(seconds=65)
    assert timedelta(seconds=59) < moment("countdown", "eta") < timedelta(seconds=65)
    assert by_name["eta"].headers["eta"].startswith("2040-01-01")
    assert by_name["priority"].properties["priority"] == 3
    assert by_name["queue"].properties["delivery_info"]["routing_key"] == "other"
    assert len(mixed.of("link")) > 1


def test_a_fixed_task_id_is_kept_and_warned_of_once(mixed):
    assert {each.headers["id"] for each in mixed.of("fixed id")} == {"fixed"}
    warnings = [line for line in lines(mixed.log, "WARNING") if "'task_id'" in line]
    assert len(warnings) == 1
    assert "entry fixed id: its options fix the 'task_id'" in warnings[0]
    assert re.search(r"fixed id @ .*: sent .* id fixed,", mixed.log)


def test_a_misspelt_option_is_warned_of_once(mixed):
    warnings = [line for line in lines(mixed.log, "WARNING") if "'expire'" in line]
    assert len(warnings) == 1
    assert "did you mean 'expires'?" in warnings[0]


def test_a_function_for_an_argument_that_raises_is_tried_again_and_sends_nothing(mixed):
    assert re.search("lazy @ .*: not sent, will be tried again: .*lazy boom", mixed.log)
    assert mixed.of("lazy") == []


def test_a_schedule_that_raises_is_left_alone_for_a_minute(mixed):
    told = re.findall("'raising'.* schedule failed, it is tried again in a minute", mixed.log)
    assert len(told) == 1
    assert mixed.of("raising") == []


def test_an_interval_of_10000_days_waits(mixed):
    assert mixed.of("10,000 days") == []
    assert "entry '10,000 days'" not in mixed.log


def test_with_all_that_a_beat_does_not_spin(mixed):
    assert mixed.cpu < 0.6
    passes = mixed.log.count("This pass failed")
    assert passes == 0


# --- many entries, apps that share a name, and settings that are odd ------------------------------

CROWD = """
app.conf.beat_schedule = {
    **{f"hourly {n}": {"task": noop.name, "schedule": 3600} for n in range(5000)},
    **{f"second {n}": {"task": noop.name, "schedule": 1} for n in range(300)},
    "bad": {"task": noop.name, "schedule": "61 * * * *"},
    "tiny": {"task": noop.name, "schedule": 0.01},
}
"""


def test_one_bad_entry_among_5000_and_hundreds_in_each_second(place, server, running):
    node = running["crowd"]
    wait_for_sent(node, "second 299", 3)
    node.stop()
    found = messages(server, 2)
    assert len(lines(node.log, "ERROR")) == 1
    assert "entry 'bad': cron expression" in node.log
    assert doubled(found) == []
    assert [n for n in range(300) if gaps(found, f"second {n}")] == []
    tiny = sorted(each.at for each in found if each.entry == "tiny")
    steps = {after - before for before, after in pairwise(tiny)}
    assert steps == {timedelta(milliseconds=10)}
    assert node.log.count("\n") < 2 * len(found) + 100
    assert float((place / "cpu-crowd").read_text()) < 0.9


APP_ONE = """
app.conf.redlock_beat_namespace = "shared"
app.conf.beat_schedule = {
    "one": {"task": noop.name, "schedule": 1},
    "both": {"task": noop.name, "schedule": 1},
}
"""
APP_OTHER = """
app.conf.redlock_beat_namespace = "shared"
app.conf.beat_schedule = {
    "other": {"task": noop.name, "schedule": 1},
    "both": {"task": noop.name, "schedule": 2},
}
"""


def test_two_apps_with_one_namespace_and_other_entries_double_and_lose_nothing(server, running):
    first, second = running["app_one"], running["app_other"]
    wait_for_sent(first, "one", 4)
    wait_for_sent(second, "other", 4)
    first.stop()
    second.stop()
    found = messages(server, 3)
    assert doubled(found) == []
    assert [name for name in ("one", "other", "both") if gaps(found, name)] == []
    assert lines(first.log + second.log, "ERROR") == []


ODD_SCHEDULE = """{
    "good": {"task": noop.name, "schedule": 1.0},
    "cron": {"task": noop.name, "schedule": "* * * * * *"},
    "daily": {"task": noop.name, "schedule": crontab(hour=3, minute=0)},
}"""


def odd(server):
    return {
        "redlock_beat_lease": 3000 * 86400,
        "beat_max_loop_interval": 1e-7,
        "enable_utc": False,
        "timezone": "America/New_York",
        "result_backend": url(server, 5),
    }


def test_settings_that_are_odd_and_work(place, server, running):
    """A huge lease, Celery's loop at 100 ns, local time, results in Redis, a schedule file."""
    node = running["odd"]
    wait_for_sent(node, "cron", 3)
    node.stop()
    found = messages(server, 4)
    assert doubled(found) == []
    assert gaps(found, "good") == gaps(found, "cron") == set()
    assert len(warnings(node.log)) == 1
    assert "schedule file mine.db is ignored: the state is in Redis" in node.log
    assert not (place / "mine.db").exists()
    assert float((place / "cpu-odd").read_text()) < 0.6
    with redis.Redis.from_url(url(server, 5), socket_timeout=5) as client:
        assert client.dbsize() == 0


def test_tasks_that_run_at_once_and_a_ledger_in_memory_are_warned_of(place):
    conf = {"redlock_beat_url": "memory://", "task_always_eager": True, "broker_url": "memory://"}
    with beat(place, "eager", "memory://", **conf) as node:
        node.wait_for_log(r"good @ .*: skipped:not_sent .* no message came of it")
    assert node.log.count("task_always_eager is set: beat runs the tasks") == 1
    assert node.log.count("The ledger is in this process's memory: for tests") == 1
    assert "memory:// (for tests: no other node can see it)" in node.log


# --- servers that refuse: the process stays up, says once what to do, and goes on when mended -----

AWAY = "The ledger is away, nothing is sent until it is back: "


def wait_out(node, told, still="The ledger is still away"):
    """Wait until it said what is wrong and then tried several times more; it said so once."""
    node.wait_for_log(told)
    wait_until(lambda: node.log.count(still) >= 4 or not node.alive, 20, f"four times {still!r}")
    assert node.alive
    assert len(lines(node.log, "ERROR")) == 1


def goes_on(node, told="The ledger is back after"):
    wait_for_sent(node, "good", 1)
    assert node.log.count(told) == 1
    assert len(lines(node.log, "ERROR")) == 1
    assert "s3cret" not in node.log
    assert "wr0ng" not in node.log


@dataclass
class Refusing:
    guarded: Server
    full: Server
    replica: Server
    nobody: int
    no_broker: int
    beats: dict


@pytest.fixture(scope="module")
def refusing(place, server):
    """Start servers that refuse, and a beat at each of them."""
    nobody = free_port()
    no_broker = free_port()
    broker = f"redis://:{PASSWORD}@127.0.0.1:{no_broker}/0"
    with ExitStack() as stack:
        guarded = stack.enter_context(Server(password=PASSWORD))
        full = stack.enter_context(Server())
        replica = stack.enter_context(replica_of(server))
        wait_for_replica(replica)
        with full.client() as client:
            client.config_set("maxmemory", 1)
        with server.client() as client:
            client.config_set("maxmemory", 200_000_000)
            client.config_set("maxmemory-policy", "allkeys-lru")
        places = {
            "wrong": url(guarded, 0, WRONG),
            "none": url(guarded, 1),
            "full": url(full, 0),
            "replica": url(replica, 6),
            "evicting": url(server, 7),
            "nobody": f"redis://:{PASSWORD}@127.0.0.1:{nobody}/0",
        }
        beats = [beat(place, name, broker, debug=True) for name, broker in places.items()]
        beats.append(beat(place, "no_broker", broker, redlock_beat_url=url(server, 8), debug=True))
        started = {each.name: stack.enter_context(each) for each in beats}
        yield Refusing(guarded, full, replica, nobody, no_broker, started)


def test_a_wrong_password_and_none(refusing):
    wrong, none = refusing.beats["wrong"], refusing.beats["none"]
    advice = r"the server refuses our user or password .*check the user and the password of"
    wait_out(wrong, AWAY + advice)
    wait_out(none, AWAY + advice)
    with refusing.guarded.client() as client:
        client.config_set("requirepass", WRONG)
    goes_on(wrong)
    assert none.alive
    assert len(lines(none.log, "ERROR")) == 1


def test_a_full_server(refusing):
    node = refusing.beats["full"]
    wait_out(node, AWAY + "the server has reached its maxmemory.*raise maxmemory")
    with refusing.full.client() as client:
        client.config_set("maxmemory", 0)
    goes_on(node)


def test_a_replica(refusing):
    node = refusing.beats["replica"]
    wait_out(node, AWAY + "the server is a replica.*point the URL at the primary")
    with refusing.replica.client() as client:
        client.replicaof("NO", "ONE")
    goes_on(node)


def test_a_server_that_may_evict_is_warned_of_once(refusing):
    node = refusing.beats["evicting"]
    wait_for_sent(node, "good", 2)
    (warned,) = warnings(node.log)
    assert re.search("maxmemory-policy is allkeys-lru.*Set it to noeviction", warned)


def test_nobody_listens_at_the_ledger(refusing):
    node = refusing.beats["nobody"]
    wait_out(node, AWAY + "nothing listens at .*check that it runs, and host and port")
    with Server(refusing.nobody, password=PASSWORD):
        goes_on(node)


def test_nobody_listens_at_a_broker_that_is_not_the_ledger(refusing):
    node = refusing.beats["no_broker"]
    told = "The broker is away, nothing is sent until it is back: .*user and password of broker_url"
    wait_out(node, told, still="The broker is still away")
    with Server(refusing.no_broker, password=PASSWORD):
        goes_on(node, "The broker is back.")
