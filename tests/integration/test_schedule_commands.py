"""``celery -A proj redlock check``, ``next`` and ``explain`` as users type them, with no server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from support.servers import free_port

PROJECT = """
from celery import Celery
from celery.schedules import crontab

app = Celery("shop", broker="redis://127.0.0.1:{port}/0")
app.conf.timezone = "Europe/Berlin"
app.conf.redlock_beat_strict = True
app.conf.beat_schedule = {{
    "nightly": {{"task": "proj.report", "schedule": "30 2 * * *"}},
    "stock": {{"task": "proj.report", "schedule": crontab(minute=30, hour=2)}},
    {more}
}}


@app.on_after_finalize.connect
def add(sender, **_):
    sender.add_periodic_task(90, sender.signature("proj.pulse"), name="pulse", jitter=10)
"""
BAD = """
    "typo": {"task": "proj.report", "schedule": "99 * * * *"},
    "empty": {"schedule": 30},
    "either": {"task": "proj.report", "schedule": "0 0 13 * FRI"},
"""


@pytest.fixture
def celery(tmp_path):
    """Return what runs ``celery`` in a directory with a project, whose broker nobody listens at."""

    def run(*words, more=None):
        if more is not None:
            code = PROJECT.format(port=free_port(), more=more)
            (tmp_path / "proj.py").write_text(textwrap.dedent(code))
        command = [sys.executable, "-m", "celery", "--no-color", *words]
        environment = {name: os.environ[name] for name in os.environ if "CELERY" not in name}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_a_build_fails_on_bad_entries_and_is_told_all_of_them_once(celery):
    bad = celery("-A", "proj", "redlock", "check", more=BAD)
    assert (bad.returncode, bad.stderr) == (1, "")
    for told in ("entry: typo", "entry: empty", "doubt: either"):
        assert bad.stdout.count(told) == 1
    assert bad.stdout.endswith("\n7 entries, 2 bad, 1 warning\n")
    as_json = celery("-A", "proj", "redlock", "check", "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["counts"] == {"errors": 2, "warnings": 1, "hints": 0}
    good = celery("-A", "proj", "redlock", "check", "--strict", more="")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("\n4 entries, 0 bad, 0 warnings\n")


def test_the_next_ticks_of_all_entries_are_shown_without_a_server(celery):
    shown = celery("-A", "proj", "redlock", "next", "-n", "2", "--from", "2026-03-28", more="")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert [line for line in lines if line and line[0] != " "] == [
        "nightly",
        "stock",
        "pulse",
        "celery.backend_cleanup",
    ]
    shifted = "(clocks have gone forward by 1 h; shifted: 02:30 does not exist)"
    assert f"  Sun 2026-03-29 03:00:00+02:00  2026-03-29T01:00:00Z  {shifted}" in lines
    assert "  policies  jitter below 10 s" in lines
    unknown = celery("-A", "proj", "redlock", "next", "nighty")
    assert unknown.returncode == 2
    assert "did you mean 'nightly'?" in unknown.stderr


def test_an_app_that_cannot_be_imported_is_told_by_celery_itself(celery):
    told = celery("-A", "nowhere", "redlock", "check")
    assert told.returncode == 2
    assert "The module nowhere was not found" in told.stderr


def test_an_expression_is_explained_without_an_app(celery):
    told = celery("redlock", "explain", "*/5 9-17 * * MON-FRI", "--from", "2026-10-23T17:55")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines()[:4] == [
        "*/5 9-17 * * MON-FRI",
        "  meaning   Every 5 minutes, between 09:00 and 17:59, on Monday through Friday",
        "  zone      UTC",
        "  Fri 2026-10-23 17:55:00+00:00",
    ]
    bad = celery("redlock", "explain", "@evry 5m")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "did you mean '@every'?" in bad.stderr
