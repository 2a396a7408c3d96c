"""Every way in which Celery starts a beat starts ours, and ends it as its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from conformance.releases import HERE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LIMIT = 45.0
CELERY = ("-m", "celery", "-A", "project")
NAMES = ("redlock", "celery_redlock_beat:RedlockScheduler")


class Process:
    """A child of the test whose output is read line by line."""

    def __init__(self, child):
        self.child = child
        self.lines = []

    def wait_for(self, text):
        """Return the first line with ``text`` that was not read yet."""
        for line in self.child.stdout:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended without {text!r}:\n{''.join(self.lines)}")

    def end(self):
        """Read to the end, and return with what status it ended."""
        self.lines += self.child.stdout
        return self.child.wait()


@pytest.fixture
def start(release, tmp_path):
    """Start Python on this release of Celery, with the project; what runs too long is killed."""

    @contextmanager
    def started(*arguments, **variables):
        with subprocess.Popen(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=release.environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as child:
            watchdog = threading.Timer(LIMIT, child.kill)
            watchdog.start()
            try:
                yield Process(child)
            finally:
                watchdog.cancel()
                child.kill()

    return started


@pytest.mark.parametrize("name", NAMES)
def test_celery_beat_takes_the_scheduler_as_an_option(start, name):
    with start(*CELERY, "beat", "-S", name) as beat:
        beat.wait_for("memory:// (for tests")  # the banner
        beat.wait_for("published project.work")
        beat.child.send_signal(signal.SIGTERM)
        assert beat.end() == 0, beat.lines


@pytest.mark.parametrize("name", NAMES)
def test_celery_beat_takes_the_scheduler_as_a_setting(start, name):
    with start(*CELERY, "beat", PROJECT_SCHEDULER=name) as beat:
        beat.wait_for("memory:// (for tests")
        beat.wait_for("published project.work")
        beat.child.send_signal(signal.SIGINT)
        assert beat.end() == 0, beat.lines


def test_a_worker_with_an_embedded_beat_runs_what_it_sends(start, tmp_path):
    (tmp_path / "queue").mkdir()
    options = ("-B", "--scheduler", "redlock", "-c", "1", "--without-gossip", "--without-mingle")
    with start(*CELERY, "worker", *options, PROJECT_QUEUE=str(tmp_path / "queue")) as worker:
        worker.wait_for("published project.work")
        worker.wait_for("the task ran")
        worker.child.send_signal(signal.SIGTERM)
        assert worker.end() == 0, worker.lines


@pytest.mark.parametrize("form", ["thread", "process"])
def test_an_embedded_service_sends_and_stops(start, form):
    with start(str(HERE / "project.py"), form) as script:
        script.wait_for("published project.work")
        script.child.stdin.close()
        script.wait_for("stopped")


def test_a_beat_under_remote_control_answers_and_stops(start, release):
    if release.series in {"5.5", "5.6"}:
        pytest.skip("beat is under remote control since Celery 5.7")
    with start(str(HERE / "project.py"), "controlled") as script:
        assert "{'beat@here': {'ok': 'pong'}}" in script.wait_for("answered")
        script.wait_for("stopped")
