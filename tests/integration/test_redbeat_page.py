"""What the page for those who come from RedBeat shows is what comes of it, with a real RedBeat."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from dateutil.rrule import MO
from redbeat.schedulers import RedBeatScheduler, RedBeatSchedulerEntry, get_redis
from redbeat.schedules import rrule

from celery_redlock_beat import Control
from celery_redlock_beat.predecessors.redbeat.settings import NAMES
from support.nodes import BeatNode
from support.servers import wait_until
from support.shown import steady

PAGE = (Path(__file__).parents[2] / "docs/coming-from-redbeat.md").read_text("utf-8")
REDBEAT = "redbeat.RedBeatScheduler"
OWN = {"nightly": "shop.nightly", "sync": "shop.sync"}
LIMIT = 30.0


def blocks(language):
    """Return what the page has in blocks of a language, also those under a number."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", PAGE, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, text in found]


PROJECT, INTERLOCK, ENTRIES = blocks("python")


class Shop:
    """The page's app in a directory, with the two databases of a server, and what RedBeat has."""

    def __init__(self, directory, server):
        self.directory = directory
        self.place = server.url.rpartition("/")[0]
        self.write(PROJECT)
        self.app = Celery("shop", broker=f"{self.place}/0", set_as_current=False)
        self.app.conf.update(
            redbeat_redis_url=f"{self.place}/1",
            redbeat_redis_options={},
            beat_schedule={
                "nightly": {"task": OWN["nightly"], "schedule": crontab(hour=2, minute=30)},
                "sync": {"task": OWN["sync"], "schedule": 3600.0},
                "report-old": {"task": "shop.report", "schedule": 60.0},
            },
        )
        self.control = Control(self.app)

    def close(self):
        get_redis(self.app).close()
        self.control.close()

    def write(self, *parts):
        """Write the project of parts of the page, on the server that there is."""
        text = "\n".join(parts).replace("redis://localhost:6379", self.place)
        (self.directory / "proj.py").write_text(text, "utf-8")

    def fill(self):
        """Have RedBeat take its entries from code, and save others as a program does."""
        RedBeatScheduler(self.app)
        ran = datetime.now(UTC) - timedelta(seconds=75)
        self.save("digest-anna", crontab(hour=9, minute=0), args=["anna"])
        self.save("poll-7", schedule(90))
        self.save("board", rrule("MONTHLY", dtstart=ran, byweekday=MO(+2)))
        for key in get_redis(self.app).zrange("redbeat::schedule", 0, -1):
            RedBeatSchedulerEntry.from_key(key, app=self.app).reschedule(ran)

    def save(self, name, spec, **more):
        RedBeatSchedulerEntry(name, f"shop.{name}", spec, app=self.app, **more).save()

    def run(self, *words):
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": str(self.directory)},
            capture_output=True,
            text=True,
            check=False,
        )

    def redlock(self, *words):
        return self.run("-m", "celery", "-A", "proj", "redlock", *words)


@pytest.fixture
def shop(tmp_path, shared_redis):
    with closing(Shop(tmp_path, shared_redis)) as shop:
        yield shop


def test_each_command_prints_what_is_shown_and_each_snippet_runs(shop):
    shop.fill()
    first, second = (
        re.fullmatch(r"\$ celery -A proj redlock (.*)\n([^$]*)", each).groups()
        for each in blocks("console")
    )
    for command, output in (first, second):
        done = shop.redlock(*shlex.split(command))
        assert steady(done.stdout) == steady(output), done.stderr
        if command != first[0]:
            continue
        assert shop.redlock("import-redbeat").returncode == 0
        (shop.directory / "entries.py").write_text(ENTRIES, "utf-8")
        done = shop.run("entries.py")
        assert done.returncode == 0, done.stderr
        assert shop.control.get("digest-ben").state == "disabled"
        launch = {"kind": "once", "at": "2090-01-01T09:00:00Z"}
        shop.control.add("launch", task="shop.launch", schedule=launch)
    assert not get_redis(shop.app).exists("redbeat:digest-ben")
    assert shop.redlock("export-redbeat", "--yes").returncode == 1
    assert get_redis(shop.app).exists("redbeat:digest-ben")
    assert get_redis(shop.app).exists("redbeat:report-old")


def lines_of(log):
    return {steady(line) for line in log.splitlines()}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_rolling_switch_goes_as_told_and_back(shop):
    """RedBeat looks every two seconds, as the page has it do for the way back.

    Its lock outlasts what it may take until the seconds that are left are told once more.
    """
    quick = "app.conf.beat_max_loop_interval = 2; app.conf.redbeat_lock_timeout = 25"
    often = 'app.conf.beat_schedule["often"] = {"task": "shop.often", "schedule": 1.0}'
    shop.write(PROJECT, quick, often, INTERLOCK, 'app.conf.redlock_beat_health_file = "health"')
    shop.save("poll-7", schedule(1))
    with BeatNode(shop.directory, "old", scheduler=REDBEAT) as old:
        old.wait_for_log("Acquired lock")
        imported = shop.redlock("import-redbeat")
        assert "poll-7" in imported.stdout
        assert "a RedBeat holds its lock" in imported.stderr
        shop.save("digest-ben", crontab(hour=8, minute=0))
        shop.save("poll-9", schedule(1))
        ours = BeatNode(shop.directory, "ours")
        with ours:
            ours.wait_for_log("The ledger has heard this node")
            ours.wait_for_log("it has extended its lock")
            assert shop.redlock("health", "--file", "health").returncode == 0
            old.kill()
            ours.wait_for_log("RedBeat has not extended its lock", LIMIT)
            ours.wait_for_log("poll-7 @", LIMIT)
            assert "poll-9 @" not in ours.log
            again = shop.redlock("import-redbeat")
            assert re.search(r"^poll-9 +added", again.stdout, re.MULTILINE), again.stdout
            ours.wait_for_log("poll-9 @", LIMIT)
            shown = {steady(line) for text in blocks("text") for line in text.splitlines()}
            assert shown
            assert shown <= lines_of(ours.log), ours.log
            shop.control.add("poll-11", task="shop.poll", schedule=1)
            ours.wait_for_log("poll-11 @", LIMIT)
            exported = shop.redlock("export-redbeat", "--yes")
            assert (exported.returncode, exported.stderr) == (0, "")
            with BeatNode(shop.directory, "back", scheduler=REDBEAT) as back:
                back.wait_for_log("beat: Starting")
                ours.ask_to_end()
                assert ours.end(10) == "", ours.log
                back.wait_for_log("Acquired lock", LIMIT)
                for name in ("often", "poll-7", "poll-9", "poll-11"):
                    back.wait_for_log(f"Sending due task {name} ", LIMIT)


def test_what_was_exported_under_the_interlock_is_brought_up_to_date_at_the_end(shop):
    """Else RedBeat would send again what was sent while the export looked."""
    shop.write(PROJECT, INTERLOCK)
    shop.control.add("poll-11", task="shop.poll", schedule=1)
    with BeatNode(shop.directory, "ours") as ours:
        wait_until(lambda: ours.log.count("poll-11 @") > 1, LIMIT, "a pass and another one")
        shop.control.pause("poll-11")
        mark = shop.control.get("poll-11").last.tick
        # As an export has it that looked a tick earlier than it wrote.
        shop.save("poll-11", schedule(1), last_run_at=mark - timedelta(seconds=1))
        ours.ask_to_end()
        assert ours.end(10) == "", ours.log
    assert last_run(shop) == mark


def test_what_an_export_adds_late_is_brought_up_to_date_at_the_end(shop):
    """The nodes had told RedBeat long ago, which did not have the entry then."""
    shop.write(PROJECT, INTERLOCK)
    shop.control.add("poll-11", task="shop.poll", schedule=1)
    with BeatNode(shop.directory, "ours") as ours:
        wait_until(lambda: ours.log.count("poll-11 @") > 1, LIMIT, "a pass and another one")
        shop.control.pause("poll-11")
        mark = shop.control.get("poll-11").last.tick
        for _ in range(3):
            wait_for_pass(shop)
        shop.save("poll-11", schedule(1), last_run_at=mark - timedelta(seconds=1))
        assert last_run(shop) < mark
        ours.ask_to_end()
        assert ours.end(10) == "", ours.log
    assert last_run(shop) == mark, "or RedBeat sends that tick again"


def wait_for_pass(shop):
    """Wait until the one node asks the ledger once more."""
    (before,) = shop.control.nodes()
    wait_until(lambda: shop.control.nodes()[0].heartbeat > before.heartbeat, LIMIT, "another pass")


def last_run(shop):
    """Return when RedBeat takes an entry to have run last."""
    return RedBeatSchedulerEntry.from_key("redbeat:poll-11", app=shop.app).last_run_at


def test_each_setting_of_redbeat_is_told_and_no_other():
    table = PAGE.partition("## RedBeat's settings")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `redbeat_(\w+)` \|", table, re.MULTILINE)
    assert set(told) == set(NAMES)
    assert {*re.findall(r"\bredbeat_(\w+)", PAGE)} <= set(NAMES)
