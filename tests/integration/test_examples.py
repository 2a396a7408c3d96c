"""Each example runs as its comment says, on a real server, in a directory of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import SECOND, Tick
from support.nodes import BeatNode, Node, WorkerNode

EXAMPLES = Path(__file__).parents[2] / "examples"
RECEIVED = r"Task {}\[([\w-]+)\] received"


@pytest.fixture
def example(tmp_path, shared_redis):
    """Copy an example, since its processes write beside it, and name the server to them."""

    def copy(name):
        directory = shutil.copytree(
            EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
        )
        return directory, {"CELERY_BROKER_URL": shared_redis.url}

    return copy


def count(pattern, *nodes):
    """How often each match of the pattern's group is in the logs of these nodes."""
    return Counter(found for node in nodes for found in re.findall(pattern, node.log))


def the_same_twice(counter):
    return {what: number for what, number in counter.items() if number != 1}


def test_there_is_no_example_that_is_not_run_here():
    assert {path.parent.name for path in EXAMPLES.glob("*/*.py")} == {
        "minimal",
        "every_worker",
        "policies",
        "at_run_time",
        "first_steps",
        "django_project",
        "flask_project",
    }


def test_minimal_says_hello_once_per_tick_with_two_beats_and_with_one(example):
    directory, env = example("minimal")
    said = r"hello world, it is (\d\d:\d\d:\d\d)"
    with ExitStack() as stack:
        worker = stack.enter_context(WorkerNode(directory, env=env, args=["-P", "solo"]))
        beats = [stack.enter_context(BeatNode(directory, name, env=env)) for name in ("one", "two")]
        wait_until(lambda: len(count(said, worker)) >= 2, 40, "two ticks")
        beats[0].kill()
        before = len(count(said, worker))
        wait_until(lambda: len(count(said, worker)) >= before + 2, 20, "two more ticks")
        assert not the_same_twice(count(said, worker)), worker.log
        assert beats[1].alive


def test_every_worker_sends_and_does_its_share_and_one_may_die(example):
    directory, env = example("every_worker")
    with ExitStack() as stack:
        workers = [
            stack.enter_context(WorkerNode(directory, name, beat=True, env=env))
            for name in ("one", "two")
        ]
        one, two = workers
        wait_until(lambda: count(r"(readings) of \d", *workers)["readings"], 40, "a cron string")
        wait_until(lambda: len(count(r"pulse of (\S+)", *workers)) >= 3, 40, "three ticks")
        one.stop()
        before = len(count(r"pulse of (\S+)", two))
        wait_until(lambda: len(count(r"pulse of (\S+)", two)) >= before + 2, 20, "two more ticks")
        assert not the_same_twice(count(r"pulse of (\S+)", *workers)), one.log + two.log


def test_policies_greet_once_cheer_three_times_and_poll_each_tick_once(example):
    directory, env = example("policies")
    said = r"((?:welcome|three cheers|poll), as of \S+)"
    with ExitStack() as stack:
        worker = stack.enter_context(WorkerNode(directory, env=env, args=["-P", "solo"]))
        beats = [stack.enter_context(BeatNode(directory, name, env=env)) for name in ("one", "two")]
        wait_until(lambda: count("(three cheers)", worker)["three cheers"] == 3, 40, "three cheers")
        beats[0].stop()
        stack.enter_context(BeatNode(directory, "three", env=env))
        before = count("(poll)", worker)["poll"]
        wait_until(lambda: count("(poll)", worker)["poll"] >= before + 3, 30, "three more polls")
        assert not the_same_twice(count(said, worker)), worker.log
        assert count("(welcome|three cheers)", worker) == {"welcome": 1, "three cheers": 3}


def test_policies_tell_when_they_are_due_without_a_server(example):
    directory, _ = example("policies")
    told = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "proj", "redlock", "next", "-n", "1"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in ("welcome", "cheers", "poll", "tokyo", "new york", "tidy", "launch"):
        assert re.search(rf"^{name}$", told.stdout, re.MULTILINE)
    assert "2030-01-01" in told.stdout


def commands_of(path):
    """The commands that an example's comment lists, but for the processes that go on."""
    told = re.findall(r"^    ((?:celery|python) .*)$", path.read_text("utf-8"), re.MULTILINE)
    return [each for each in told if not re.search(r"proj (worker|beat) ", each)]


def test_at_run_time_entries_come_pause_and_go_as_the_commands_say(example):
    directory, env = example("at_run_time")
    digest = r"digest for (\w+), \d"

    def run(command):
        program, *words = shlex.split(command)
        module = ["-m", "celery"] if program == "celery" else []
        done = subprocess.run(
            [sys.executable, *module, *words],
            cwd=directory,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    with ExitStack() as stack:
        worker = stack.enter_context(WorkerNode(directory, env=env, args=["-P", "solo"]))
        beats = [stack.enter_context(BeatNode(directory, name, env=env)) for name in ("one", "two")]
        commands = commands_of(directory / "proj.py")
        for command in commands[:2]:
            run(command)
        wait_until(lambda: count(digest, worker).keys() >= {"anna", "bert"}, 40, "both digests")
        paused, told = 0, ""
        for command in commands:
            told = run(command)
            if "pause" in command:
                paused = count(digest, worker)["anna"]
            if "maintenance" in command:
                assert "held back: digest-bert" in told
                assert count(digest, worker)["anna"] <= paused + 1  # one may have been in the queue
        assert re.search(r"digest-bert +removed", told)
        wait_until(lambda: count(digest, worker)["anna"] > paused + 1, 20, "anna's digest")
        assert count(r"digest for (\w+), (?=by hand)", worker) == {"bert": 1}
        assert "anna is here already" in worker.log
        assert not the_same_twice(count(r"(digest for \w+, \d\d:\S+)", worker)), worker.log
        assert not [line for beat in beats for line in beat.troubles()]


class Run:
    """A worker and two beats on a copy of an example."""

    def __init__(self, directory, env, module, scheduler=()):
        command = ["beat", *scheduler, "--pidfile=", "-l", "info"]
        self.worker = WorkerNode(directory, env=env, module=module, args=["-P", "solo"])
        self.beats = [
            Node(directory, name, command, module=module, env=env) for name in ("one", "two")
        ]
        self._stack = ExitStack()

    def __enter__(self):
        with self._stack as stack:
            for node in (self.worker, *self.beats):
                stack.enter_context(node)
            self._stack = stack.pop_all()
        for beat in self.beats:
            beat.wait_for_log("The ledger has heard this node", 40)
        return self

    def __exit__(self, *_):
        self._stack.close()

    def ids(self, task):
        """The ids of the messages of a task that the worker took."""
        return Counter(re.findall(RECEIVED.format(re.escape(task)), self.worker.log))

    def said(self, pattern):
        """How often the worker said what a pattern finds."""
        return Counter(re.findall(pattern, self.worker.log))

    def wait_for(self, pattern, number, limit):
        wait_until(
            lambda: self.said(pattern).total() >= number, limit, f"{number} times {pattern}", 0.1
        )

    def finish(self):
        """Stop the beats, and let the worker come to its end; nothing may have gone wrong."""
        for beat in self.beats:
            beat.stop()
        self.worker.stop()
        for log in (self.worker.log, *(beat.log for beat in self.beats)):
            assert not re.findall(r"^.*(?:ERROR|CRITICAL|Traceback).*$", log, re.MULTILINE)
        assert any("Sending due task" in beat.log for beat in self.beats)


def ids_of(entry, every, since, until, namespace):
    """Return the ids of all ticks of an interval between two moments, both in seconds."""
    first = -(-int(since) // every) * every
    ticks = [Tick(entry, at * SECOND) for at in range(first, int(until) + 1, every)]
    return {tick.task_id(namespace) for tick in ticks}


@pytest.mark.slow
def test_the_periodic_tasks_of_celerys_guide_are_sent_once_each(example):
    directory, env = example("first_steps")
    since = datetime.now(UTC).timestamp()
    with Run(directory, env, "tasks", ["-S", "redlock"]) as run:
        registered = datetime.now(UTC).timestamp()
        run.wait_for(r"(?m)\] (hello)$", 3, 60)
        run.wait_for(r"(?m)\] (world)$", 1, 60)
        run.finish()
    until = datetime.now(UTC).timestamp()
    due = {"add every 10": 10, "add every 30": 30, "tasks.test('world')": 30}
    possible = set()
    for entry, every in due.items():
        possible |= ids_of(entry, every, since, until, "tasks")
    certain = ids_of("add every 10", 10, registered + 1, until - 12, "tasks")
    received = run.ids("tasks.test")
    assert set(received.values()) == {1}
    assert certain <= received.keys() <= possible
    assert run.said(r"(?m)\] (hello|world)$").total() == len(received)


@pytest.mark.slow
def test_a_django_project_says_in_its_settings_what_is_needed(example):
    directory, env = example("django_project")
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"],
        cwd=directory,
        env={**os.environ, **env},
        check=True,
    )
    with Run(directory, env, "mysite") as run:
        run.wait_for(r"(0 users, as of \d\d:\d\d:\d\d)", 3, 40)
        run.finish()
    assert set(run.ids("demoapp.tasks.count_users").values()) == {1}
    assert set(run.said(r"users, as of (\d\d:\d\d:\d\d)").values()) == {1}
    for beat in run.beats:
        assert "scheduler -> celery_redlock_beat.scheduler.RedlockScheduler" in beat.log
        assert "(namespace mysite)" in beat.log


@pytest.mark.slow
def test_a_flask_app_of_a_factory_needs_the_schedulers_name(example):
    directory, env = example("flask_project")
    with Run(directory, env, "make_celery", ["-S", "redlock"]) as run:
        run.wait_for(r"hello from Flask to world, as of (\d\d:\d\d:\d\d)", 3, 40)
        run.finish()
    assert set(run.ids("task_app.tasks.greet").values()) == {1}
    assert set(run.said(r"to world, as of (\d\d:\d\d:\d\d)").values()) == {1}
