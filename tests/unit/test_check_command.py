"""``celery redlock check``: all that is wrong with a schedule, once, without a network."""

from __future__ import annotations

import json
import socket

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.diagnostics.schedules import check_schedule
from celery_redlock_beat.diagnostics.schedules.loading import scheduler_class
from celery_redlock_beat.errors import SettingError
from support.command_line import run_redlock

GOOD = {"task": "proj.good", "schedule": 30}
BROKER = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("it went to the network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def shop(entries=None, name="shop", **conf):
    app = Celery(name, broker=BROKER, set_as_current=False)
    app.conf.update(beat_schedule={} if entries is None else entries, **conf)
    return app


def check(app, *options):
    return run_redlock("check", *options, app=app)


def found(app):
    return [(each.severity, each.name, each.subject) for each in check_schedule(app).findings]


def test_a_good_schedule_is_counted_with_celerys_own_entry():
    result = check(shop({"good": GOOD}))
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "app      shop",
        "zone     UTC",
        "",
        "2 entries, 0 bad, 0 warnings",
    ]


BAD = {
    "no-task": ({"schedule": 30}, "it has no 'task'"),
    "minute": ({"task": "proj.a", "schedule": "99 * * * *"}, "the minute field '99' is not valid"),
    "misspelt": ({**GOOD, "jiter": 3}, "did you mean 'jitter'?"),
    "contradiction": (
        {**GOOD, "run_on_start": True, "start": "2030-01-01T00:00"},
        "keep one of them",
    ),
    "never": ({"task": "proj.a", "schedule": "0 0 30 2 *"}, "so it never fires"),
    "zone": ({**GOOD, "timezone": "Europe/Berln"}, "did you mean 'Europe/Berlin'?"),
    "no-mapping": (30, "it must be a mapping"),
}


@pytest.mark.parametrize("strict", [False, True])
def test_every_bad_entry_is_told_once_with_its_way_out_also_where_one_ends_the_start(strict):
    entries = {name: fields for name, (fields, _) in BAD.items()}
    result = check(shop({"good": GOOD, **entries}, redlock_beat_strict=strict))
    assert result.exit_code == 1
    assert result.stderr == ""
    told = " ".join(result.stdout.split())
    for name, (_, problem) in BAD.items():
        assert told.count(f"error entry: {name}") == 1
        assert told.count(problem) == 1
    assert result.stdout.endswith(f"\n{len(BAD) + 2} entries, {len(BAD)} bad, 0 warnings\n")


def test_each_warning_is_told_and_fails_only_if_asked():
    either = {"task": "proj.a", "schedule": "0 0 13 * FRI", "options": {"task_id": "fixed"}}
    app = shop({"either": either})
    assert found(app) == [("warning", "doubt", "either")] * 2
    assert check(app).exit_code == 0
    assert "2 entries, 0 bad, 2 warnings" in check(app).stdout
    assert check(app, "--strict").exit_code == 1
    assert check(shop({"good": GOOD}), "--strict").exit_code == 0


def test_several_bad_settings_are_told_at_once():
    app = shop({"bad": {}}, redlock_beat_lease=-1, timezone="Mars/Base")
    result = check(app)
    assert result.exit_code == 1
    assert "redlock_beat_lease = -1 is out of range" in result.stdout
    assert "Mars/Base" in result.stdout
    assert "2 errors: the entries were not looked at" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"broker_url": "amqp://host"}, "redlock_beat_url"),
        ({"broker_url": "nosuch://host"}, "broker_url has to begin with a scheme"),
        ({"redlock_beat_polll": 1}, "did you mean redlock_beat_poll?"),
        ({"entries": [GOOD]}, "beat_schedule must be a dict"),
        ({"imports": ["nowhere_at_all"]}, "nowhere_at_all"),
    ],
)
def test_what_ends_the_start_is_an_error_that_says_so(conf, told):
    report = check_schedule(shop(**conf))
    (finding,) = report.findings
    assert (finding.severity, finding.name) == ("error", "setting")
    assert told in finding.meaning
    assert report.entries is None


def test_a_configuration_that_cannot_be_loaded_is_told_once():
    app = Celery("shop", set_as_current=False)
    app.config_from_object("nowhere_at_all")
    (finding,) = check_schedule(app).findings
    assert "beat would not start: ModuleNotFoundError" in finding.meaning
    assert run_redlock("next", app=app).stderr.startswith("Error: beat would not start: ")


def test_what_beat_would_only_warn_of_is_a_warning():
    app = shop(name=None, task_always_eager=True)
    assert found(app) == [("warning", "setting", "the configuration of the app")] * 2


def test_entries_of_handlers_are_checked_too():
    app = shop({"good": GOOD})

    @app.on_after_configure.connect
    def early(sender, **_):
        sender.add_periodic_task(10, sender.signature("proj.early"), name="early", queu="x")

    @app.on_after_finalize.connect
    def late(sender, **_):
        sender.add_periodic_task(10, sender.signature("proj.late"), name="late", catch_up="al")

    app.conf.beat_schedule = {"good": GOOD}
    assert check_schedule(app).entries == 4
    assert found(app) == [("error", "entry", "late"), ("warning", "doubt", "early")]


def test_a_handler_that_fails_is_an_error_since_its_entries_are_missing():
    app = shop({"good": GOOD})

    @app.on_after_finalize.connect
    def broken(sender, **_):
        raise KeyError("missing")

    result = check(app)
    assert result.exit_code == 1
    assert "KeyError('missing'): entries that it adds are missing" in " ".join(
        result.stdout.split()
    )
    assert "2 entries, 0 bad, 0 warnings, 1 other error" in result.stdout
    assert result.stderr == ""


def test_a_schedule_of_a_users_own_class_is_not_asked():
    class Never(schedule):
        def is_due(self, last_run_at):
            raise AssertionError("it was asked")

    assert found(shop({"own": {"task": "proj.a", "schedule": Never(30)}})) == []


def test_an_apps_own_scheduler_adds_its_entries():
    class Own(RedlockScheduler):
        def setup_schedule(self):
            super().setup_schedule()
            self.update_from_dict({"more": {"task": "proj.a", "schedule": "99 * * * *"}})

    app = shop({"good": GOOD}, beat_scheduler=Own)
    assert scheduler_class(app) is Own
    assert found(app) == [("error", "entry", "more")]


@pytest.mark.parametrize("named", ["redlock", "celery.beat:PersistentScheduler"])
def test_any_other_scheduler_is_taken_for_ours(named):
    assert scheduler_class(shop(beat_scheduler=named)) is RedlockScheduler


def test_a_scheduler_that_cannot_be_imported_is_a_bad_setting():
    with pytest.raises(SettingError, match=r"beat_scheduler = 'nowhere:At' cannot be imported"):
        scheduler_class(shop(beat_scheduler="nowhere:At"))


def test_a_program_gets_one_object():
    entries = {"bad": {"task": "proj.a"}, "good": {"task": "proj.a", "schedule": crontab()}}
    told = json.loads(check(shop(entries), "--json").stdout)
    assert told["facts"] == {"app": "shop", "zone": "UTC"}
    assert told["entries"] == 3
    assert told["counts"] == {"errors": 1, "warnings": 0, "hints": 0}
    (finding,) = told["findings"]
    assert (finding["name"], finding["subject"]) == ("entry", "bad")
    assert "it has no 'schedule'" in finding["meaning"]


def test_without_an_app_the_command_says_what_to_type(monkeypatch):
    for name in ("CELERY_BROKER_URL", "CELERY_BROKER_WRITE_URL"):
        monkeypatch.delenv(name, raising=False)
    result = run_redlock("check")
    assert result.exit_code == 2
    assert "celery -A proj redlock check" in result.stderr
