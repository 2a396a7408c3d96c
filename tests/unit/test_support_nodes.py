from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from support.collector import Collector
from support.nodes import BeatNode, NodeFailed, WorkerNode, write_project
from support.servers import wait_until

STOCK = "celery.beat:Scheduler"  # what is tested here is the node, not a scheduler
OFTEN = """{"often": {"task": noop.name, "schedule": 0.1}}"""


def test_a_project_has_its_broker_schedule_and_settings(tmp_path):
    path = write_project(
        tmp_path / "new",
        "memory://",
        schedule='{"a": {"task": noop.name, "schedule": crontab()}}',
        config={"beat_max_loop_interval": 3},
        extra="app.conf.task_default_queue = 'other'",
        module="shop",
    )
    space: dict = {"__name__": "shop"}
    exec(path.read_text(), space)
    app = space["app"]
    assert (app.main, app.conf.broker_url) == ("shop", "memory://")
    assert app.conf.beat_schedule["a"]["task"] == "shop.noop"
    assert (app.conf.beat_max_loop_interval, app.conf.task_default_queue) == (3, "other")


def test_a_beat_runs_stands_still_and_runs_on(shared_redis, tmp_path):
    write_project(tmp_path, shared_redis.url, OFTEN)
    with Collector(shared_redis.url) as collector, BeatNode(tmp_path, scheduler=STOCK) as beat:
        beat.wait_for_log("Sending due task often")
        collector.wait_until(lambda it: it.arrivals)
        beat.freeze()
        assert beat.alive
        seen = len(beat.log)
        beat.thaw()
        beat.wait_for_log("Sending due task often", since=seen)
    assert not beat.alive
    assert {path.name for path in tmp_path.iterdir()} == {"proj.py", "beat.log"}


def test_a_beat_that_is_asked_to_end_tells_how_long_it_took(tmp_path):
    write_project(tmp_path, "memory://", schedule="{}")  # a stock beat may miss it when it sends
    with BeatNode(tmp_path, scheduler=STOCK) as beat:
        beat.wait_for_log("Starting")
        assert 0 < beat.stop() < 5
        assert not beat.alive
        assert beat.wait_for_exit() == 0


def test_a_killed_node_can_be_started_again_and_its_log_goes_on(tmp_path):
    write_project(tmp_path, "memory://", OFTEN)
    with BeatNode(tmp_path, "first", scheduler=STOCK) as beat:
        beat.wait_for_log("Starting")
        beat.kill()
        assert beat.wait_for_exit() == -signal.SIGKILL
        seen = len(beat.log)
        beat.start().wait_for_log("Starting", since=seen)


def test_waiting_for_a_node_that_ends_fails_at_once_with_its_log(tmp_path):
    write_project(tmp_path, "memory://", extra="raise SystemExit('no such luck')")
    with (
        BeatNode(tmp_path, scheduler=STOCK) as beat,
        pytest.raises(NodeFailed, match=r"has ended(.|\n)*no such luck"),
    ):
        beat.wait_for_log("never", timeout=60)


def test_a_killed_worker_takes_its_pool_and_its_beat_along(shared_redis, tmp_path):
    write_project(tmp_path, shared_redis.url, OFTEN)
    with WorkerNode(tmp_path, beat=True, scheduler=STOCK) as worker:
        worker.wait_for_log("succeeded")
        family = [pid for pid in group(worker.pid) if pid != worker.pid]
        assert len(family) >= 2
        worker.kill()
        wait_until(lambda: not set(family) & set(group(worker.pid)), 5, "the family's end")


def group(leader: int) -> list[int]:
    """The processes of a group that run, by what ps tells."""
    command = ["ps", "-A", "-o", "pid=", "-o", "pgid=", "-o", "stat="]
    told = [line.split() for line in subprocess.check_output(command, text=True).splitlines()]
    return [int(pid) for pid, pgid, state in told if int(pgid) == leader and state[0] != "Z"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a death")
def test_a_worker_dies_with_its_main_process(shared_redis, tmp_path):
    write_project(tmp_path, shared_redis.url, OFTEN)
    with WorkerNode(tmp_path, beat=True, scheduler=STOCK) as worker:
        worker.wait_for_log("succeeded")
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: not group(worker.pid), 5, "the family's end")
