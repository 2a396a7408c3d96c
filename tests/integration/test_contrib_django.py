"""Real beats on the tables of django-celery-beat, in SQLite: rows, edits, commands."""

from __future__ import annotations

import json
import time

import pytest

from celery_redlock_beat.testing.children import wait_until
from celery_redlock_beat.ticks import SECOND
from support.collector import Collector
from support.django_site import ENV, SCHEDULER, Admin, run_here, sqlite, write_site
from support.nodes import BeatNode, WorkerNode
from support.operator import check

LIMIT = 20.0


def beat(directory, name="beat", **options):
    return BeatNode(directory, name, scheduler=SCHEDULER, env=ENV, **options)


@pytest.fixture
def site(tmp_path, shared_redis):
    """Write a project with one entry of its own, which may be changed until a beat runs."""
    schedule = '{"code": {"task": noop.name, "schedule": 1.0}}'
    config = {"beat_scheduler": SCHEDULER, "redlock_beat_hold_down": 1.6}
    write_site(tmp_path, shared_redis.url, sqlite(tmp_path), schedule, config=config)
    return tmp_path


@pytest.fixture
def admin(site):
    with Admin(site) as admin:
        yield admin


@pytest.fixture
def collector(shared_redis):
    with Collector(shared_redis.url) as collector:
        yield collector


def came(collector, entry, number=1):
    """Wait until so many messages of an entry have come."""
    return collector.wait_until(lambda it: len(it.of(entry)) >= number, LIMIT)


def redlock(directory, *words, code=0):
    """Return what a command says as JSON, which must fit its schema."""
    done = run_here(
        directory, "-m", "celery", "-A", "proj", "redlock", *words, "--json", check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    told = json.loads(done.stdout)
    check(words[0], told)
    return told


@pytest.mark.slow
def test_rows_are_sent_and_what_an_admin_saves_is_in_force_within_a_second(site, admin, collector):
    with beat(site) as node:
        came(collector, "code", 2)
        slowest = 0.0
        for number in range(4):
            admin.add(f"row {number}", args=f"[{number}]", headers='{"tenant": 7}')
            saved = time.monotonic()
            came(collector, f"row {number}")
            slowest = max(slowest, time.monotonic() - saved)
        assert slowest < 2, "within a second it is in force, within another one it is due"
        (first, *_) = collector.of("row 0")
        assert first.headers["tenant"] == 7
        assert first.headers["periodic_task_name"] == "row 0"
        assert first.task_id == first.tick.task_id("proj")
        admin.save("row 0", enabled=False)
        admin.do("PeriodicTask.objects.get(name='row 1').delete()")
        done = collector.arrivals[-1].at + SECOND
        came(collector, "code", len(collector.of("code")) + 4)
        assert all(
            each.tick.at <= done for name in ("row 0", "row 1") for each in collector.of(name)
        )
        assert node.stop() < 5
        assert node.troubles() == []
    shown = admin.shown("code")
    assert shown["runs"] == len(collector.of("code"))
    assert shown["last"] == max(each.tick.at for each in collector.of("code")) / SECOND


def test_a_bad_row_is_told_and_keeps_nothing_from_the_others(site, admin, collector):
    admin.add("bad", args="[1")
    with beat(site) as node:
        node.wait_for_log("Left out: entry 'bad': its 'args' are no JSON")
        came(collector, "code")
    assert admin.shown("bad")["enabled"]


@pytest.mark.slow
def test_a_one_off_row_runs_once_is_disabled_and_runs_again_when_it_is_enabled(
    site, admin, collector
):
    with beat(site):
        admin.add("once", one_off=True)
        for number in (1, 2):
            came(collector, "once", number)
            wait_until(lambda: not admin.shown("once")["enabled"], LIMIT, "the row to be disabled")
            assert admin.shown("once") == {"enabled": False, "runs": 0, "last": None}
            assert len(collector.of("once")) == number
            admin.save("once", enabled=True)


@pytest.mark.slow
def test_without_time_zones_naive_times_are_written_and_read(tmp_path, shared_redis, collector):
    settings = {
        "USE_TZ": False,
        "TIME_ZONE": "Asia/Tokyo",
        "DJANGO_CELERY_BEAT_TZ_AWARE": False,
    }
    write_site(tmp_path, shared_redis.url, sqlite(tmp_path), settings=settings)
    with Admin(tmp_path) as admin, beat(tmp_path) as node:
        admin.add("row")
        admin.add("once", one_off=True)
        came(collector, "row", 3)
        came(collector, "once")
        wait_until(lambda: not admin.shown("once")["enabled"], LIMIT, "the row to be disabled")
        node.stop()
        last = admin.do("result = PeriodicTask.objects.get(name='row').last_run_at.isoformat()")
        assert last == max(each.tick.instant for each in collector.of("row")).isoformat()[:19]
        assert node.troubles() == []
    assert len(collector.of("once")) == 1


def test_commands_see_the_rows_and_write_none(site, admin):
    admin.add("row", 3600)
    admin.add("off", 3600, enabled=False)
    entries = redlock(site, "list")["entries"]
    assert {each["name"]: each["origin"] for each in entries} == {"code": "code", "row": "code"}
    assert admin.do("result = PeriodicTask.objects.filter(name='code').exists()") is False
    assert [each["name"] for each in redlock(site, "next", "row")["entries"]] == ["row"]


def test_commands_take_a_scheduler_of_a_module_that_imports_models(site, admin):
    admin.add("row", 3600)
    (site / "own.py").write_text(
        "import django_celery_beat.models\n"
        "from celery_redlock_beat.contrib.django import DatabaseScheduler as Own\n"
    )
    project = (site / "proj.py").read_text()
    for scheduler, seen in (
        ("own:Own", {"code", "row"}),
        ("django_celery_beat.schedulers:DatabaseScheduler", {"code"}),
    ):
        (site / "proj.py").write_text(project.replace(SCHEDULER, scheduler))
        assert {each["name"] for each in redlock(site, "list")["entries"]} == seen
        redlock(site, "check")


@pytest.mark.slow
def test_a_row_is_paused_and_resumed_by_command(site, admin, collector):
    admin.add("row")
    with beat(site):
        came(collector, "row", 2)
        (view,) = redlock(site, "pause", "row", "--note", "for now")["entries"]
        assert view["state"] == "paused"
        paused = len(collector.of("row"))
        came(collector, "code", len(collector.of("code")) + 3)
        assert len(collector.of("row")) <= paused + 1
        redlock(site, "resume", "row")
        came(collector, "row", paused + 2)


def test_tables_that_are_not_there_are_told_with_the_way_out(tmp_path, shared_redis):
    config = {"beat_scheduler": SCHEDULER}
    write_site(tmp_path, shared_redis.url, sqlite(tmp_path), config=config)
    (tmp_path / "site.sqlite3").unlink()
    words = ("-m", "celery", "-A", "proj", "redlock", "list")
    done = run_here(tmp_path, *words, check=False)
    assert done.returncode == 1
    assert "no such table" in done.stderr
    assert "manage.py migrate" in done.stderr


@pytest.mark.slow
def test_a_beat_without_tables_stays_up_and_begins_when_they_are_there(
    tmp_path, shared_redis, collector
):
    schedule = '{"code": {"task": noop.name, "schedule": 1.0}}'
    write_site(tmp_path, shared_redis.url, sqlite(tmp_path), schedule)
    (tmp_path / "site.sqlite3").unlink()
    with beat(tmp_path) as node:
        node.wait_for_log("The tables cannot be read")
        run_here(tmp_path, "-m", "django", "migrate", "-v", "0")
        node.wait_for_log("The tables can be read again", 40)
        came(collector, "code")


@pytest.mark.slow
def test_a_beat_within_a_worker_reads_the_rows(site, admin, collector):
    admin.add("row", queue="other")
    worker = WorkerNode(
        site, beat=True, scheduler=SCHEDULER, env=ENV, args=["--pool=prefork", "-Q", "third"]
    )
    with worker:
        came(collector, "code", 2)


@pytest.fixture
def rows(admin):
    """Save rows of each kind, as they are after a year with django-celery-beat."""
    admin.do(
        """
        utc = datetime.timezone.utc
        now = datetime.datetime.now(utc)
        crontab = CrontabSchedule.objects.create(minute="30", hour="3", timezone="Europe/Berlin")
        later = ClockedSchedule.objects.create(clocked_time=now + datetime.timedelta(days=1))
        sunset = SolarSchedule.objects.create(event="sunset", latitude=52.5, longitude=13.4)
        def add(name, **columns):
            PeriodicTask(name=name, task="proj.noop", **columns).save()
        add("interval", interval=every(3600), args="[1]", queue="fast")
        add("fresh", interval=every(3600))
        add("crontab", crontab=crontab, description="nightly")
        add("sunset", solar=sunset)
        add("later", clocked=later, one_off=True)
        add("off", interval=every(3600), enabled=False)
        add("done", interval=every(3600), one_off=True, enabled=False)
        add("bad", interval=every(3600), kwargs="[")
        add("code", interval=every(1))
        add("celery.backend_cleanup", crontab=crontab)
        ran = now - datetime.timedelta(minutes=90)
        PeriodicTask.objects.filter(name__in=["interval", "code"]).update(last_run_at=ran)
        """
    )


def by_name(told):
    return {each["name"]: each for each in told["entries"]}


@pytest.mark.slow
def test_all_rows_can_be_taken_over_and_go_on_where_they_stopped(site, admin, rows, collector):
    plan = redlock(site, "import-django", "--dry-run", code=1)
    done = redlock(site, "import-django", "--note", "leaving", code=1)
    outcomes = {name: each["done"] for name, each in by_name(done).items()}
    assert outcomes == {name: each["done"] for name, each in by_name(plan).items()}
    assert outcomes == {
        "bad": "refused",
        "celery.backend_cleanup": "left",
        "code": "seeded",
        "crontab": "added",
        "done": "left",
        "fresh": "added",
        "interval": "added",
        "later": "added",
        "off": "added",
        "sunset": "added",
    }
    assert "'kwargs' are no JSON" in by_name(done)["bad"]["problem"]
    assert "never run" in by_name(done)["fresh"]["warnings"][0]
    again = redlock(site, "import-django", code=1)
    assert {by_name(again)[name]["done"] for name in outcomes if outcomes[name] == "added"} == {
        "same"
    }
    project = (site / "proj.py").read_text()
    (site / "proj.py").write_text(project.replace(SCHEDULER, "redlock"))
    entries = by_name(redlock(site, "list"))
    assert {name: each["state"] for name, each in entries.items()} == {
        "code": "active",
        "crontab": "active",
        "fresh": "active",
        "interval": "active",
        "later": "active",
        "off": "disabled",
        "sunset": "active",
    }
    definition = entries["interval"]["definition"]
    assert definition["args"] == [1]
    assert definition["options"] == {"queue": "fast"}
    assert entries["crontab"]["definition"]["timezone"] == "Europe/Berlin"
    with Collector(_url_of(site), "fast") as fast, BeatNode(site, env=ENV):
        (first,) = fast.wait_until(1, LIMIT)
        last = by_name(done)["interval"]["last_run"]
        assert first.tick.instant.isoformat()[14:26] == last[14:26], "the phase goes on"
        came(collector, "code")


def _url_of(site):
    return json.loads(
        run_here(
            site, "-c", "import json, proj; print(json.dumps(proj.app.conf.broker_url))"
        ).stdout
    )


def test_a_row_that_is_stored_otherwise_is_changed_only_if_that_is_said(site, admin):
    admin.add("row", 3600)
    redlock(site, "import-django")
    admin.save("row", args="[2]")
    refused = redlock(site, "import-django", code=1)
    assert by_name(refused)["row"]["done"] == "refused"
    assert by_name(redlock(site, "import-django", "--replace"))["row"]["done"] == "changed"


def test_people_are_told_what_to_do_next(site, admin):
    admin.add("row", 3600)
    words = ("-m", "celery", "-A", "proj", "redlock", "import-django")
    assert "Now set" not in run_here(site, *words, "--dry-run").stderr
    done = run_here(site, *words)
    assert "row   added" in done.stdout
    assert "Now set beat_scheduler = 'redlock'" in done.stderr


def test_without_django_celery_beat_it_is_told(tmp_path, shared_redis):
    write_site(tmp_path, shared_redis.url, sqlite(tmp_path))
    (tmp_path / "site_settings.py").write_text("SECRET_KEY = 'x'\nINSTALLED_APPS = []\n")
    words = ("-m", "celery", "-A", "proj", "redlock", "import-django")
    done = run_here(tmp_path, *words, check=False)
    assert done.returncode == 1
    assert "INSTALLED_APPS must have 'django_celery_beat'" in done.stderr
