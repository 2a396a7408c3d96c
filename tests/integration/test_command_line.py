"""What holds for all commands: help, documents, exit codes, completion in a shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator

from celery_redlock_beat.cli import redlock
from support.operator import SCHEMAS, Operator, check, read
from support.requirements import require
from support.servers import Server, have_server

PAGE = Path(__file__).parents[2] / "docs/commands.md"
COMMANDS = redlock.list_commands(click.Context(redlock))
COMPLETE = """
PATH={path}:$PATH
cd {directory}
eval "$(_CELERY_COMPLETE=bash_source celery)"
COMP_WORDS=({words} "$1")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_celery_completion celery
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    require("redis-server", have_server())
    with Server() as server:
        operator = Operator(tmp_path_factory.mktemp("project"), server.url)
        operator.control.add("stored-one", task="proj.stored", schedule=3600)
        yield operator
        operator.control.close()


@pytest.fixture
def complete(operator):
    """Return what completes the last word in bash, as the page says how to switch it on."""
    require("bash", shutil.which("bash") is not None)

    def run(last, *words, directory=operator.directory):
        script = COMPLETE.format(
            path=Path(sys.executable).parent,
            directory=directory,
            words=" ".join(["celery", *words]),
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", last],
            env=operator.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return run


def of(name):
    command = redlock.get_command(click.Context(redlock), name)
    assert command is not None
    return command


def test_all_commands_are_there():
    assert set(COMMANDS) >= {"list", "show", "add", "edit", "remove", "import", "export"}
    assert set(COMMANDS) >= {"pause", "resume", "enable", "disable", "fire", "skip"}
    assert set(COMMANDS) >= {"history", "why", "nodes", "health", "top"}
    assert set(COMMANDS) >= {"check", "next", "explain", "doctor", "repair", "verify"}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_examples_and_exit_codes(operator, name):
    told = operator.here(name, "--help")
    assert told.exit_code == 0
    purpose, examples = told.output.split("\n\n")[1], told.output.split("\nExamples:\n")[1]
    assert purpose.strip().endswith((".", ":"))
    assert f"redlock {name}" in examples.split("\n\n")[0]
    assert "\nExit codes:\n  0  " in told.output


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_on_the_page_and_has_a_schema(name):
    page = PAGE.read_text()
    assert f"`{name}`" in page
    assert f"[{name}](schemas/{name}.json)" in page
    assert {"--json"} <= {each for param in of(name).params for each in param.opts}
    Draft202012Validator.check_schema(read(name))


def test_each_schema_is_on_the_page():
    page = PAGE.read_text()
    for path in SCHEMAS.glob("*.json"):
        assert f"(schemas/{path.name})" in page, path


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_wrong_usage(operator, name):
    done = operator.here(name, "--frobnicate")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "No such option" in done.stderr


def test_without_an_app_a_command_says_what_to_type():
    done = subprocess.run(
        [sys.executable, "-m", "celery", "redlock", "list"],
        env={name: os.environ[name] for name in os.environ if "CELERY" not in name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no app: write celery -A proj redlock list" in done.stderr


def test_settings_that_cannot_be_are_told_in_a_line(tmp_path):
    project = "from celery import Celery\napp = Celery('shop', broker={url!r})\n"
    operator = Operator(tmp_path, "redis://127.0.0.1:1/0", project)
    operator.app.conf.redlock_beat_leese = 3
    done = operator.here("list")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "redlock_beat_leese" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_ledger_in_memory_is_refused(tmp_path):
    project = (
        "from celery import Celery\napp = Celery('shop')\napp.conf.redlock_beat_url = {url!r}\n"
    )
    operator = Operator(tmp_path, "memory://", project)
    for name in ("list", "health", "top", "nodes"):
        done = operator.here(name)
        assert done.exit_code == 1
        assert "name a Redis" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        r"fire stored-one --key $'k\xe9'",
        r"pause stored-one --note $'caf\xe9'",
        r"show $'caf\xe9'",
        r"add new --task t --schedule 1h --set description=$'caf\xe9'",
    ],
)
def test_what_is_no_utf_8_is_refused_before_anything_is_done(operator, words):
    done = operator.shell(f"redlock {words}")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is no text in UTF-8" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("redlock list <&-", 0),
        ("redlock list >&-", 0),
        ("redlock top <&- >&-", 0),
        ("redlock remove stored-one <&-", 2),
        ("redlock edit stored-one <&-", 2),
    ],
)
def test_streams_may_be_closed(operator, line, code):
    done = operator.shell(line)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["list", "list --json", "export", "top --once", "history"])
def test_an_output_that_is_full_is_told_in_a_line(operator, words):
    require("/dev/full", Path("/dev/full").exists())
    done = operator.shell(f"redlock {words} >/dev/full")
    assert done.returncode == 1
    assert done.stderr == b"Error: it could not be written: No space left on device\n"


def test_a_duration_is_explained_as_no_schedule_with_what_was_meant(operator):
    done = operator.here("explain", "1h30m")
    assert done.exit_code == 1
    assert done.stderr.endswith("; for an interval write '@every 1h30m', or seconds as a number\n")


def test_commands_that_need_no_server_have_documents_too(operator):
    told = operator.json("next", "report-*", "-n", "2")
    assert [each["name"] for each in told["entries"]] == ["report-daily", "report-weekly"]
    assert [len(each["ticks"]) for each in told["entries"]] == [2, 2]
    assert operator.json("explain", "0 0 13 * FRI")["doubts"]
    assert operator.json("explain", "@hourly")["facts"]["meaning"] == "Every hour"
    assert operator.json("check")["entries"] == 5


def test_doctor_and_repair_have_documents(operator):
    done = operator.here("doctor", "--json")
    check("doctor", json.loads(done.stdout))
    planned = operator.json("repair", "stored-one", "--dry-run")
    assert [each["entry"] for each in planned["planned"]] == ["stored-one"]
    repaired = operator.json("repair", "stored-one", "--yes", "--why", "a try")
    assert [each["why"] for each in repaired["done"]] == ["a try"]
    (logged,) = operator.json("repair", "--log")["done"]
    assert (logged["to"], logged["why"]) == (repaired["done"][0]["to"], "a try")


def test_a_shell_completes_commands_and_names_of_entries(complete):
    redlocks = ("-A", "proj", "redlock")
    assert complete("hi", *redlocks) == ["history"]
    assert complete("rep", *redlocks, "show") == ["report-daily", "report-weekly"]
    assert complete("st", *redlocks, "pause", "pulse") == ["stored-one"]
    assert complete("--cat", *redlocks, "resume") == ["--catch-up"]


def test_a_shell_completes_names_in_code_where_the_server_is_away(complete, tmp_path):
    lost = Operator(tmp_path, "redis://127.0.0.1:1/0")
    redlocks = ("-A", "proj", "redlock")
    assert complete("rep", *redlocks, "show", directory=lost.directory) == [
        "report-daily",
        "report-weekly",
    ]
    (tmp_path / "proj.py").write_text("print('hello')\nraise SystemExit('no')\n")
    assert complete("rep", *redlocks, "show", directory=lost.directory) == []
    assert complete("rep", "redlock", "show") == []
