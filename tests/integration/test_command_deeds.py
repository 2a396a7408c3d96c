"""Entries are paused, resumed, switched, fired and skipped by what is typed, while a node runs."""

from __future__ import annotations

import json
import select
import signal
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from support.nodes import BeatNode
from support.operator import PROJECT, Operator, check
from support.requirements import require
from support.servers import Server, have_server, wait_until


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """Return an operator beside a node that sends what is due."""
    require("redis-server", have_server())
    directory = tmp_path_factory.mktemp("project")
    with Server() as server:
        operator = Operator(directory, server.url)
        operator.server = server
        with BeatNode(directory, "node").start():
            wait_until(lambda: operator.control.history("pulse"), 30, "the first pulse")
            yield operator
        operator.control.close()


@pytest.fixture
def mine(operator):
    """Return the name of a stored entry that is hardly ever due."""
    operator.control.add("mine", task="proj.mine", schedule="0 3 1 1 *", tags=["own"])
    yield "mine"
    operator.control.remove("mine")


@pytest.fixture(autouse=True)
def resumed(operator):
    yield
    operator.control.resume(all=True)


def sent(operator, task):
    """Return the ids of the messages of a task."""
    with operator.server.client() as client:
        messages = [json.loads(each) for each in client.lrange("celery", 0, -1)]
    return [each["headers"]["id"] for each in messages if each["headers"]["task"] == task]


def actions(operator, name):
    return [each.action for each in operator.control.history(name)]


def test_a_paused_entry_says_by_whom_why_and_until_when(operator):
    told = operator.told("pause", "pulse", "--until", "2h", "--note", "the database moves")
    assert told.startswith("paused pulse, until 2")
    (view,) = operator.json("list", "pulse", "--state", "paused")["entries"]
    pause = view["paused"]
    assert pause["note"] == "the database moves"
    assert "@" in pause["who"]
    length = datetime.fromisoformat(pause["until"]) - datetime.fromisoformat(pause["since"])
    assert abs(length - timedelta(hours=2)) < timedelta(seconds=2)
    shown = operator.told("show", "pulse")
    assert f"paused by {pause['who']} since " in shown
    assert ": the database moves\n" in shown
    assert "not sent while it is paused" in shown


def test_entries_are_paused_and_resumed_by_pattern_tag_and_task(operator):
    names = ["report-daily", "report-weekly"]
    for words in (["report-*"], ["--tag", "report"], ["--task", "proj.rep*"]):
        paused = operator.json("pause", *words)["entries"]
        assert [(each["name"], each["state"]) for each in paused] == [(n, "paused") for n in names]
        resumed = operator.json("resume", *words)["entries"]
        assert [(each["name"], each["state"]) for each in resumed] == [(n, "active") for n in names]


def test_a_pause_until_an_instant_is_typed_with_its_offset(operator):
    until = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    told = operator.told("pause", "report-daily", "--until", until.isoformat())
    assert told == f"paused report-daily, until {until.isoformat().replace('+00:00', 'Z')}\n"
    for wrong in ("2040-01-01T00:00:00", "tomorrow", "5", "-2h"):
        done = operator.here("pause", "report-daily", "--until", wrong)
        assert done.exit_code == 2
        assert "write it as 2030-01-31T12:00:00Z, or as a duration" in done.stderr
    done = operator.refused("pause", "report-daily", "--until", "2001-01-01T00:00:00Z", code=1)
    assert "2001-01-01" in done


def test_nothing_is_done_with_all_entries_unless_somebody_says_yes(operator, mine):
    for words in (["pause"], ["disable"], ["fire"]):
        told = operator.refused(*words, "--all", code=2)
        assert told.endswith("there is no terminal to ask on, so add --yes")
    with operator.terminal("pause", "--all") as terminal:
        terminal.wait_for("[y/N]")
        assert "Pause 6 entries (celery.backend_cleanup, mine, " in terminal.text
        terminal.send("n\r")
        assert terminal.end() == 1
    assert not operator.control.entries(state="paused")
    assert operator.told("pause", "--all", "--yes").count("paused ") == 6
    assert "which entries?" in operator.refused("resume", code=2)
    assert operator.told("resume", "--all").count("resumed ") == 6


def test_a_node_sends_nothing_of_what_is_paused_and_goes_on_when_it_is_resumed(operator):
    operator.told("pause", "pulse")
    before = len(sent(operator, "proj.pulse"))
    operator.control.add("other", task="proj.other", schedule=1)
    wait_until(lambda: len(sent(operator, "proj.other")) > 2, 20, "three ticks of another entry")
    operator.control.remove("other")
    assert len(sent(operator, "proj.pulse")) == before
    operator.told("resume", "pulse", "--catch-up")
    wait_until(lambda: len(sent(operator, "proj.pulse")) > before, 20, "another pulse")


def test_what_was_not_paused_is_not_told_to_be_resumed(operator):
    operator.told("pause", "report-daily")
    told = operator.told("resume", "report-*")
    assert told == "resumed report-daily\nreport-weekly was not paused\n"


def test_the_pause_of_an_entry_that_is_gone_is_ended(operator, tmp_path):
    code = PROJECT + 'app.conf.beat_schedule["fleeting"] = {{"task": "proj.a", "schedule": 60}}\n'
    Operator(tmp_path, operator.server.url, code).told("pause", "fleeting")
    assert operator.told("resume", "fleeting") == "resumed fleeting\n"
    assert "no entry 'fleeting'" in operator.refused("resume", "fleeting", code=2)


def test_a_pause_of_all_warns_where_nodes_have_other_code(operator, tmp_path):
    wait_until(lambda: any(each.schedule for each in operator.control.nodes()), 30, "a heartbeat")
    code = PROJECT.replace("proj.pulse", "proj.other")
    for each, warnings in ((operator, 0), (Operator(tmp_path, operator.server.url, code), 1)):
        done = each.run("pause", "--all", "--yes")
        each.told("resume", "--all")
        assert done.returncode == 0
        assert done.stderr.count("another schedule in code") == warnings


def test_what_a_pattern_matched_and_is_paused_is_told_and_left_out(operator):
    operator.told("pause", "report-weekly")
    done = operator.run("fire", "--tag", "report")
    operator.told("resume", "report-weekly")
    assert done.returncode == 0
    assert done.stdout.startswith("sent report-daily, task id ")
    assert done.stderr.startswith("Warning: entry 'report-weekly' is paused")
    assert done.stderr.endswith("or say --force\n")


def test_a_stored_entry_is_switched_off_and_on(operator, mine):
    assert operator.told("disable", mine, "--note", "not yet") == "disabled mine\n"
    assert "nothing, as it is disabled" in operator.told("show", mine)
    (view,) = operator.json("enable", "--tag", "own")["entries"]
    assert view["state"] == "active"
    with operator.terminal("disable", "--all") as terminal:
        terminal.wait_for("Disable 1 entry (mine)? [y/N]")
        terminal.send("y\r")
        assert terminal.end() == 0
        assert "disabled mine" in terminal.lines


def test_an_entry_is_fired_once_per_key(operator, mine):
    (fired,) = operator.json("fire", mine, "--key", "deploy-42")["fired"]
    assert sent(operator, "proj.mine") == [fired["task_id"]]
    again = operator.told("fire", mine, "--key", "deploy-42")
    assert again == f"was sent before: mine, task id {fired['task_id']}\n"
    assert sent(operator, "proj.mine") == [fired["task_id"]]
    assert operator.told("fire", mine).startswith("sent mine, task id ")
    assert len(sent(operator, "proj.mine")) == 2


def test_what_is_paused_is_fired_only_by_force(operator, mine):
    operator.control.pause(mine)
    before = len(sent(operator, "proj.mine"))
    told = operator.refused("fire", mine, code=1)
    assert "'mine' is paused" in told
    assert told.endswith("--force")
    done = operator.run("fire", "min*")
    assert (done.returncode, done.stdout) == (1, "")
    why, error = done.stderr.splitlines()
    assert "'mine' is paused" in why
    assert error.startswith("Error: nothing was done")
    assert len(sent(operator, "proj.mine")) == before
    operator.told("fire", mine, "--force")
    assert len(sent(operator, "proj.mine")) == before + 1


def test_the_next_tick_is_skipped_and_then_the_one_after(operator):
    first, second = (each.tick for each in operator.control.upcoming(2, "report-weekly"))
    told = operator.json("skip", "report-weekly", "next", "--note", "a holiday")
    assert datetime.fromisoformat(told["tick"]) == first
    assert datetime.fromisoformat(told["entry"]["next"]) == second
    at = second.isoformat()
    assert operator.told("skip", "report-weekly", at).startswith("to be skipped: report-weekly, t")
    shown = operator.told("show", "report-weekly")
    assert shown.count(", to be skipped\n") == 2


def test_a_tick_that_cannot_be_skipped_is_refused(operator):
    no_tick = "2040-01-01T00:00:01Z"
    assert "entry 'report-daily'" in operator.refused("skip", "report-daily", no_tick, code=1)
    for wrong in ("2040-01-01T02:30:00", "nxt"):
        done = operator.here("skip", "report-daily", wrong)
        assert done.exit_code == 2
        assert "write it with its offset, as 2030-01-31T12:00:00Z, or as 'next'" in done.stderr
    assert "no next tick" in operator.refused("skip", "whim", "next", code=1)


def test_the_history_ends_with_the_newest_and_is_as_long_as_asked_for(operator, mine):
    operator.control.pause(mine, note="first")
    operator.control.resume(mine)
    records = operator.json("history", mine, "-n", "3")["records"]
    assert [each["action"] for each in records] == ["added", "paused", "resumed"]
    assert [each["action"] for each in operator.json("history", mine, "-n", "1")["records"]] == [
        "resumed"
    ]
    lines = operator.told("history", mine, "-n", "2").splitlines()
    assert lines[0].split() == ["at", "entry", "action", "tick", "node", "about"]
    assert "first" in lines[1]
    assert len(lines) == 3


def test_the_history_is_followed_on_a_terminal_until_ctrl_c(operator):
    with operator.terminal("history", "pulse", "-n", "1", "--follow") as terminal:
        terminal.wait_for(lambda text: text.count("pulse  sent") >= 3)
        terminal.send("\x03")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.text


def test_the_history_is_followed_by_a_program_line_by_line(operator, mine):
    command = operator.command("history", "mine", "-n", "0", "--follow", "--json")
    process = subprocess.Popen(
        command,
        cwd=operator.directory,
        env={**operator.environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        # It begins with what is new after its first look, and nobody can see when that was.
        wait_until(lambda: operator.control.pause(mine) and _is_readable(process), 20, "a line")
        record = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line)["action"] for line in process.stdout]
        assert process.stderr.read() == ""
    check("record", record)
    assert (record["entry"], record["action"]) == ("mine", "paused")
    assert set(rest) <= {"paused"}
    assert process.returncode == 0


def _is_readable(process):
    return bool(select.select([process.stdout], [], [], 0)[0])


def test_a_history_that_is_followed_survives_a_server_that_is_away_for_a_while(tmp_path):
    with Server(appendonly=True) as server:
        operator = Operator(tmp_path, server.url)
        operator.control.add("mine", task="proj.mine", schedule=3600)
        operator.control.close()
        with operator.terminal("history", "mine", "--follow") as terminal:
            terminal.wait_for("mine  added")
            server.stop()
            terminal.wait_for("it goes on when that is over")
            server.start()
            operator.told("pause", "mine")
            terminal.wait_for("mine  paused")
            assert terminal.text.count("Warning: ") == 1
            terminal.send("\x03")
            assert terminal.end() == 0


def test_why_tells_of_the_last_tick_or_of_any(operator):
    told = operator.json("why", "pulse")
    assert told["answer"] == "sent"
    assert told["record"]["entry"] == "pulse"
    spoken = operator.told("why", "pulse", told["at"])
    assert spoken.startswith(f"pulse, {told['at']} (")
    assert "ago): sent\n  it was sent in time by node " in spoken
    assert operator.json("why", "report-daily", "2040-01-01T02:30:00Z")["answer"] == "ahead"
    assert operator.json("why", "report-daily", "2040-01-01T02:31:00Z")["answer"] == "not_a_tick"
    assert operator.json("why", "report-weekly")["record"] is None
    coming = operator.json("why", "report-weekly", "next")
    assert coming["answer"] in ("ahead", "paused", "to_be_skipped")
    assert "there is no entry 'nope'" in operator.refused("why", "nope", code=2)
    assert "with its offset" in operator.here("why", "pulse", "2040-01-01T02:31:00").stderr


def test_why_and_history_tell_of_what_was_removed(operator):
    operator.control.add("brief", task="proj.brief", schedule=1)
    wait_until(lambda: "sent" in actions(operator, "brief"), 20, "a tick of it")
    operator.told("remove", "brief", "--yes")
    assert operator.json("history", "brief")["records"][-1]["action"] == "removed"
    assert operator.json("why", "brief")["answer"] in ("sent", "skipped")


def test_a_ledger_that_is_away_is_told_in_a_line(operator, tmp_path):
    lost = Operator(tmp_path, "redis://127.0.0.1:1/0")
    for words in (["list"], ["pause", "pulse"], ["fire", "pulse"], ["history"], ["nodes"]):
        done = lost.here(*words)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: ")
        assert done.stderr.count("\n") == 1
    assert "Traceback" not in lost.refused("show", "pulse", "--json", code=1)
