"""Each command once as people meet it, on a terminal, and as programs do, in a pipe."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from celery_redlock_beat.cli import redlock
from celery_redlock_beat.predecessors.shelve_file import write
from support.nodes import BeatNode
from support.operator import Operator
from support.servers import wait_until

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
    ("import-shelve schedule", 1, "refused"),
    ("export-shelve back", 0, "pulse"),
    ("import-redbeat --prefix other:", 0, "There is no RedBeat"),
    ("export-redbeat --yes", 1, "written"),
    ("import-django", 1, "this app has no django-celery-beat"),
    ("check", 0, "0 bad"),
    ("next report-daily -n 1", 0, "02:30:00"),
    ("explain @hourly -n 1", 0, "@hourly"),
    ("doctor", 1, "ledger "),
    ("repair report-daily --dry-run", 0, "report-daily"),
    ("verify --minutes 0.1 --nodes 2 --faults none", 0, "doubled"),
]
WITH_JSON = [each for each in TYPED if each[0] != "import-django"]  # its tests have the tables


@pytest.fixture
def operator(tmp_path, shared_redis):
    """Return an operator beside a node."""
    (tmp_path / "moved.json").write_text(FILE)
    operator = Operator(tmp_path, shared_redis.url)
    write(str(tmp_path / "schedule"), operator.app, {"pulse": datetime.now(UTC)})
    with BeatNode(tmp_path, "node"):
        wait_until(lambda: operator.control.history("pulse"), 30, "the first pulse")
        yield operator
    operator.control.close()


def test_no_command_is_left_out():
    assert {line.split()[0] for line, *_ in TYPED} == set(COMMANDS)


@pytest.mark.timeout(300)
def test_each_on_a_terminal(operator):
    for line, code, seen in TYPED:
        with operator.terminal(*line.split(), columns=120) as terminal:
            ended = terminal.end()
            told = terminal.raw.decode()
        assert seen in told, line
        assert "Traceback" not in told, line
        assert ended == code, told


@pytest.mark.timeout(300)
def test_the_json_of_each_in_a_pipe_is_what_its_schema_says(operator):
    for line, code, _ in WITH_JSON:
        assert operator.json(*line.split(), code=code), line
