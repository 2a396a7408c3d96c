"""The page on Control: its blocks answer what they show, and its tables are complete."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from celery_redlock_beat import errors
from celery_redlock_beat.control import Control, EntryView, State, Why
from support.nodes import BeatNode
from support.servers import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "control.md"
TEXT = PAGE.read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def section(heading):
    return TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def first_cells(text):
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_each_block_answers_what_it_shows_beside_a_node(tmp_path, shared_redis):
    pytest.importorskip("cron_descriptor")
    (project,) = blocks("python")
    (tmp_path / "proj.py").write_text(project, "utf-8")
    (tmp_path / "page.txt").write_text("\n".join(blocks("pycon")), "utf-8")
    env = {"CELERY_BROKER_URL": shared_redis.url}
    with BeatNode(tmp_path, env=env) as beat:
        wait_until(lambda: beat.log.count("pulse @ ") >= 3, 40, "three ticks")
        done = subprocess.run(
            [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", "page.txt"],
            cwd=tmp_path,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert beat.alive
        assert not beat.troubles()


def test_each_method_is_on_the_page():
    names = {name for name, _ in inspect.getmembers(Control, inspect.isfunction)}
    assert {name for name in names if not name.startswith("_")} - {"close"} == {
        name for name in names if re.search(rf"\b{name}\(\)|\.{name}\(", TEXT) and name[0] != "_"
    }


def test_each_field_of_an_entry_and_each_state_is_on_the_page():
    assert first_cells(section("Look")) == {each.name for each in fields(EntryView)}
    (states,) = re.findall(r"^\| `state` \| (.*) \|$", TEXT, re.MULTILINE)
    assert re.findall(r"`(\w+)`", states) == list(State)


def test_each_answer_of_why_is_on_the_page():
    named = re.findall(r"``(\w+)``", inspect.getdoc(Why).partition("``text``")[0])
    assert first_cells(section("What came about")) == {*named} - {"answer"}


@pytest.mark.parametrize("name", sorted(first_cells(section("Errors"))))
def test_each_error_on_the_page_is_one(name):
    assert issubclass(getattr(errors, name), errors.RedlockBeatError)


def test_each_error_of_a_deed_is_on_the_page():
    deeds = {each.__name__ for each in errors.ControlError.__subclasses__()}
    assert deeds <= first_cells(section("Errors"))
