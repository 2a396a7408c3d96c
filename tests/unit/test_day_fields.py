from __future__ import annotations

import pytest
from celery.schedules import crontab, schedule

from celery_redlock_beat.timetables.cron import cron
from celery_redlock_beat.timetables.day_fields import both_day_fields_restricted, doubt_about_days

RESTRICTED = [
    "0 0 13 * FRI",
    "0 0 0 13 * FRI",
    "0 0 1-31 * MON",
    "H H H * H",
    "0 0 L * 1-5",
    cron("0 0 13 * fri"),
    crontab(0, 0, "fri", "13"),
    crontab(0, 0, "mon", "*/2"),
]
UNRESTRICTED = [
    "0 0 13 * *",
    "0 0 * * FRI",
    "0 0 */2 * MON",
    "0 0 1 * */2",
    "@monthly",
    "@every 90s",
    cron("@weekly"),
    crontab(0, 0, "fri"),
    crontab(0, 0, day_of_month=13),
    crontab(0, 0, "mon", "1-31"),
    crontab(),
]


@pytest.mark.parametrize("spec", RESTRICTED)
def test_both_day_fields_at_once_are_noticed(spec):
    assert both_day_fields_restricted(spec) is True


@pytest.mark.parametrize("spec", UNRESTRICTED)
def test_one_day_field_alone_is_no_doubt(spec):
    assert both_day_fields_restricted(spec) is False
    assert doubt_about_days(spec) is None


@pytest.mark.parametrize("spec", [30, None, schedule(30), "61 0 13 * FRI", "FREQ=DAILY", "", "@x"])
def test_what_is_neither_is_no_doubt(spec):
    assert doubt_about_days(spec) is None


def test_a_cron_string_is_told_that_either_field_will_do():
    told = doubt_about_days(cron("0 0 13 * FRI"))
    assert told == doubt_about_days("0 0 13 * FRI")
    assert told.startswith("'0 0 13 * FRI' is a cron string, and due on days that are in either")
    assert "write it as a crontab" in told


def test_a_crontab_is_told_that_both_fields_must_match():
    told = doubt_about_days(crontab(0, 0, "fri", "13"))
    assert told.startswith("<crontab: 0 0 13 * fri (m/h/dM/MY/d)> is due only on days")
    assert "write it as a cron string" in told
