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
from pathlib import Path

import pytest

from celery_redlock_beat.testing.server import wait_until
from support.nodes import BeatNode, WorkerNode

EXAMPLES = Path(__file__).parents[2] / "examples"


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
