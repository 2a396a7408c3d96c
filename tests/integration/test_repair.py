"""Marks are set on behalf of an operator: shown first, asked for, audited, followed by nodes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.bin.base import CLIContext
from click.testing import CliRunner

from celery_redlock_beat.cli import redlock
from celery_redlock_beat.diagnostics import examine
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SECOND, to_datetime
from ledger.places import NAMESPACE, RedisPlace, register
from support.clock import ShiftedClock
from support.nodes import BeatNode, write_project
from support.servers import Server, free_port, wait_until

HOUR = 3600 * SECOND


class Case:
    """A ledger with two entries, and an operator at its command line."""

    def __init__(self, server):
        self.place = RedisPlace(server, "redis")
        self.client, self.keys = self.place.client, self.place.keys
        self.node = self.place.node()
        for entry in ("tidy", "report"):
            register(self.node, entry)
        self.node.claim([])
        self.app = Celery(NAMESPACE, broker=server.url, set_as_current=False)

    def set_mark(self, entry, mark):
        self.client.hset(self.keys["marks"], f"e:{entry}", f"{mark} {mark} 7 3 every µs")

    def set_record(self, entry, text):
        self.client.hset(self.keys["marks"], f"e:{entry}", text)

    def mark(self, entry):
        return self.place.record(entry).mark

    def run(self, *args, answer=None):
        context = CLIContext(self.app, no_color=True, workdir=None)
        return CliRunner().invoke(redlock, ["repair", *args], obj=context, input=answer)


@pytest.fixture
def case(shared_redis):
    case = Case(shared_redis)
    yield case
    case.place.close()


def test_a_mark_ahead_is_set_back_to_now(case):
    ahead = case.place.now() + 3 * HOUR
    case.set_mark("tidy", ahead)
    result = case.run("tidy", "--yes", "--why", "the clock was wrong")
    assert result.exit_code == 0
    assert abs(case.mark("tidy") - case.place.now()) < 10 * SECOND
    assert "(in 2 h 59 min)" in result.output
    assert "(now)" in result.output
    assert "it runs again with its next tick, instead of after" in result.output
    assert "what was due since the clock was set back is not sent" in result.output
    assert re.search(r"Z \S+@\S+ set tidy from 2\S+Z to 2\S+Z: the clock was wrong$", result.output)
    record = case.place.record("tidy")
    assert (record.since, record.runs, record.fingerprint) == (record.mark, 3, "every µs")


def test_all_marks_ahead_are_set_back_at_once_and_no_other(case):
    before = case.mark("report")
    for number in range(25):
        case.set_mark(f"entry {number:02}", case.place.now() + HOUR)
    result = case.run("--future", "--yes")
    assert result.exit_code == 0
    assert "and 5 more" in result.output
    assert result.output.count(" set entry ") == 25
    assert all(case.mark(f"entry {number:02}") <= case.place.now() for number in range(25))
    assert case.mark("report") == before
    assert "marks-ahead" not in {each.name for each in examine(case.app).findings}
    result = case.run("--future")
    assert result.output.startswith("No entry is ahead of the server's clock")


def test_a_mark_may_be_set_back_so_that_ticks_are_sent_again(case):
    wanted = to_datetime(case.mark("tidy")) - timedelta(hours=2)
    result = case.run("tidy", "--mark", wanted.isoformat(), "--yes")
    assert result.exit_code == 0
    assert "may be sent again, as catch_up says; not what was settled within" in result.output
    record = case.place.record("tidy")
    assert to_datetime(record.mark) == to_datetime(record.since) == wanted


def test_a_mark_may_be_raised_so_that_late_ticks_are_not_sent(case):
    case.set_mark("tidy", case.place.now() - HOUR)
    result = case.run("tidy", "--yes", "--mark", "now")
    assert "is not sent yet is not sent, and not counted" in result.output
    assert abs(case.mark("tidy") - case.place.now()) < 10 * SECOND


def test_it_asks_and_a_dry_run_does_not(case):
    before = case.place.snapshot()
    shown = case.run("tidy", "--dry-run")
    assert shown.exit_code == 0
    assert "Set 1 mark?" not in shown.output
    refused = case.run("tidy", answer="n\n")
    assert refused.exit_code == 1
    assert "Set 1 mark? [y/N]: n" in refused.output
    assert case.place.snapshot() == before
    agreed = case.run("tidy", answer="y\n")
    assert agreed.exit_code == 0
    assert case.place.snapshot() != before


def test_what_was_repaired_is_kept(case):
    assert case.run("--log").output == "Nothing was ever repaired.\n"
    case.run("tidy", "--yes", "--why", "first\nline")
    case.set_record("tidy", "rubbish")
    case.run("tidy", "--mark", "now", "--yes", "--why", "second")
    lines = case.run("--log").output.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(r": 'first\nline'")
    assert " from unreadable 'rubbish' to 2" in lines[1]
    assert lines[1].endswith(": second")


def test_an_unreadable_record_is_written_anew_only_with_a_mark(case):
    case.set_record("tidy", "rubbish")
    result = case.run("tidy", "--yes")
    assert result.exit_code == 1
    assert "cannot be read ('rubbish'): say with --mark" in result.output
    assert case.client.hget(case.keys["marks"], "e:tidy") == b"rubbish"
    result = case.run("tidy", "--mark", "now", "--yes")
    assert result.exit_code == 0
    assert "the record cannot be read, and is written anew: 'rubbish'" in result.output
    assert abs(case.mark("tidy") - case.place.now()) < 10 * SECOND


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("tidi",), "the ledger has no entry 'tidi': did you mean 'tidy'?"),
        (("x" * 500,), "the ledger has no entry"),
        (("tidy", "--mark", "2200-01-01T00:00:00Z"), "a mark may not be in the future"),
        (("tidy", "--mark", "2020-01-01T00:00:00"), "write it as 2030-01-31T12:00:00Z"),
        (("tidy", "--mark", "yesterday"), "write it as 2030-01-31T12:00:00Z"),
        (("tidy", "--future"), "name one ENTRY, or give --future alone"),
        (("--future", "--mark", "now"), "name one ENTRY, or give --future alone"),
        ((), "name one ENTRY, or give --future alone"),
    ],
    ids=str,
)
def test_what_it_will_not_do(case, args, told):
    before = case.place.snapshot()
    result = case.run(*args, "--yes")
    assert result.exit_code in (1, 2)
    assert told in result.output
    assert len(result.output) < 600
    assert case.place.snapshot() == before


def test_it_waits_for_a_recovery(case):
    case.place.restart()
    result = case.run("tidy", "--yes")
    assert result.exit_code == 1
    assert "the server may have lost data" in result.output
    assert "Try again" in result.output
    assert case.client.xlen(case.keys["audit"]) == 0


@pytest.mark.parametrize("args", [("tidy",), ("--future",), ("--log",)], ids=str)
def test_a_ledger_that_is_away(case, args):
    case.app.conf.broker_url = f"redis://127.0.0.1:{free_port()}/0"
    case.app.conf.broker_write_url = case.app.conf.broker_url
    result = case.run(*args, "--yes")
    assert result.exit_code == 1
    assert result.output.startswith("Error: nothing listens at the server's address")


def test_a_wrong_setting(case):
    case.app.conf.redlock_beat_lese = 3
    result = case.run("tidy")
    assert result.exit_code == 1
    assert "did you mean redlock_beat_lease?" in result.output


@pytest.mark.slow
def test_nodes_that_run_send_again_soon(redis_server, tmp_path):
    """The server's clock was an hour ahead and was set back: two nodes wait for it until then."""
    write_project(tmp_path, redis_server.url)
    app = Celery("proj", broker=redis_server.url, set_as_current=False)
    keys = ledger_keys("proj")
    with (
        redis_server.client() as client,
        BeatNode(tmp_path, "one") as one,
        BeatNode(tmp_path, "two") as two,
    ):
        wait_until(lambda: client.llen("celery") > 1, 20, "the first messages")
        assert findings(app) == []
        ahead = round((datetime.now(UTC) + timedelta(hours=1)).timestamp() * SECOND)
        client.hset(keys["marks"], "e:every-second", f"{ahead} 1 7 0 ")
        sent = _messages_when_it_is_quiet(client)
        (finding,) = findings(app)
        assert finding.name == "marks-ahead"
        context = CLIContext(app, no_color=True, workdir=None)
        result = CliRunner().invoke(redlock, ["repair", "--future", "--yes"], obj=context)
        assert result.exit_code == 0, result.output
        wait_until(lambda: client.llen("celery") > sent, 8, "a message after the repair")
        wait_until(lambda: client.llen("celery") > sent + 2, 8, "the next ones")
        assert findings(app) == []
        assert one.alive
        assert two.alive


@pytest.mark.slow
@pytest.mark.needs_cc
def test_a_server_whose_clock_was_set_forward_and_back_is_mended(tmp_path):
    with (
        ShiftedClock() as clock,
        Server(appendonly=True, env=clock.env) as server,
        server.client() as client,
    ):
        write_project(tmp_path, server.url)
        app = Celery("proj", broker=server.url, set_as_current=False)
        with BeatNode(tmp_path, "one"), BeatNode(tmp_path, "two"):
            wait_until(lambda: client.llen("celery") > 1, 20, "the first messages")
            clock.set(2 * 3600)
            sent = client.llen("celery")
            wait_until(lambda: client.llen("celery") > sent + 2, 10, "messages of the future")
            assert "clock-differs" in {each.name for each in examine(app).findings}
            clock.set(0)
            sent = _messages_when_it_is_quiet(client)
            found = {each.name: each for each in findings(app)}
            assert set(found) == {"marks-ahead"}
            assert "every-second: runs again after" in found["marks-ahead"].examples[0]
            context = CLIContext(app, no_color=True, workdir=None)
            result = CliRunner().invoke(redlock, ["repair", "--future", "--yes"], obj=context)
            assert result.exit_code == 0, result.output
            wait_until(lambda: client.llen("celery") > sent, 2.5, "a message after the repair")
            wait_until(lambda: client.llen("celery") > sent + 2, 5, "the next ones")
            assert findings(app) == []
        messages = [json.loads(text)["headers"] for text in client.lrange("celery", 0, -1)]
        assert len({each["id"] for each in messages}) == len(messages)


def findings(app):
    """What is wrong with a ledger, but for that it is new."""
    return [each for each in examine(app).findings if each.name != "began-empty"]


def _messages_when_it_is_quiet(client):
    begin = client.time()[0]
    wait_until(lambda: client.time()[0] >= begin + 3, 10, "three seconds")
    sent = client.llen("celery")
    wait_until(lambda: client.time()[0] >= begin + 5, 10, "two more seconds")
    assert client.llen("celery") == sent
    return sent


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("-A", "proj", "redlock", "doctor"), 0, "no-ledger: {redlock:proj}:marks"),
        (("-A", "proj", "redlock", "repair", "--log"), 0, "Nothing was ever repaired."),
        (("-A", "proj", "redlock", "repair", "pulse"), 1, "the ledger has no entry 'pulse'"),
        (("redlock", "doctor"), 2, "there is no app: write celery -A proj redlock doctor"),
        (("redlock", "repair", "pulse"), 2, "there is no app: write celery -A proj redlock repair"),
    ],
    ids=str,
)
def test_celery_finds_the_commands(redis_server, tmp_path, args, code, told):
    with redis_server.client() as client:
        client.config_set("appendfsync", "everysec")
    write_project(tmp_path, redis_server.url)
    command = [sys.executable, "-m", "celery", "--no-color", *args]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told in ended.stdout + ended.stderr
    assert ended.returncode == code
