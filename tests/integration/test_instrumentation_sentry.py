"""Sentry's own integration, in beats and worker: one check-in for each tick that is sent.

Its monitors take whole minutes, so entries of a minute are due at different seconds of it. What it
sends is written to a file by each process, and nothing leaves the machine.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from celery_redlock_beat.testing.server import wait_until
from support.nodes import BeatNode, WorkerNode, write_project
from support.requirements import require
from support.servers import Server, have_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2, "task_ignore_result": True}
INSTRUMENTED = """
import json
import os

import sentry_sdk
from sentry_sdk.integrations.celery import CeleryIntegration
from sentry_sdk.transport import Transport

from celery_redlock_beat import current_tick


def note(kind, told):
    with open(os.environ["NOTES"], "a") as file:
        file.write(json.dumps([kind, told]) + "\\n")


class Notes(Transport):
    def capture_envelope(self, envelope):
        for item in envelope.items:
            note(item.type, item.payload.json)


sentry_sdk.init(
    dsn="http://key@127.0.0.1:1/1",
    transport=Notes,
    traces_sample_rate=1.0,
    integrations=[CeleryIntegration(monitor_beat_tasks=True, exclude_beat_tasks=["left out.*"])],
)


@app.task(bind=True)
def work(self):
    tick = current_tick()
    headers = self.request.headers or {}
    note("run", {
        "entry": tick.entry,
        "tick": tick.instant.isoformat(),
        "check_in": headers.get("sentry-monitor-check-in-id"),
        "trace": (headers.get("sentry-trace") or "").partition("-")[0],
    })
    if tick.entry == "failing":
        raise ValueError("as it is meant")
"""
MINUTE = {"type": "interval", "value": 1, "unit": "minute"}
# What is monitored, and how Sentry is told of its schedule and zone.
INTERVALS = {
    "number": ("60", MINUTE),
    "float": ("60.0", MINUTE),
    "timedelta": ("timedelta(minutes=1)", MINUTE),
    "schedule": ("schedule(60)", MINUTE),
    "failing": ("60", MINUTE),
}
CRONTABS = {
    "each minute": ("crontab()", "* * * * *", "Europe/Berlin"),
    "fields": ("crontab(minute='*/1', hour='0-23')", "*/1 0-23 * * *", "Europe/Berlin"),
    "elsewhere": ("crontab()", "* * * * *", "America/New_York"),
}
MORE = {"elsewhere": ', "timezone": "America/New_York"'}
MONITORS = {name: (told, "Europe/Berlin") for name, (_, told) in INTERVALS.items()} | {
    name: ({"type": "crontab", "value": told}, zone) for name, (_, told, zone) in CRONTABS.items()
}
# What Sentry knows no monitor for, or was told to leave out.
UNMONITORED = {
    "each second": "1.0",
    "cron string": '"* * * * *"',
    "cron string of six": '"*/10 * * * * *"',
    "rule": '"FREQ=MINUTELY"',
    "left out": "crontab()",
    "left out, too": "60",
}


def entry(name, schedule, more=""):
    return f'{name!r}: {{"task": "proj.work", "schedule": {schedule}{more}}}'


def everything():
    """Return the source of the schedule; its intervals are due from ten seconds from now on."""
    soon = int(time.time()) + 10
    entries = [
        entry(name, source, f', "phase": {(soon + number) % 60}')
        for number, (name, (source, _)) in enumerate(INTERVALS.items())
    ]
    entries += [entry(name, row[0], MORE.get(name, "")) for name, row in CRONTABS.items()]
    entries += [entry(name, source) for name, source in UNMONITORED.items()]
    return "{" + ", ".join(entries) + "}"


@dataclass
class Seen:
    """What the processes noted: by the beats together, and by the worker."""

    beats: dict
    worker: list
    logs: list

    def check_ins(self, status, *, of_worker=False):
        notes = self.worker if of_worker else [each for one in self.beats.values() for each in one]
        return [told for kind, told in notes if kind == "check_in" and told["status"] == status]

    @property
    def runs(self):
        return [told for kind, told in self.worker if kind == "run"]


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What three beats and a worker noted until everything was sent, and run, at least once."""
    require("redis-server", have_server())
    place = tmp_path_factory.mktemp("sentry")
    names, expected = ["one", "two", "three"], {*MONITORS, *UNMONITORED}

    def look():
        beats = {name: read(place / f"notes-{name}") for name in names}
        return Seen(beats, read(place / "notes-worker"), [])

    def env(name):
        return {"NOTES": str(place / f"notes-{name}")}

    with ExitStack() as stack:
        server = stack.enter_context(Server())
        config = {**QUICK, "timezone": "Europe/Berlin"}
        write_project(place, server.url, everything(), config=config, extra=INSTRUMENTED)
        beats = [stack.enter_context(BeatNode(place, name, env=env(name))) for name in names]
        worker = stack.enter_context(WorkerNode(place, env=env("worker"), args=["-P", "solo"]))
        wait_until(
            lambda: {run["entry"] for run in look().runs} >= expected, 150, "each entry", 0.2
        )
        # Not while they send: what is begun then has no end.
        wait_until(lambda: 0.4 < time.time() % 1 < 0.6, 2, "half a second")
        for beat in beats:
            beat.ask_to_end()
        for beat in beats:
            assert beat.wait_for_exit() == 0, beat.log
        with server.client() as client:
            wait_until(lambda: not client.exists("celery"), 30, "an empty queue")
        worker.stop()
        seen = look()
        seen.logs = [each.log for each in (*beats, worker)]
    return seen


def test_each_tick_that_is_sent_checks_in_once_and_no_other_node_does(seen):
    begun = Counter(told["check_in_id"] for told in seen.check_ins("in_progress"))
    ran = Counter(run["check_in"] for run in seen.runs if run["entry"] in MONITORS)
    assert begun == ran
    assert set(begun.values()) == {1}
    assert {told["monitor_slug"] for told in seen.check_ins("in_progress")} == MONITORS.keys()


def test_each_tick_is_run_once(seen):
    ticks = Counter((run["entry"], run["tick"]) for run in seen.runs)
    assert {tick: number for tick, number in ticks.items() if number > 1} == {}


def test_the_worker_concludes_the_check_in_that_beat_began(seen):
    begun = {each["check_in_id"]: each["monitor_slug"] for each in seen.check_ins("in_progress")}
    ended = [*seen.check_ins("ok", of_worker=True), *seen.check_ins("error", of_worker=True)]
    assert {each["check_in_id"]: each["monitor_slug"] for each in ended} == begun
    assert len(ended) == len(begun)
    assert all(each["duration"] >= 0 for each in ended)
    failed = {each["monitor_slug"] for each in seen.check_ins("error", of_worker=True)}
    assert failed == {"failing"}


@pytest.mark.parametrize("name", MONITORS)
def test_a_monitor_has_the_schedule_and_the_zone_of_its_entry(seen, name):
    schedule, zone = MONITORS[name]
    for status, of_worker in (("in_progress", False), ("ok", True), ("error", True)):
        for told in seen.check_ins(status, of_worker=of_worker):
            if told["monitor_slug"] == name:
                assert told["monitor_config"] == {"schedule": schedule, "timezone": zone}


@pytest.mark.parametrize("name", UNMONITORED)
def test_what_sentry_has_no_monitor_for_is_sent_without_a_check_in(seen, name):
    assert {run["check_in"] for run in seen.runs if run["entry"] == name} == {None}


def test_each_tick_has_a_trace_of_its_own_that_the_worker_continues(seen):
    traces = [run["trace"] for run in seen.runs]
    assert all(traces)
    assert len(set(traces)) == len(traces)
    transactions = [told for kind, told in seen.worker if kind == "transaction"]
    assert Counter(each["contexts"]["trace"]["trace_id"] for each in transactions) == Counter(
        traces
    )


def test_instrumented_nodes_tell_of_no_trouble(seen):
    beats = [kind for notes in seen.beats.values() for kind, _ in notes]
    assert "event" not in beats  # no error of a beat was reported
    for log in seen.logs[:-1]:
        assert "Traceback" not in log
        assert "ERROR" not in log
