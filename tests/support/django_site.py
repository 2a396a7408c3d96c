"""A Django project that was written for one run, and somebody who saves its rows as an admin does.

Django is configured once per process, so that the admin is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.testing.children import spawn
from support.nodes import write_project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEDULER = "celery_redlock_beat.contrib.django:DatabaseScheduler"
SETTINGS_MODULE = "site_settings"
ENV = {"DJANGO_SETTINGS_MODULE": SETTINGS_MODULE, "CELERY_SKIP_CHECKS": "1"}
SETTINGS = """
SECRET_KEY = "of one run"
INSTALLED_APPS = ["django_celery_beat"]
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {{"default": {database!r}}}
globals().update({more!r})
"""
# Reads a JSON text per line, runs it, and answers with what ``result`` is then.
ADMIN = """
import datetime, json, sys, time
import django
django.setup()
from django.db import connection, transaction
from django_celery_beat.models import (
    ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, PeriodicTasks, SolarSchedule)

def every(seconds):
    if seconds == int(seconds):
        return IntervalSchedule.objects.get_or_create(every=int(seconds), period="seconds")[0]
    micros = round(seconds * 1_000_000)
    return IntervalSchedule.objects.get_or_create(every=micros, period="microseconds")[0]

def shown(name):
    row = PeriodicTask.objects.get(name=name)
    last = row.last_run_at and row.last_run_at.timestamp()
    return {"enabled": row.enabled, "runs": row.total_run_count, "last": last}

namespace = dict(globals())
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    namespace["result"] = None
    try:
        exec(json.loads(line), namespace)
        if not connection.get_autocommit():
            connection.commit()
        answer = {"result": namespace["result"]}
    except Exception as exc:
        answer = {"error": repr(exc)}
    print(json.dumps(answer, default=str), flush=True)
"""


def sqlite(directory: Path) -> dict[str, Any]:
    """Return a SQLite file as Django's ``DATABASES`` has one."""
    path = directory / "site.sqlite3"
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": {"timeout": 20}}


def write_site(
    directory: Path,
    broker_url: str,
    database: Mapping[str, Any],
    schedule: str = "{}",
    *,
    settings: Mapping[str, Any] | None = None,
    **more: Any,
) -> None:
    """Write a project as ``write_project`` does, its settings, and the tables; run with ``ENV``."""
    directory.mkdir(parents=True, exist_ok=True)
    rewrite_settings(directory, database, **(settings or {}))
    config = {"result_expires": None, **more.pop("config", {})}
    write_project(directory, broker_url, schedule, config=config, **more)
    run_here(directory, "-m", "django", "migrate", "-v", "0")


def rewrite_settings(directory: Path, database: Mapping[str, Any], **settings: Any) -> None:
    """Write the settings of a project anew, for processes that start from now on."""
    text = SETTINGS.format(database=dict(database), more=settings)
    (directory / f"{SETTINGS_MODULE}.py").write_text(text)


def run_here(directory: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Python in the project."""
    path = os.pathsep.join(filter(None, [str(directory), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env={**os.environ, **ENV, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


class Admin:
    """Somebody who runs statements with the models, in a process of his own; a context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def do(self, code: str, **names: Any) -> Any:
        """Run statements, with these names set; return what they set as ``result``."""
        given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        assert self._process is not None
        assert self._process.stdin is not None
        line = json.dumps(given + textwrap.dedent(code)) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        answer = self._answer()
        assert "error" not in answer, answer
        return answer["result"]

    def add(self, name: str, seconds: float = 1, **columns: Any) -> None:
        """Add a row that is due every so many seconds, as the admin saves it."""
        columns = {"task": "proj.noop", **columns}
        self.do(
            "PeriodicTask(name=name, interval=every(seconds), **columns).save()",
            name=name,
            seconds=seconds,
            columns=columns,
        )

    def save(self, name: str, **columns: Any) -> None:
        """Change columns of a row, as the admin saves it."""
        self.do(
            """
            row = PeriodicTask.objects.get(name=name)
            for column, value in columns.items():
                setattr(row, column, value)
            row.save()
            """,
            name=name,
            columns=columns,
        )

    def shown(self, name: str) -> Any:
        """Return whether a row is enabled, its runs, and its last one as seconds."""
        return self.do("result = shown(name)", name=name)

    def _answer(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the admin has ended; see admin.log"
        return json.loads(line)

    def __enter__(self) -> Self:
        with (self._directory / "admin.log").open("ab") as log:
            self._process = spawn(
                [sys.executable, "-c", ADMIN],
                cwd=self._directory,
                env={**os.environ, **ENV},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait(10)
            for stream in (self._process.stdin, self._process.stdout):
                if stream:
                    stream.close()
