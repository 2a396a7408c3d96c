"""Each command once as people meet it, on a terminal, and as programs do, in a pipe."""

from __future__ import annotations

import click
import pytest

from celery_redlock_beat.cli import redlock
from support.nodes import BeatNode
from support.operator import Operator
from support.requirements import require
from support.servers import Server, have_server, wait_until

COMMANDS = redlock.list_commands(click.Context(redlock))
FILE = '{"entries": {"moved": {"task": "proj.moved", "schedule": 3600}}}'
# In this order: what is added is used by what follows.
TYPED = [
    ("add mine --task proj.mine --schedule 1h", 0, "added mine: proj.mine"),
    ("list", 0, "report-daily"),
    ("show mine", 0, "stored (revision "),
    ("edit mine --description it", 0, "changed mine: proj.mine"),
    ("disable mine", 0, "disabled mine"),
    ("enable mine", 0, "enabled mine"),
    ("pause mine --note so", 0, "paused mine"),
    ("resume mine", 0, "resumed mine"),
    ("fire mine --key once", 0, "sent mine, task id "),
    ("skip mine next", 0, "to be skipped: mine, tick "),
    ("why mine next", 0, "mine, "),
    ("history mine", 0, "to_be_skipped"),
    ("nodes", 0, "alive"),
    ("health --live", 0, "1 alive"),
    ("top --once", 0, "Due next"),
    ("export mine", 0, '"task": "proj.mine"'),
    ("import moved.json", 0, "moved"),
    ("remove mine --yes", 0, "removed mine"),
    ("check", 0, "0 bad"),
    ("next report-daily -n 1", 0, "02:30:00"),
    ("explain @hourly -n 1", 0, "@hourly"),
    ("doctor", 1, "ledger "),
    ("repair report-daily --dry-run", 0, "report-daily"),
    ("verify --minutes 0.1 --nodes 2 --faults none", 0, "doubled"),
]


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    """Return an operator beside a node."""
    require("redis-server", have_server())
    directory = tmp_path_factory.mktemp("project")
    (directory / "moved.json").write_text(FILE)
    with Server() as server:
        operator = Operator(directory, server.url)
        with BeatNode(directory, "node").start():
            wait_until(lambda: operator.control.history("pulse"), 30, "the first pulse")
            yield operator
        operator.control.close()


def test_no_command_is_left_out():
    assert {line.split()[0] for line, *_ in TYPED} == set(COMMANDS)


@pytest.mark.parametrize(("line", "code", "seen"), TYPED, ids=[each[0] for each in TYPED])
def test_on_a_terminal(operator, line, code, seen):
    with operator.terminal(*line.split(), columns=120) as terminal:
        ended = terminal.end()
        told = terminal.raw.decode()
    assert seen in told
    assert "Traceback" not in told
    assert ended == code


@pytest.mark.parametrize(("line", "code", "_"), TYPED, ids=[each[0] for each in TYPED])
def test_in_a_pipe_its_json_is_what_its_schema_says(operator, line, code, _):
    assert operator.json(*line.split(), code=code)
