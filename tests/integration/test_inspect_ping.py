"""`celery inspect ping` of Celery 5.7's beat, with real processes: it answers for ours as well."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import celery.beat
import pytest

from support.nodes import BeatNode, write_project

pytestmark = pytest.mark.skipif(
    not hasattr(celery.beat, "BeatPidbox"), reason="beat answers no ping before Celery 5.7"
)
QUICK = {
    "redlock_beat_hold_down": 1.6,
    "redlock_beat_lease": 2,
    "beat_enable_remote_control": True,
}
SENT = r"every-second @ .*: sent"
ONE, TWO = "celerybeat@one", "celerybeat@two"
OTHER_URL = 'import os\napp.conf.broker_url = os.environ.get("BROKER") or app.conf.broker_url\n'
DOCS = Path(__file__).parents[2] / "docs"
NO_ANSWER = 69  # as of celery.bin.control, where no node replied


def node(tmp_path, name, **options):
    return BeatNode(tmp_path, name, args=["-n", f"celerybeat@{name}"], **options)


def ping(tmp_path, *nodes, timeout=10.0):
    """Run `celery inspect ping`; return its exit code, and the nodes that answered."""
    to = ["-d", ",".join(nodes)] if nodes else []
    command = [sys.executable, "-m", "celery", "-A", "proj", "--no-color", "inspect", "ping"]
    done = subprocess.run(
        [*command, *to, "--timeout", str(timeout)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, re.findall(r"->\s+(\S+): OK\s+pong", done.stdout)


def rights(page):
    """The rights that a page grants to beat, as the server takes them."""
    (line,) = re.findall(r"^ACL SETUSER beat (.+)$", (DOCS / page).read_text("utf-8"), re.MULTILINE)
    return line


@pytest.fixture
def fleet(shared_redis, tmp_path):
    write_project(tmp_path, shared_redis.url, config=QUICK)
    with ExitStack() as stack:
        nodes = [stack.enter_context(node(tmp_path, name)) for name in ("one", "two")]
        for each in nodes:
            each.wait_for_log("The ledger has heard this node")
            each.wait_for_log("beat pidbox: Connected")
        yield nodes


def test_each_node_answers_by_its_name_and_goes_on_sending(fleet, tmp_path):
    assert ping(tmp_path, ONE, timeout=2) == (0, [ONE])
    assert ping(tmp_path, TWO, timeout=2) == (0, [TWO])
    code, names = ping(tmp_path, timeout=2)
    assert (code, sorted(names)) == (0, [ONE, TWO])
    fleet[1].kill()
    fleet[0].wait_for_log(SENT, since=len(fleet[0].log))


def test_a_node_that_hangs_does_not_answer(fleet, tmp_path):
    fleet[0].freeze()
    code, names = ping(tmp_path, ONE, timeout=2)
    assert (code, names) == (NO_ANSWER, [])
    fleet[0].thaw()
    assert ping(tmp_path, ONE) == (0, [ONE])


def test_a_node_that_answers_pings_ends_as_quickly_as_any(fleet):
    fleet[0].process.send_signal(signal.SIGTERM)
    assert fleet[0].wait_for_exit(10) == 0
    assert not fleet[0].troubles()
    assert "did not stop within" not in fleet[0].log


def test_the_rights_of_the_documentation_are_enough_for_an_answer(redis_server, tmp_path):
    words = rights("redis.md").replace("{redlock:shop}", "{redlock:proj}").split()
    with redis_server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "beat", *words)
        admin.execute_command("ACL", "SETUSER", "beat", *rights("health.md").split())
    url = redis_server.url.replace("redis://", "redis://beat:PASSWORD@")
    write_project(tmp_path, redis_server.url, config=QUICK, extra=OTHER_URL)
    with node(tmp_path, "one", env={"BROKER": url}) as beat:
        beat.wait_for_log("beat pidbox: Connected")
        beat.wait_for_log(SENT)
        assert ping(tmp_path, ONE) == (0, [ONE])
