"""The ``celery`` program with a project on a real server, as it is typed; it judges no output."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from celery_redlock_beat import Control
from support.command_line import run_redlock
from support.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.testing import Result

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
PROJECT = """
from datetime import timedelta

from celery import Celery
from celery.schedules import schedule

app = Celery("shop", broker={url!r}, set_as_current=False)
app.conf.redlock_beat_socket_timeout = 0.5
app.conf.redlock_beat_hold_down = 1.1


class Whim(schedule):
    pass


app.conf.beat_schedule = {{
    "pulse": {{"task": "proj.pulse", "schedule": 1.0, "tags": ["often"]}},
    "report-daily": {{"task": "proj.report", "schedule": "30 2 * * *", "tags": ["report"]}},
    "report-weekly": {{"task": "proj.report", "schedule": "30 3 * * MON", "tags": ["report"]}},
    "whim": {{"task": "proj.whim", "schedule": Whim(timedelta(hours=1))}},
}}
"""


def read(name: str) -> Any:
    """Return a published schema."""
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def check(name: str, document: Any) -> None:
    """Hold a document against a published schema, or a part of those that several refer to."""
    shared = [(f"{each}.json", Resource.from_contents(read(each))) for each in ("views", "entry")]
    registry: Any = Registry().with_resources(shared)
    is_whole = (SCHEMAS / f"{name}.json").exists()
    schema = read(name) if is_whole else {"$ref": f"views.json#/$defs/{name}"}
    Draft202012Validator(schema, registry=registry).validate(document)


class Operator:
    """Somebody who types ``celery -A proj redlock …``, in a directory with a project."""

    def __init__(self, directory: Path, url: str, project: str = PROJECT) -> None:
        self.directory = directory
        (directory / "proj.py").write_text(textwrap.dedent(project.format(url=url)))
        self.app = runpy.run_path(str(directory / "proj.py"))["app"]
        self.control = Control(self.app)
        self.environment = {
            name: os.environ[name]
            for name in os.environ
            if "CELERY" not in name and name not in ("NO_COLOR", "EDITOR", "VISUAL")
        }

    def command(self, *words: str) -> list[str]:
        """Return the whole command line."""
        return [sys.executable, "-m", "celery", "-A", "proj", "redlock", *words]

    def run(
        self, *words: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a pipe."""
        return subprocess.run(
            self.command(*words),
            cwd=self.directory,
            env={**self.environment, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def here(self, *words: str) -> Result:
        """Run a command in this process, which is quicker, and does not show what a pipe gets."""
        return run_redlock(*words, app=self.app)

    def told(self, *words: str, **options: Any) -> str:
        """Return what a command prints that must do what it was asked to, and without a warning."""
        done = self.run(*words, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def json(self, *words: str, code: int = 0, **options: Any) -> Any:
        """Return what a command prints with ``--json``, which its schema must allow."""
        done = self.run(*words, "--json", **options)
        assert done.returncode == code, done
        document = json.loads(done.stdout)
        check(words[0], document)
        return document

    def refused(self, *words: str, code: int, **options: Any) -> str:
        """Return the last line that a command says on stderr, which must end with this code."""
        done = self.run(*words, **options)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith(("Error: ", "Usage: ")), done.stderr
        return done.stderr.strip().splitlines()[-1]

    def terminal(
        self, *words: str, env: Mapping[str, str] | None = None, **options: Any
    ) -> Terminal:
        """Run a command on a terminal."""
        environment = {**self.environment, **(env or {})}
        return Terminal(self.command(*words), self.directory, environment, **options)

    def shell(self, line: str) -> subprocess.CompletedProcess[bytes]:
        """Run what a shell makes of ``redlock …``, with its streams as the line says."""
        return subprocess.run(
            ["bash", "-c", f'redlock() {{ {shlex.join(self.command())} "$@"; }}; {line}'],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
