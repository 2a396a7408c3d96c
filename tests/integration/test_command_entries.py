"""Stored entries are listed, added, edited, removed, exported and imported by what is typed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import redis
import yaml

from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from support.operator import Operator, check
from support.requirements import require
from support.servers import Server, have_server

CODE = ["celery.backend_cleanup", "pulse", "report-daily", "report-weekly", "whim"]
EDITOR = """
import pathlib, sys
steps = pathlib.Path({steps!r})
script = steps.read_text().split("---\\n")
steps.write_text("---\\n".join(script[1:]))
path = pathlib.Path(sys.argv[1])
exec(script[0], {{"path": path, "text": path.read_text()}})
"""
CHANGED = 'path.write_text(text + "description: ours\\n")\n'


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    require("redis-server", have_server())
    with Server() as server:
        operator = Operator(tmp_path_factory.mktemp("project"), server.url)
        yield operator
        operator.control.close()


@pytest.fixture
def stored(operator):
    """Return the name of a new entry, which is removed again."""
    operator.control.add("mine", task="proj.mine", schedule=3600, tags=["trial"])
    yield "mine"
    clear(operator)


@pytest.fixture
def editing(operator, tmp_path):
    """Return what makes an environment in which the editor does one step after the other."""

    def made(*steps):
        script = tmp_path / "editor.py"
        script.write_text(EDITOR.format(steps=str(tmp_path / "steps")))
        (tmp_path / "steps").write_text("---\n".join(map(textwrap.dedent, steps)))
        return {"EDITOR": f"{sys.executable} {script}", "TMPDIR": str(tmp_path)}

    return made


def clear(operator):
    """Remove what is stored."""
    for name in operator.control.export():
        operator.control.remove(name)


def definition(operator, name):
    return dict(operator.control.get(name).definition)


@pytest.mark.parametrize(
    ("typed", "schedule"),
    [
        ("*/5 * * * *", {"kind": "cron", "expression": "*/5 * * * *"}),
        ("@hourly", {"kind": "cron", "expression": "@hourly"}),
        ("30", {"kind": "interval", "every": 30}),
        ("0.5", {"kind": "interval", "every": 0.5}),
        ("30s", {"kind": "interval", "every": 30}),
        ("1h30m", {"kind": "interval", "every": 5400}),
        ("RRULE:FREQ=DAILY;BYHOUR=9", {"kind": "rrule", "rule": "RRULE:FREQ=DAILY;BYHOUR=9"}),
        ("2040-01-31T12:00", {"kind": "once", "at": "2040-01-31T12:00:00"}),
        ("2040-01-31T12:00:00Z", {"kind": "once", "at": "2040-01-31T12:00:00+00:00"}),
        (
            '{"kind": "solar", "event": "sunrise", "lat": 52.5, "lon": 13.4}',
            {"kind": "solar", "event": "sunrise", "lat": 52.5, "lon": 13.4},
        ),
    ],
)
def test_a_schedule_is_added_as_people_type_it(operator, typed, schedule):
    done = operator.here("add", "typed", "--task", "proj.typed", "--schedule", typed, "--json")
    told = json.loads(done.stdout)
    check("add", told)
    clear(operator)
    assert told["entry"]["definition"]["schedule"] == schedule
    assert told["upcoming"]


def test_adding_answers_when_it_is_due_next(operator):
    words = ["--task", "proj.spare", "--schedule", "0 12 1 1 *", "--timezone", "Europe/Berlin"]
    told = operator.told("add", "spare", *words)
    clear(operator)
    first, *ticks = told.splitlines()
    assert first == (
        "added spare: proj.spare, At 12:00, on day 1 of the month, only in January (Europe/Berlin)"
    )
    assert ["-01-01T11:00:00Z (in " in line for line in ticks] == [True] * 3


def test_all_of_an_entry_can_be_typed(operator):
    words = ["--args", "[1]", "--kwargs", '{"a": {"b": null}}', "--options", '{"queue": "low"}']
    words += ["--set", "catch_up=all", "--set", "jitter=30", "--tag", "x", "--tag", "a"]
    words += ["--description", "for fun", "--timezone", "Asia/Tokyo", "--note", "why not"]
    operator.told("add", "whole", "--task", "proj.whole", "--schedule", "1h", *words)
    assert definition(operator, "whole") == {
        "format": 1,
        "task": "proj.whole",
        "schedule": {"kind": "interval", "every": 3600},
        "args": [1],
        "kwargs": {"a": {"b": None}},
        "options": {"queue": "low"},
        "timezone": "Asia/Tokyo",
        "catch_up": "all",
        "jitter": 30,
        "description": "for fun",
        "tags": ["a", "x"],
    }
    shown = operator.told("show", "whole")
    assert 'kwargs       {"a": {"b": null}}' in shown
    assert "tags         a, x" in shown
    clear(operator)
    (record,) = (
        each for each in operator.json("history", "whole")["records"] if each["action"] == "added"
    )
    assert "why not" in record["detail"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--schedule", "99 * * * *"], "the minute field '99' is not valid"),
        (["--schedule", "@hurly"], "did you mean '@hourly'?"),
        (["--schedule", "0"], "is no time at all"),
        (["--schedule", "2040-13-01"], "is no instant"),
        (["--schedule", '{"kind": "cronn"}'], "did you mean 'cron'?"),
        (["--schedule", "{"], "it is no JSON"),
        (["--schedule", "1h", "--args", "{}"], "must be a list, as [1, 2]"),
        (["--schedule", "1h", "--kwargs", "[1"], "it is no JSON"),
        (["--schedule", "1h", "--set", "catchup=all"], "did you mean 'catch_up'?"),
        (["--schedule", "1h", "--set", "catch_up"], "write it as key=value"),
        (["--schedule", "1h", "--set", "catch_up=some"], "entry 'bad': catch_up = 'some'"),
        (["--schedule", "1h", "--timezone", "Europe/Berlim"], "entry 'bad': timezone ="),
        ([], "Missing option '--schedule'"),
    ],
)
def test_what_cannot_be_an_entry_is_refused_with_what_is_wrong(operator, words, told):
    done = operator.here("add", "bad", "--task", "proj.bad", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("typed", ["1ms", "30us", "1h5ms", "3weeks"])
def test_other_units_than_people_mean_are_refused(operator, typed):
    for words in (["--schedule", typed], ["--schedule", "1h", "--set", f"jitter={typed}"]):
        done = operator.here("add", "bad", "--task", "proj.bad", *words)
        assert done.exit_code == 2
        assert "units d, h, m and s" in done.stderr.replace("units are", "units")


def test_policies_are_typed_as_words_and_durations(operator):
    said = {"enabled": "False", "run_on_start": "YES", "relative": "off", "jitter": "1m30s"}
    said |= {"phase": "-7m", "misfire_grace_time": "45s", "catch_up_window": "0.5h"}
    words = [word for key, value in said.items() for word in ("--set", f"{key}={value}")]
    operator.told("add", "typed", "--task", "proj.typed", "--schedule", "1h", *words)
    found = definition(operator, "typed")
    clear(operator)
    assert {key: found.get(key) for key in said} == {
        "enabled": False,
        "run_on_start": True,
        "relative": None,
        "jitter": 90,
        "phase": -420,
        "misfire_grace_time": 45,
        "catch_up_window": 1800,
    }


def test_null_takes_out_what_the_task_is_called_with(operator, stored):
    operator.told("edit", stored, "--args", "[1]")
    assert definition(operator, stored)["args"] == [1]
    operator.told("edit", stored, "--args", "null")
    assert "args" not in definition(operator, stored)


def test_a_name_that_is_taken_is_not_added_again(operator, stored):
    words = ["--task", "proj.mine", "--schedule", "1h"]
    told = operator.refused("add", stored, *words, code=1)
    assert "'mine' is stored already" in told
    assert "edit it" in told
    assert "is defined in code" in operator.refused("add", "pulse", *words, code=1)


def test_entries_are_listed_by_name_pattern_tag_task_state_and_origin(operator, stored):
    assert [each["name"] for each in operator.json("list")["entries"]] == sorted([*CODE, stored])
    operator.control.add("report-b", task="other.report", schedule=3600, tags=["report"])

    def names(*words):
        told = json.loads(operator.here("list", *words, "--json").stdout)
        check("list", told)
        return [each["name"] for each in told["entries"]]

    assert names("report-*", stored) == [stored, "report-b", "report-daily", "report-weekly"]
    assert names("--tag", "report", "--task", "proj.*") == ["report-daily", "report-weekly"]
    assert names("--origin", "stored") == [stored, "report-b"]
    assert names("--all", "--origin", "code") == CODE
    assert names("--state", "finished") == []
    assert operator.here("list", "--state", "bad").output == "There are no such entries.\n"
    assert "'actve' is not one of 'active', 'pa" in operator.here("list", "--state", "actve").output


def test_a_list_in_a_pipe_has_whole_names_and_no_decoration(operator):
    name = "a-name-that-is-much-longer-than-a-terminal-is-wide-" * 3
    operator.control.add(name, task="proj.long", schedule=3600)
    lines = operator.told("list").splitlines()
    clear(operator)
    assert lines[0].split() == ["name", "state", "origin", "task", "schedule", "next", "last"]
    assert len(lines) == len(CODE) + 2
    assert any(line.startswith(f"{name}  active") for line in lines)
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_control_characters_in_a_name_do_not_reach_the_terminal(operator):
    operator.control.add("a\x1b[31mb", task="proj.odd", schedule=3600)
    assert "a\\x1b[31mb" in operator.told("list")
    assert operator.told("remove", "a\x1b[31mb", "--yes") == "removed a\\x1b[31mb\n"


def test_without_rich_a_terminal_gets_plain_columns(operator, stored, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['rich'] = None\n")
    with operator.terminal("list", "mine", env={"PYTHONPATH": str(tmp_path)}) as terminal:
        assert terminal.end() == 0
        assert terminal.lines[0].startswith("name  state   origin  task       schedule    next")
        assert terminal.lines[1].startswith("mine  active  stored  proj.mine  Every hour  in ")


def test_a_list_on_a_terminal_is_coloured_and_folded_and_not_without_colours(operator, stored):
    with operator.terminal("list") as terminal:
        assert terminal.end() == 0
        assert terminal.text.count("active") == len(CODE) + 1
        assert "report-weekly" in terminal.text
        assert b"\x1b[32m" in terminal.raw
    with operator.terminal("list", env={"NO_COLOR": "1"}) as terminal:
        assert terminal.end() == 0
        assert "report-weekly" in terminal.text
        assert b"\x1b" not in terminal.raw


def test_an_entry_that_does_not_exist_is_told_with_what_may_have_been_meant(operator):
    meant = "Error: there is no entry 'puls': did you mean 'pulse'?"
    assert operator.refused("show", "puls", code=2) == meant
    for words in (["edit", "--schedule", "1h"], ["remove", "--yes"], ["pause"], ["list"]):
        done = operator.here(words[0], "puls", *words[1:])
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == f"{meant}\n"


def test_options_of_edit_change_just_these_fields(operator, stored):
    told = operator.told("edit", stored, "--set", "jitter=5", "--description", "later")
    assert told.startswith("changed mine: proj.mine, Every hour")
    before = definition(operator, stored)
    told = operator.json("edit", stored, "--schedule", "2h", "--set", "jitter=null")
    after = {**before, "schedule": {"kind": "interval", "every": 7200}}
    del after["jitter"]
    assert told["entry"]["definition"] == after


def test_an_entry_in_code_is_not_edited_or_removed(operator):
    for words in (["edit", "--schedule", "1h"], ["edit"], ["remove", "--yes"], ["disable"]):
        told = operator.refused(words[0], "pulse", *words[1:], code=1)
        assert "entry 'pulse' is defined in code" in told


def test_without_a_terminal_an_editor_is_not_opened(operator, stored, editing):
    env = editing("raise SystemExit(1)")
    assert "so give options" in operator.refused("edit", stored, code=2, env=env)


def test_an_entry_is_edited_in_the_editor(operator, stored, editing):
    env = editing("path.write_text(text.replace('every: 3600', 'every: 60'))")
    with operator.terminal("edit", stored, env=env) as terminal:
        assert terminal.end() == 0
        assert "changed mine: proj.mine, Every minute" in terminal.text
    assert definition(operator, stored)["schedule"]["every"] == 60


def test_what_is_wrong_is_shown_and_can_be_mended(operator, stored, editing):
    env = editing(
        "path.write_text(text.replace('every: 3600', 'evry: 60'))",
        "path.write_text(text.replace('evry: 60', 'every: 60'))",
    )
    with operator.terminal("edit", stored, env=env) as terminal:
        terminal.wait_for("Edit it again? [Y/n]")
        assert "unknown field 'evry'; did you mean 'every'?" in "".join(terminal.lines)
        terminal.send("\r")
        assert terminal.end() == 0
    assert definition(operator, stored)["schedule"]["every"] == 60


def test_an_edit_can_be_given_up(operator, stored, editing):
    before = definition(operator, stored)
    with operator.terminal("edit", stored, env=editing("path.write_text('{')")) as terminal:
        terminal.wait_for("Edit it again? [Y/n]")
        terminal.send("n\r")
        assert terminal.end() == 1
        assert "What you typed is kept in " in terminal.text
    with operator.terminal("edit", stored, env=editing("pass")) as terminal:
        assert terminal.end() == 0
        assert "did not change mine" in terminal.text
    assert definition(operator, stored) == before


def test_an_edit_is_refused_if_somebody_else_was_quicker_and_both_are_shown(
    operator, stored, editing
):
    other = operator.command("edit", stored, "--description", "theirs")
    env = editing(
        f"""
        import subprocess
        subprocess.run({other!r}, check=True, capture_output=True)
        path.write_text(text + "description: ours\\n")
        """
    )
    with operator.terminal("edit", stored, env=env) as terminal:
        assert terminal.end() == 1
        told = "".join(terminal.lines)
        assert "was changed meanwhile" in told
        assert '"description": "ours"' in told
        assert '"description": "theirs"' in told
    assert definition(operator, stored)["description"] == "theirs"


def kept_file(terminal):
    """Return the file in which a command says that it kept what was typed."""
    found = re.search(r"What you typed is kept in (\S+\.(?:yaml|json)):", "".join(terminal.lines))
    assert found, terminal.text
    return Path(found[1])


def test_what_was_typed_is_kept_and_can_be_imported_if_the_entry_is_gone(operator, stored, editing):
    other = operator.command("remove", stored, "--yes")
    env = editing(f"import subprocess\nsubprocess.run({other!r}, check=True)\n{CHANGED}")
    with operator.terminal("edit", stored, env=env, columns=200) as terminal:
        assert terminal.end() == 1
        path = kept_file(terminal)
    operator.told("import", str(path))
    assert definition(operator, stored)["description"] == "ours"


def test_what_was_typed_is_kept_if_the_server_is_away(tmp_path, editing):
    with Server() as server:
        operator = Operator(tmp_path, server.url)
        operator.control.add("mine", task="proj.mine", schedule=3600)
        operator.control.close()
        end = f"import redis\nredis.Redis.from_url({server.url!r}).shutdown(nosave=True)\n"
        with operator.terminal("edit", "mine", env=editing(end + CHANGED), columns=200) as terminal:
            assert terminal.end(60) == 1
            path = kept_file(terminal)
    assert "description: ours" in path.read_text()


@pytest.mark.parametrize(
    ("step", "code", "is_kept"),
    [
        (r"path.write_bytes(b'caf\xe9')", 1, True),
        ("path.write_text('[')", 1, True),
        ("path.unlink()", 1, False),
        (CHANGED + "raise SystemExit(3)", 1, True),
    ],
)
def test_an_editor_may_leave_anything(operator, stored, editing, step, code, is_kept):
    with operator.terminal("edit", stored, env=editing(step), columns=200) as terminal:
        terminal.send("n\r")
        assert terminal.end() == code
        assert "Traceback" not in terminal.text
        if is_kept:
            assert kept_file(terminal).exists()
        else:
            assert "the editor has removed the file" in terminal.text


def test_removing_asks_on_a_terminal_and_refuses_without_one(operator, stored):
    assert "add --yes" in operator.refused("remove", stored, code=2)
    with operator.terminal("remove", stored) as terminal:
        terminal.wait_for("Remove 1 entry (mine)? [y/N]")
        terminal.send("n\r")
        assert terminal.end() == 1
    with operator.terminal("remove", "--tag", "trial") as terminal:
        terminal.wait_for("Remove 1 entry (mine)? [y/N]")
        terminal.send("y\r")
        assert terminal.end() == 0
        assert terminal.lines[1] == "removed mine"
    assert "which entries?" in operator.refused("remove", "--yes", code=2)


def test_names_are_removed_as_json_has_them(operator, stored):
    assert operator.json("remove", stored, "--yes") == {"removed": [stored]}


def test_what_is_exported_can_be_imported(operator, stored):
    exported = operator.json("export")
    assert list(exported["entries"]) == [stored]
    clear(operator)
    told = operator.json("import", "-", stdin=json.dumps(exported))
    assert told == {"dry_run": False, "entries": [{"name": "mine", "done": "added", "problem": ""}]}
    assert operator.json("export") == exported
    again = operator.json("import", "-", stdin=json.dumps(exported))
    assert [each["done"] for each in again["entries"]] == ["same"]


def test_a_yaml_file_is_written_and_read(operator, stored, tmp_path):
    path = tmp_path / "entries.yaml"
    done = operator.run("export", "-o", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"wrote 1 entry to {path}\n"
    told = yaml.safe_load(path.read_text())
    check("export", told)
    assert told == yaml.safe_load(operator.told("export", "--format", "yaml", "--tag", "trial"))
    assert "mine  same" in operator.told("import", str(path))


def test_an_import_tells_of_each_entry_and_changes_only_what_it_may(operator, stored, tmp_path):
    path = tmp_path / "entries.yml"
    path.write_text(
        textwrap.dedent(
            """
            mine: {task: proj.other, schedule: "0 3 * * *"}
            new: {task: proj.new, schedule: 60}
            bad: {task: proj.bad, schedule: "99 * * * *"}
            pulse: {task: proj.pulse, schedule: 60}
            """
        )
    )
    for words in (["--dry-run"], []):
        told = operator.json("import", str(path), *words, code=1)
        assert {each["name"]: each["done"] for each in told["entries"]} == {
            "bad": "refused",
            "mine": "refused",
            "new": "added",
            "pulse": "refused",
        }
        assert (words == []) == ("new" in operator.control.export())
    told = operator.json("import", str(path), "--replace", code=1)
    done = {each["name"]: each["done"] for each in told["entries"]}
    assert (done["mine"], done["new"]) == ("changed", "same")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is nothing in it"),
        ("{", "it is no JSON"),
        ('{"format": 2, "entries": {}}', "this release knows format 1 only"),
        ('{"task": "proj.a", "schedule": 1}', "it is one entry without a name"),
    ],
)
def test_a_file_that_is_none_is_refused(operator, text, told):
    assert told in operator.refused("import", "-", code=2, stdin=text)


def test_what_is_stored_and_unreadable_is_told_by_an_export(operator, stored):
    with redis.Redis.from_url(operator.app.conf.broker_url) as client:
        entries = ledger_keys("shop", "")["entries"]
        client.hset(entries, "odd", "5 {")
        done = operator.run("export")
        client.hdel(entries, "odd")
    assert done.returncode == 1
    assert list(json.loads(done.stdout)["entries"]) == [stored]
    assert done.stderr.startswith("left out odd: it is no JSON")


def test_a_dash_is_stdout_and_the_end_of_a_name_may_be_large(operator, stored, tmp_path):
    assert operator.told("export", "-o", "-") == operator.told("export")
    path = tmp_path / "ENTRIES.YML"
    operator.run("export", "-o", str(path))
    assert path.read_text().startswith("format: 1\n")
    assert "mine  same" in operator.told("import", str(path))


def test_a_duration_in_a_file_is_told_how_to_be_written(operator):
    text = '{"a": {"task": "proj.a", "schedule": "1h"}}'
    (told,) = operator.json("import", "-", code=1, stdin=text)["entries"]
    assert told["problem"].endswith("for an interval write '@every 1h', or seconds as a number")


def test_a_file_that_cannot_be_opened_or_written_is_told(operator, tmp_path):
    missing = str(tmp_path / "nowhere" / "entries.json")
    assert "No such file" in operator.refused("import", missing, code=2)
    assert "cannot be written" in operator.refused("export", "-o", missing, code=1)


def test_entries_from_code_are_exported_but_for_what_only_code_can_have(operator):
    done = operator.run("export", "--code")
    assert done.returncode == 1
    exported = json.loads(done.stdout)
    check("export", exported)
    assert list(exported["entries"]) == ["pulse", "report-daily", "report-weekly"]
    assert done.stderr.startswith("left out whim: a schedule of the class Whim is code")
    assert list(operator.json("export", "--code", "--tag", "often")["entries"]) == ["pulse"]


def test_a_reader_that_goes_away_is_no_error_to_tell(operator):
    done = subprocess.run(
        f"{shlex.join(operator.command('list'))} | true",
        shell=True,
        cwd=operator.directory,
        env=operator.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
