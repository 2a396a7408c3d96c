"""Whether all is well is told to people, to programs, to probes, and on a screen that goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from support.nodes import BeatNode
from support.operator import PROJECT, Operator, check
from support.requirements import require
from support.servers import Server, have_server, wait_until

WITH_FILE = f'{PROJECT}\napp.conf.redlock_beat_health_file = "health"\n'


@pytest.fixture(scope="module")
def server():
    require("redis-server", have_server())
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def operator(tmp_path_factory, server):
    """Return an operator beside a node that sends what is due; the ledger is not new any more."""
    directory = tmp_path_factory.mktemp("project")
    operator = Operator(directory, server.url, WITH_FILE)
    with BeatNode(directory, "node").start():
        wait_until(lambda: operator.control.history("pulse"), 30, "the first pulse")
        with server.client() as client:
            client.hdel(ledger_keys("shop", "")["marks"], "began")
        wait_until(lambda: operator.control.health().ready, 30, "a heartbeat that says so")
        yield operator
    operator.control.close()


@pytest.fixture
def lost(tmp_path):
    """Return an operator whose server is away."""
    return Operator(tmp_path, "redis://127.0.0.1:1/0")


def probe(*words):
    """Run ``celery redlock health`` without an app; return its exit code and its document."""
    command = [sys.executable, "-m", "celery", "redlock", "health", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    document = json.loads(done.stdout)
    check("health", document)
    return done.returncode, document


def written(path, **more):
    record = {"format": 1, "node": "one", "pid": 7, "at": time.time(), "ready": True}
    path.write_text(json.dumps({**record, "problems": [], **more}))
    return str(path)


def test_a_fleet_that_works_is_ready(operator):
    told = operator.json("health")
    assert (told["alive"], told["ready"], told["problems"]) == (True, True, [])
    assert told["nodes"] == 1
    spoken = operator.told("health", "--live").splitlines()
    assert spoken[0] == "ready"
    assert spoken[1] == "  nodes    1 alive"
    assert spoken[2] == "  entries  5 code"
    assert " sent" in spoken[4]


def test_a_server_that_is_away_is_not_alive(lost):
    told = lost.json("health", code=1)
    assert (told["alive"], told["ready"], told["now"]) == (False, False, None)
    done = lost.run("health", "--live")
    assert done.returncode == 1
    assert done.stdout.startswith("not alive\n  problem: ")
    assert done.stderr == ""


def test_a_node_that_runs_is_alive_and_ready_by_its_file(operator):
    code, told = probe("--file", str(operator.directory / "health"))
    assert (code, told["alive"], told["ready"], told["problems"]) == (0, True, True, [])
    (node,) = (each["id"] for each in operator.json("nodes")["nodes"] if each["alive"])
    assert told["node"] == node


def test_a_file_tells_alive_and_ready_apart(tmp_path):
    path = written(tmp_path / "health", ready=False, problems=["the ledger is away"])
    assert probe("--file", path)[0] == 1
    code, told = probe("--file", path, "--live")
    assert (code, told["alive"], told["ready"]) == (0, True, False)
    assert told["problems"] == ["the ledger is away"]


def test_a_file_that_is_too_old_is_that_of_a_node_that_hangs(tmp_path):
    path = written(tmp_path / "health", at=time.time() - 60)
    code, told = probe("--file", path, "--live")
    assert (code, told["alive"], told["ready"]) == (1, False, False)
    assert "and not within 30 s: beat hangs, or has died" in told["problems"][0]
    assert probe("--file", path, "--max-age", "600")[0] == 0
    assert probe("--file", written(tmp_path / "health", at=time.time() + 600))[0] == 1


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1"])
def test_an_age_that_every_file_passes_is_refused(operator, tmp_path, seconds):
    path = written(tmp_path / "health", at=0)
    assert operator.here("health", "--file", path, "--max-age", seconds).exit_code == 2


def test_a_probe_does_not_wait_for_the_writer_of_a_pipe(operator, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = operator.here("health", "--file", str(tmp_path / "pipe"))
    assert done.exit_code == 1
    assert "is no regular file" in done.stdout


@pytest.mark.parametrize("text", [None, "", "[]", "{}", "\x00", '{"format": 2}'])
def test_a_file_that_is_none_is_told(operator, tmp_path, text):
    path = tmp_path / "health"
    if text is not None:
        path.write_text(text)
    done = operator.here("health", "--file", str(path))
    assert done.exit_code == 1
    assert done.stdout.startswith("not alive\n  problem: ")
    assert str(path) in done.stdout


def test_nodes_are_shown_and_their_absence_is_an_error(operator, tmp_path, server):
    (node,) = operator.json("nodes")["nodes"]
    assert (node["alive"], node["ready"], node["entries"]) == (True, True, 5)
    header, line = operator.told("nodes").splitlines()
    assert header.split()[:3] == ["node", "state", "heartbeat"]
    assert line.split()[:2] == [node["id"], "alive"]
    other = PROJECT.replace('"shop"', '"unknown"')
    alone = Operator(tmp_path, server.url, other)
    assert alone.json("nodes", code=1) == {"nodes": []}
    assert "No node has run yet: start one" in alone.run("nodes").stdout


def test_a_picture_is_printed_once_in_a_pipe(operator):
    lines = operator.told("top").splitlines()
    assert "  ready  entries: 5 code  open: " in lines[0]
    assert {"Due next", "Came about", "Nodes"} <= set(lines)
    assert all(line.isprintable() for line in lines)
    told = operator.json("top")
    assert told["upcoming"][0]["entry"] == "pulse"
    assert told["recent"][0]["action"] == "sent"


def test_a_picture_of_a_server_that_is_away_says_so(lost):
    done = lost.run("top", "--once")
    assert (done.returncode, done.stderr) == (1, "")
    assert "  not alive  " in done.stdout
    assert "problem: " in done.stdout
    assert lost.json("top", code=1)["upcoming"] == []


@pytest.mark.parametrize(("key", "rich"), [("q", True), ("\x03", True), ("q", False)])
def test_a_screen_goes_on_until_a_key_ends_it(operator, tmp_path, key, rich):
    env = {}
    if not rich:
        (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['rich'] = None\n")
        env = {"PYTHONPATH": str(tmp_path)}
    operator.control.pause("report-daily", note="for a while")
    with operator.terminal("top", "--interval", "0.2", env=env) as terminal:
        terminal.wait_for("Paused")
        first = terminal.lines[0]
        text = terminal.wait_for(lambda text: "Paused" in text and first not in text)
        assert "report-daily  by " in text
        assert "pulse" in text
        assert " alive" in text
        terminal.send(key)
        assert terminal.end() == 0
        assert "Traceback" not in terminal.text
    operator.control.resume("report-daily")


def test_a_terminal_that_cannot_be_drawn_on_gets_one_picture(operator):
    with operator.terminal("top", term="dumb") as terminal:
        assert terminal.end() == 0
        assert "Due next" in terminal.text
        assert b"\x1b[?1049h" not in terminal.raw


def test_a_screen_that_is_terminated_leaves_the_terminal_as_it_was(operator):
    with operator.terminal("top", "--interval", "0.2") as terminal:
        terminal.wait_for("Due next")
        terminal.terminate()
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.raw.count(b"\x1b[?1049l") == 1


def test_a_screen_shows_a_server_that_goes_away_and_comes_back(tmp_path):
    require("redis-server", have_server())
    with Server(appendonly=True) as server:
        operator = Operator(tmp_path, server.url)
        operator.control.add("mine", task="proj.mine", schedule=3600)
        operator.control.close()
        with operator.terminal("top", "--interval", "0.2") as terminal:
            terminal.wait_for("mine")
            server.stop()
            terminal.wait_for("problem: ")
            server.start()
            terminal.wait_for("mine")
            terminal.send("q")
            assert terminal.end() == 0
