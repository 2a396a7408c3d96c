from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from celery_redlock_beat.testing.binaries import find_server
from support.clock import ShiftedClock, can_shift
from support.nodes import BeatNode, write_project
from support.requirements import require
from support.servers import Server, have_server

pytestmark = pytest.mark.needs_cc

READINGS = """
import json, sys, time
from datetime import datetime
while line := sys.stdin.readline():
    coarse = time.clock_gettime(5)  # CLOCK_REALTIME_COARSE
    wall = [time.time(), time.time_ns() / 1e9, datetime.now().timestamp(), coarse]
    print(json.dumps({"wall": wall, "monotonic": time.monotonic()}), flush=True)
"""


@pytest.fixture(autouse=True)
def _needs_linux():
    require("cc on Linux", can_shift())


@pytest.fixture
def clock():
    with ShiftedClock() as clock:
        yield clock


@pytest.fixture
def read(clock):
    env = {**os.environ, **clock.env}
    command = [sys.executable, "-I", "-c", READINGS]
    with subprocess.Popen(command, env=env, stdin=-1, stdout=-1, text=True) as child:

        def answer() -> tuple[list[float], float]:
            child.stdin.write("\n")
            child.stdin.flush()
            found = json.loads(child.stdout.readline())
            wall = [each - time.time() for each in found["wall"]]
            return wall, found["monotonic"] - time.monotonic()

        yield answer
        child.stdin.close()


@pytest.mark.parametrize("seconds", [0, 3600, -3600, 0.25, -0.75, 86400 * 365.5])
def test_every_wall_clock_is_shifted_and_the_monotonic_one_is_true(clock, read, seconds):
    clock.set(seconds)
    wall, monotonic = read()
    assert wall == pytest.approx([seconds] * 4, abs=0.1)
    assert monotonic == pytest.approx(0, abs=0.1)


def test_the_clock_moves_while_the_process_runs(clock, read):
    for seconds in (1000, -1000, 0):
        clock.set(seconds)
        assert clock.seconds == seconds
        assert read()[0] == pytest.approx([seconds] * 4, abs=0.1)


def test_two_processes_have_two_clocks():
    show = [sys.executable, "-c", "import time; print(time.time())"]
    with ShiftedClock(500) as fast, ShiftedClock(-500) as slow:
        shown = [
            float(subprocess.check_output(show, env={**os.environ, **each.env}))
            for each in (fast, slow)
        ]
    assert shown[0] - shown[1] == pytest.approx(1000, abs=5)


def test_a_redis_server_has_the_clock(clock):
    # The bundled binary is linked statically: nothing can be preloaded into it.
    require("redis-server on PATH", have_server(("path",)))
    binary = find_server(("path",))
    with Server(env=clock.env, binary=binary) as server, server.client() as client:
        for seconds in (7200, -7200):
            clock.set(seconds)
            assert client.time()[0] - time.time() == pytest.approx(seconds, abs=2)


def test_a_beat_has_the_clock(clock, tmp_path):
    clock.set(86400 * 30)
    write_project(tmp_path, "memory://", schedule="{}")
    with BeatNode(tmp_path, scheduler="celery.beat:Scheduler", env=clock.env) as beat:
        told = beat.wait_for_log(r"^\[(\S+ \S+),\d+: INFO.* Starting")
    moment = datetime.strptime(told[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert moment - datetime.now(UTC) > timedelta(days=28)
