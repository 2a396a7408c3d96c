"""What the README and the page on operating show of commands is what they print beside a node.

Instants, durations, ids, nodes and users differ each time, and so does where lines are folded.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.nodes import BeatNode
from support.servers import wait_until
from support.shown import steady

ROOT = Path(__file__).parents[2]


def shown_on(page):
    """The commands of a page that need a server, with what is shown of each."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^\$ celery (-A proj redlock .*)\n([^$]+)", block, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "pulses"),
    [pytest.param("README.md", 1, marks=pytest.mark.slow), ("docs/operating.md", 3)],
)
def test_each_command_prints_what_is_shown(name, pulses, tmp_path, shared_redis):
    pytest.importorskip("cron_descriptor")
    page = (ROOT / name).read_text("utf-8")
    env = {"CELERY_BROKER_URL": shared_redis.url}
    for file, text in re.findall(
        r"^```python\n# (\w+\.py)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / file).write_text(text, "utf-8")
    shown = list(shown_on(page))
    assert len(shown) >= 3
    with BeatNode(tmp_path, env=env) as beat:
        wait_until(lambda: beat.log.count("pulse @ ") >= pulses, 60, "ticks")
        for command, output in shown:
            done = subprocess.run(
                [sys.executable, "-m", "celery", *shlex.split(command)],
                cwd=tmp_path,
                env={**os.environ, **env},
                capture_output=True,
                text=True,
                check=False,
            )
            assert steady(done.stdout) == steady(output), done.stderr
        assert not beat.troubles()
