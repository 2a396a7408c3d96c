"""``celery redlock explain``: what an expression means, without an app."""

from __future__ import annotations

import pytest
from celery import Celery

from celery_redlock_beat.diagnostics.schedules import plain_cron
from support.command_line import run_redlock

FROM = ("--from", "2026-10-24")


def explain(*words, app=None):
    return run_redlock("explain", *words, app=app)


def lines(*words, app=None):
    result = explain(*words, *FROM, app=app)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_cron_string_is_read_and_its_ticks_are_shown():
    assert lines("30 2 * * MON-FRI", "-n", "2") == [
        "30 2 * * MON-FRI",
        "  meaning   At 02:30, on Monday through Friday",
        "  zone      UTC",
        "  Mon 2026-10-26 02:30:00+00:00",
        "  Tue 2026-10-27 02:30:00+00:00",
    ]


def test_five_ticks_are_shown_unless_said_otherwise():
    assert sum("+00:00" in line for line in lines("* * * * *")) == 5


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("*/30 * * * * *", "meaning   Every 30 seconds"),
        ("@daily", "fields    0 0 * * *"),
        ("@every 90s", "meaning   Every 90 seconds, at whole multiples since"),
        ("FREQ=DAILY;BYHOUR=9", "meaning   Every day, at 09:00"),
    ],
)
def test_every_kind_of_text_is_explained(expression, told):
    assert any(told in line for line in lines(expression))


def test_an_h_is_what_the_name_of_the_entry_chooses():
    result = explain("H 3 * * *")
    assert result.exit_code == 1
    assert "say it with --name" in result.stderr
    told = lines("H 3 * * *", "--name", "report")
    assert told[1] == "  fields    29 3 * * *"
    assert lines("H 3 * * *", "--name", "other")[1] != told[1]


def test_the_zone_is_the_one_asked_for_or_that_of_the_app_or_utc():
    app = Celery("shop", set_as_current=False, broker="redis://127.0.0.1:1/0")
    app.conf.timezone = "Asia/Tokyo"
    assert "  zone      Asia/Tokyo" in lines("@daily", app=app)
    in_berlin = lines("@daily", "-n", "2", "--timezone", "Europe/Berlin", app=app)
    assert in_berlin[-2:] == [
        "  Sat 2026-10-24 00:00:00+02:00  2026-10-23T22:00:00Z",
        "  Sun 2026-10-25 00:00:00+02:00  2026-10-24T22:00:00Z",
    ]


def test_a_rule_with_a_zone_of_its_own_keeps_it_and_is_shown_in_the_one_asked_for():
    rule = "DTSTART;TZID=America/New_York:20260101T090000 RRULE:FREQ=DAILY"
    assert "  zone      America/New_York" in lines(rule)
    told = lines(rule, "-n", "1", "--timezone", "UTC")
    assert "  zone      America/New_York, shown in UTC" in told
    assert told[-1] == "  Sat 2026-10-24 13:00:00+00:00"


def test_where_both_day_fields_are_restricted_either_suffices_and_that_is_warned_of():
    told = lines("0 0 13 * FRI", "-n", "1")
    assert "  meaning   At 00:00, on day 13 of the month, and also on Friday" in told
    assert told[-1].startswith("  ! '0 0 13 * FRI' is a cron string, and due on days that are in")
    assert not any("!" in line for line in lines("0 0 13 * *"))


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("99 * * * *", "the minute field '99' is not valid"),
        ("* * *", "it has 3 fields"),
        ("@evry 5m", "did you mean '@every'?"),
        ("FREQ=DALY", "did you mean DAILY?"),
        ("", "it has 0 fields"),
    ],
)
def test_what_is_no_schedule_is_told_in_one_line(expression, told):
    result = explain(expression)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert told in line
    assert result.stdout == ""


def test_several_words_are_told_to_be_quoted():
    for words in (["*", "*", "*", "*", "*"], ["README.md", "docs", "@every", "90s"]):
        result = explain(*words)
        assert result.exit_code == 2
        assert f"these are {len(words)} words" in result.stderr
        assert "quote it, as in celery redlock explain '*/5" in result.stderr


def test_the_end_of_a_rule_is_told():
    told = lines("DTSTART:20261020T000000 RRULE:FREQ=DAILY;COUNT=5")
    assert told[-2:] == ["  Sat 2026-10-24 00:00:00+00:00", "  no more after that"]
    assert lines("RDATE:20260101T000000Z")[-1] == "  no more: the last one was 2026-01-01T00:00:00Z"


def test_without_the_extra_ticks_are_shown_and_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(plain_cron, "find_spec", lambda _: None)
    told = lines("0 0 * * *", "-n", "1")
    assert told == [
        "0 0 * * *",
        "  zone      UTC",
        "  Sat 2026-10-24 00:00:00+00:00",
        "",
        "To read cron schedules in words: pip install 'celery-redlock-beat[explain]'",
    ]
    assert "pip install" not in "".join(lines("@every 90s"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--from", "soon"], "'soon': write it as 2030-01-31T12:00 or 2030-01-31"),
        (["--from", "1815-06-18"], "it must lie between 1970 and 2255"),
        (["--timezone", "Europe/Berln"], "did you mean 'Europe/Berlin'?"),
        (["-n", "0"], "1<=x<=1000"),
        (["-n", "many"], "'many' is not a valid integer range"),
    ],
)
def test_bad_options_are_errors_of_usage(options, told):
    result = explain("* * * * *", *options)
    assert result.exit_code == 2
    assert told in result.stderr
