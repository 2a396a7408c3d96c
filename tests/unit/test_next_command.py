"""``celery redlock next``: when entries are due next, by the clock of their zone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat.diagnostics.schedules import plain_cron
from celery_redlock_beat.lateness import Slot
from celery_redlock_beat.timetables import once
from support.command_line import run_redlock

BERLIN = "Europe/Berlin"


def shop(schedule=None, zone=BERLIN, entries=None, **policies):
    app = Celery("shop", broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.timezone = zone
    app.conf.result_expires = None  # and so no entry of Celery's own
    if entries is None:
        entries = {"job": {"task": "proj.job", "schedule": schedule, **policies}}
    app.conf.beat_schedule = entries
    return app


def told(app, *words, code=0):
    result = run_redlock("next", *words, app=app)
    assert result.exit_code == code, result.output
    return result.stdout.splitlines()


def ticks(app, begin, number=3, *words):
    lines = told(app, "--from", begin, "-n", str(number), *words)
    return [line.strip() for line in lines if line.startswith(("  Mon", "  Tue", "  S", "  Fri"))]


def test_an_entry_is_told_with_what_it_says_and_when_it_comes():
    assert told(shop("30 2 * * *"), "-n", "2", "--from", "2026-10-24") == [
        "job",
        "  task      proj.job",
        "  schedule  30 2 * * *",
        "  meaning   At 02:30, every day",
        "  zone      Europe/Berlin",
        "  Sat 2026-10-24 02:30:00+02:00  2026-10-24T00:30:00Z",
        "  Sun 2026-10-25 02:30:00+02:00  2026-10-25T00:30:00Z  (first pass)",
    ]


def test_in_utc_the_instant_is_not_told_twice():
    assert ticks(shop("@daily", "UTC"), "2026-10-24", 1) == ["Sat 2026-10-24 00:00:00+00:00"]


def test_ten_ticks_from_now_are_shown_unless_said_otherwise():
    assert sum("Z" in line for line in told(shop("* * * * *"))) == 10


def test_a_tick_at_the_very_beginning_is_shown():
    (first,) = ticks(shop("@daily"), "2026-10-24T00:00", 1)
    assert first.startswith("Sat 2026-10-24 00:00:00+02:00")


def test_a_beginning_without_an_offset_is_in_the_zone_that_is_shown():
    app = shop("@hourly")
    assert ticks(app, "2026-10-24T12:00", 1) == [
        "Sat 2026-10-24 12:00:00+02:00  2026-10-24T10:00:00Z"
    ]
    in_tokyo = ticks(app, "2026-10-24T12:00", 1, "--timezone", "Asia/Tokyo")
    assert in_tokyo == ["Sat 2026-10-24 12:00:00+09:00  2026-10-24T03:00:00Z"]
    assert ticks(app, "2026-10-24T12:00Z", 1) == [
        "Sat 2026-10-24 14:00:00+02:00  2026-10-24T12:00:00Z"
    ]


def test_another_zone_than_the_entrys_is_told():
    lines = told(shop("@daily", timezone="Asia/Tokyo"), "-n", "1", "--timezone", "UTC")
    assert "  zone      Asia/Tokyo, shown in UTC" in lines


REMARKS = [
    (
        "30 2 * * *",
        {},
        "2026-03-29",
        [
            (
                "Sun 2026-03-29 03:00:00+02:00  2026-03-29T01:00:00Z  "
                "(shifted: 02:30 does not exist)"
            ),
            "Mon 2026-03-30 02:30:00+02:00  2026-03-30T00:30:00Z",
        ],
    ),
    (
        crontab(minute=30, hour=2),
        {},
        "2026-03-29",
        [
            (
                "Sun 2026-03-29 03:30:00+02:00  2026-03-29T01:30:00Z  "
                "(shifted: 02:30 does not exist)"
            ),
            "Mon 2026-03-30 02:30:00+02:00  2026-03-30T00:30:00Z",
        ],
    ),
    (
        crontab(minute="15,45", hour=2),
        {"dst": "real"},
        "2026-03-29",
        [
            (
                "Sun 2026-03-29 03:00:00+02:00  2026-03-29T01:00:00Z  "
                "(shifted: 02:15, 02:45 do not exist)"
            ),
            "Mon 2026-03-30 02:15:00+02:00  2026-03-30T00:15:00Z",
        ],
    ),
    (
        "*/30 * * * *",
        {},
        "2026-03-29T01:30",
        [
            "Sun 2026-03-29 01:30:00+01:00  2026-03-29T00:30:00Z",
            (
                "Sun 2026-03-29 03:00:00+02:00  2026-03-29T01:00:00Z  "
                "(clocks have gone forward by 1 h)"
            ),
        ],
    ),
    (
        "0 * * * *",
        {},
        "2026-10-25T02:00",
        [
            "Sun 2026-10-25 02:00:00+02:00  2026-10-25T00:00:00Z  (first pass)",
            (
                "Sun 2026-10-25 02:00:00+01:00  2026-10-25T01:00:00Z  "
                "(second pass; clocks have gone back by 1 h)"
            ),
        ],
    ),
    (
        crontab(minute=0),
        {},
        "2026-10-25T02:00",
        [
            "Sun 2026-10-25 02:00:00+02:00  2026-10-25T00:00:00Z  (first pass)",
            ("Sun 2026-10-25 03:00:00+01:00  2026-10-25T02:00:00Z  (clocks have gone back by 1 h)"),
        ],
    ),
    (
        "0 2 * * *",
        {"timezone": "Australia/Lord_Howe"},
        "2026-10-04",
        [
            (
                "Sun 2026-10-04 02:30:00+11:00  2026-10-03T15:30:00Z  "
                "(shifted: 02:00 does not exist)"
            ),
            "Mon 2026-10-05 02:00:00+11:00  2026-10-04T15:00:00Z",
        ],
    ),
]


@pytest.mark.parametrize(("written", "policies", "begin", "expected"), REMARKS)
def test_what_clocks_do_is_remarked(written, policies, begin, expected):
    assert ticks(shop(written, **policies), begin, len(expected)) == expected


def test_what_the_entrys_clock_leaves_out_is_no_remark_on_another_clock():
    in_utc = ticks(shop("30 2 * * *"), "2026-03-29", 1, "--timezone", "UTC")
    assert in_utc == ["Sun 2026-03-29 01:00:00+00:00"]


def test_with_jitter_it_is_told_when_each_tick_is_due():
    app = shop("@daily", "UTC", jitter=7200)
    assert "  policies  jitter below 2 h" in told(app)
    assert ticks(app, "2026-10-24", 2) == [
        "Sat 2026-10-24 00:00:00+00:00  due 01:29:33.131688",
        "Sun 2026-10-25 00:00:00+00:00  due 01:44:03.843937",
    ]


def test_a_due_time_on_the_next_day_has_its_date(monkeypatch):
    monkeypatch.setattr(Slot, "due_at", lambda _, tick: tick + 7200 * 10**6)
    (line,) = ticks(shop("59 23 * * *", "UTC", jitter=60), "2026-10-24", 1)
    assert line.endswith("  due Sun 2026-10-25 01:59:00+00:00")


@pytest.mark.parametrize(
    ("policies", "line"),
    [
        ({"start": "2026-10-24T00:00"}, "start 2026-10-24T00:00:00+02:00"),
        ({"end": "2026-10-24T00:00Z"}, "end 2026-10-24T02:00:00+02:00"),
        ({"phase": 30}, "phase 30 seconds"),
        ({"max_runs": 3}, "max_runs 3"),
        ({"run_on_start": True}, "run_on_start, so that it is also sent once when it is first"),
        ({"enabled": False, "jitter": 5}, "disabled, so that nothing is sent; jitter below 5 s"),
    ],
)
def test_policies_that_move_ticks_are_told(policies, line):
    lines = told(shop(timedelta(hours=1), **policies), "--from", "2026-10-20", "-n", "1")
    assert any(each.startswith(f"  policies  {line}") for each in lines), lines


@pytest.mark.parametrize(
    ("written", "policies", "end"),
    [
        ("@daily", {"end": "2026-10-25T12:00"}, "no more after that"),
        ("@daily", {"end": "2020-01-01T00:00"}, "no more: the last one was 2019-12-31T23:00:00Z"),
        (once("2020-01-01T00:00Z"), {}, "no more: the last one was 2020-01-01T00:00:00Z"),
    ],
)
def test_an_entry_that_has_ended_says_so(written, policies, end):
    assert told(shop(written, **policies), "--from", "2026-10-24")[-1] == f"  {end}"


class Secret(schedule):
    """A schedule that must not be called."""

    def is_due(self, last_run_at):
        raise AssertionError("it was asked")

    remaining_estimate = is_due


def test_a_schedule_that_alone_knows_when_it_is_due_is_not_asked():
    assert told(shop(Secret(30))) == [
        "job",
        "  task      proj.job",
        "  schedule  Secret",
        "  meaning   Only Secret knows when it is due",
        "  zone      Europe/Berlin",
        "  beat asks it when it runs: nobody can tell before",
    ]


class Broken:
    """A timetable of a user's own."""

    fingerprint = "broken"

    def next_after(self, moment):
        raise LookupError("no calendar")

    latest_until = count_between = next_after


def test_a_users_own_timetable_that_fails_stops_no_other():
    broken = {"task": "proj.a", "schedule": Broken()}
    app = shop(entries={"broken": broken, "job": {"task": "proj.a", "schedule": "@daily"}})
    lines = told(app)
    assert "  schedule  Broken" in lines
    assert "  its timetable failed: LookupError('no calendar')" in lines
    assert sum("Z" in line for line in lines) == 10


SEVERAL = {
    name: {"task": "proj.a", "schedule": "@daily"}
    for name in ("report-a", "report-b", "cleanup", "odd[1]")
}


def names(lines):
    return [line for line in lines if line and line[0] != " "]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], ["report-a", "report-b", "cleanup", "odd[1]"]),
        (["cleanup"], ["cleanup"]),
        (["report-*"], ["report-a", "report-b"]),
        (["report-b", "report-?"], ["report-b", "report-a"]),
        (["odd[1]"], ["odd[1]"]),
        (["*[ab]", "cl*"], ["report-a", "report-b", "cleanup"]),
    ],
)
def test_entries_are_chosen_by_name_or_pattern(patterns, expected):
    assert names(told(shop(entries=SEVERAL), "-n", "1", *patterns)) == expected


def test_an_unknown_name_is_an_error_of_usage_with_a_suggestion():
    result = run_redlock("next", "reprot-a", app=shop(entries=SEVERAL))
    assert result.exit_code == 2
    assert "there is no entry 'reprot-a': did you mean 'report-a'?" in result.stderr
    assert result.stdout == ""


def test_bad_entries_are_told_last_and_by_the_exit_code():
    entries = {"bad": {"task": "proj.a", "schedule": "99 * * * *"}, **SEVERAL}
    lines = told(shop(entries=entries), "-n", "1", code=1)
    assert lines[-2] == "bad"
    assert lines[-1].startswith("  left out: cron expression '99 * * * *'")
    assert told(shop(entries=entries), "-n", "1", "cleanup")[0] == "cleanup"


def test_a_bad_setting_is_told_in_one_line():
    app = shop("@daily")
    app.conf.redlock_beat_lease = -1
    result = run_redlock("next", app=app)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: redlock_beat_lease = -1")


def test_an_empty_schedule_says_so():
    assert told(shop(entries={})) == ["There are no entries."]


def test_without_the_extra_it_is_said_once_what_to_install(monkeypatch):
    monkeypatch.setattr(plain_cron, "find_spec", lambda _: None)
    lines = told(shop(entries=SEVERAL), "-n", "1")
    assert "".join(lines).count("pip install 'celery-redlock-beat[explain]'") == 1
    assert not any("meaning" in line for line in lines)
    assert not any("pip install" in line for line in told(shop(30)))


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--from", "soon"], "'soon': write it as 2030-01-31T12:00 or 2030-01-31"),
        (["--timezone", "Europe/Berln"], "did you mean 'Europe/Berlin'?"),
        (["-n", "0"], "1<=x<=1000"),
    ],
)
def test_bad_options_are_errors_of_usage(options, hint):
    result = run_redlock("next", *options, app=shop("@daily"))
    assert result.exit_code == 2
    assert hint in result.stderr


def test_what_a_handler_could_not_add_is_told():
    app = Celery("shop", broker="redis://localhost:6379/0", set_as_current=False)

    @app.on_after_configure.connect
    def broken(**_):
        raise ValueError("no database")

    result = run_redlock("next", "-n", "1", app=app)
    assert result.exit_code == 1
    assert "ValueError('no database')" in result.stderr
    assert "celery.backend_cleanup" not in result.stderr
