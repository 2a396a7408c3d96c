"""The file for probes, as real nodes write it: while they live, while Redis is away, and after."""

from __future__ import annotations

import os
import signal
import time

import pytest
from celery import Celery

from celery_redlock_beat.health_file import Health, read
from support.nodes import BeatNode, WorkerNode, write_project
from support.servers import wait_until

QUICK = {"redlock_beat_hold_down": 1.6, "redlock_beat_lease": 2}
NOTE_ITS_PID = """
import os

@signals.beat_embedded_init.connect
def note_its_pid(**kwargs):
    with open("beat.pid", "w") as file:
        file.write(str(os.getpid()))
"""
LIMIT = 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "health"


def project(tmp_path, server, path, **options):
    config = {**QUICK, "redlock_beat_health_file": str(path)}
    write_project(tmp_path, server.url, config=config, **options)


def wait_for(path, condition, what):
    """Wait until the file is there, and is so."""

    def found():
        told = read(path)
        return isinstance(told, Health) and condition(told) and told

    return wait_until(found, LIMIT, what)


def test_a_node_is_ready_while_it_can_send_and_alive_while_it_cannot(redis_server, tmp_path, path):
    project(tmp_path, redis_server, path)
    with BeatNode(tmp_path, "one") as node:
        ready = wait_for(path, lambda told: told.ready, "a node that is ready")
        assert ready.pid == node.pid
        redis_server.kill()
        away = wait_for(path, lambda told: not told.ready, "a node that is not")
        assert any("ledger" in each for each in away.problems)
        wait_for(path, lambda told: told.at > away.at + 2, "a node that goes on telling")
        redis_server.start()
        wait_for(path, lambda told: told.ready, "a node that is ready again")
        node.ask_to_end()
        assert node.wait_for_exit() == 0
        assert not path.exists()
        assert not list(tmp_path.glob(".health*"))


def test_a_node_with_a_bad_entry_is_not_ready_and_names_it(shared_redis, tmp_path, path):
    schedule = '{"good": {"task": noop.name, "schedule": 1.0}, "bad": {"task": noop.name}}'
    project(tmp_path, shared_redis, path, schedule=schedule)
    with BeatNode(tmp_path, "one") as node:
        node.wait_for_log("good @ .*: sent")
        told = wait_for(path, lambda told: len(told.problems) == 1, "one problem")
    assert not told.ready
    assert "'bad'" in told.problems[0]


def test_a_folder_that_is_not_there_ends_the_start_with_what_to_do(shared_redis, tmp_path, path):
    project(tmp_path, shared_redis, path / "missing")
    with BeatNode(tmp_path, "one") as node:
        assert node.wait_for_exit() != 0
    assert "redlock_beat_health_file = " in node.log
    assert "make it" in node.log


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_whose_beat_is_dead_or_hangs_answers_pings_and_the_file_gets_old(
    shared_redis, tmp_path, path, how
):
    """What docs/health.md says of stock Celery, and why there is a file."""
    project(tmp_path, shared_redis, path, extra=NOTE_ITS_PID)
    with WorkerNode(tmp_path, "one", beat=True, args=["--pool=prefork"]) as worker:
        wait_for(path, lambda told: told.ready, "a beat that is ready")
        name = worker.wait_for_log(r"(one@\S+) ready")[1]
        pid = int((tmp_path / "beat.pid").read_text())
        assert read(path).pid == pid
        os.kill(pid, how)
        wait_for(path, lambda told: told.at < time.time() - 4, "a file that gets old")
        with Celery(broker=shared_redis.url, set_as_current=False) as app:
            answer = app.control.ping(destination=[name], timeout=5, limit=1)
        assert answer == [{name: {"ok": "pong"}}]
