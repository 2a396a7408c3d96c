"""What a row of django-celery-beat says, as fields of an entry."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
from celery.schedules import crontab, solar

from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.ticks import to_micros
from celery_redlock_beat.timetables import once
from support.django_here import new_app, set_up

set_up()

from django_celery_beat import models  # noqa: E402 - once Django is set up

from celery_redlock_beat.contrib.django.begins import begins  # noqa: E402
from celery_redlock_beat.contrib.django.rows import document_of, fields_of  # noqa: E402

SAVED = dt.datetime(2026, 3, 1, 12, 0, 30, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
APP = new_app()


def row(**columns):
    kinds = ("interval", "crontab", "solar", "clocked")
    if not any(kind in columns for kind in kinds):
        columns["interval"] = models.IntervalSchedule(every=1, period="hours")
    return models.PeriodicTask(
        **{"name": "a row", "task": "proj.noop", "date_changed": SAVED, **columns}
    )


def fields(told, *, zones=True):
    return fields_of(told, document_of(told, APP, zones=zones))


def daily(hour=3, zone="Europe/Berlin"):
    return models.CrontabSchedule(minute="30", hour=str(hour), timezone=ZoneInfo(zone))


def clocked(at):
    return models.ClockedSchedule(clocked_time=at)


@pytest.mark.parametrize(
    ("every", "period", "seconds"),
    [(90, "seconds", 90), (2, "days", 172_800), (1500, "microseconds", 0.0015)],
)
def test_an_interval_is_its_length(every, period, seconds):
    told = row(interval=models.IntervalSchedule(every=every, period=period))
    assert fields(told)["schedule"] == dt.timedelta(seconds=seconds)


def test_a_crontab_is_told_in_the_zone_of_its_row():
    told = fields(row(crontab=daily()))
    assert told["schedule"] == crontab(minute="30", hour="3")
    assert told["timezone"] == "Europe/Berlin"


def test_a_crontab_is_told_in_the_zone_of_the_app_where_rows_are_not_to_have_any():
    assert "timezone" not in fields(row(crontab=daily()), zones=False)


def test_a_solar_event_has_its_place():
    told = fields(row(solar=models.SolarSchedule(event="sunset", latitude=52.5, longitude=13.4)))
    assert told["schedule"] == solar("sunset", 52.5, 13.4)


def test_what_the_task_is_called_with_comes_from_json():
    told = fields(
        row(
            args='[1, "two"]',
            kwargs='{"at": "noon"}',
            queue="fast",
            exchange="x",
            routing_key="r",
            priority=3,
            headers='{"tenant": 7}',
            expire_seconds=60,
        )
    )
    assert told["args"] == [1, "two"]
    assert told["kwargs"] == {"at": "noon"}
    assert told["options"] == {
        "queue": "fast",
        "exchange": "x",
        "routing_key": "r",
        "priority": 3,
        "headers": {"tenant": 7},
        "expires": 60,
    }


@pytest.mark.parametrize("nothing", ["", "null", None])
def test_nothing_said_of_arguments_is_nothing(nothing):
    told = fields(row(args=nothing, kwargs=nothing, headers=nothing, queue=""))
    assert not {"args", "kwargs", "options"} & told.keys()


def test_expires_ends_the_entry_and_its_messages():
    end = SAVED + HOUR
    told = fields(row(expires=end))
    assert told["options"]["expires"] == end
    assert dt.datetime.fromisoformat(told["end"]) == end - dt.timedelta(microseconds=1)


def test_a_naive_time_of_the_database_is_in_utc():
    naive = dt.datetime(2026, 5, 1, 10)
    told = fields(row(start_time=naive))
    assert dt.datetime.fromisoformat(told["start"]) == naive.replace(tzinfo=dt.UTC)
    told = fields(row(clocked=clocked(naive), one_off=True))
    assert told["schedule"].at == naive.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"args": "["}, "its 'args' are no JSON"),
        ({"args": "{}"}, "its 'args' must be a list in JSON"),
        ({"kwargs": "[1]"}, "its 'kwargs' must be an object in JSON"),
        ({"headers": "nope"}, "its 'headers' are no JSON"),
        ({"interval": None}, "it has no schedule"),
        ({"interval": None, "crontab_id": 987}, "it has no schedule"),
        ({"interval": models.IntervalSchedule(every=0, period="days")}, "give it 1 or more"),
        ({"interval": models.IntervalSchedule(every=1, period="ages")}, "its interval is 1 'ages'"),
        ({"interval": models.IntervalSchedule(every=10**9, period="days")}, "its interval is"),
        ({"crontab": models.CrontabSchedule(hour="25")}, "crontab.hour = '25' is not valid"),
        ({"solar": models.SolarSchedule(event="moonrise", latitude=1, longitude=1)}, "moonrise"),
        ({"solar": models.SolarSchedule(event="sunset", latitude=91, longitude=1)}, "lat must be"),
        ({"task": ""}, "its 'task' must be the name of a task"),
    ],
)
def test_a_bad_row_is_told_with_its_column(columns, told):
    with pytest.raises(EntryError, match="entry 'a row': ") as caught:
        fields(row(**columns))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "at"),
    [
        ({}, SAVED + HOUR),
        ({"last_run_at": SAVED + 5 * HOUR}, SAVED + 6 * HOUR),
        ({"start_time": SAVED + 2 * HOUR}, SAVED + 2 * HOUR),
        ({"start_time": SAVED - 2 * HOUR}, SAVED),
        ({"crontab": daily(13, "UTC")}, SAVED.replace(hour=13, minute=30, second=0)),
        (
            {"crontab": daily(13, "UTC"), "start_time": SAVED + 24 * HOUR},
            SAVED.replace(day=2, hour=13, minute=30, second=0),
        ),
        ({"clocked": clocked(SAVED + HOUR)}, SAVED + HOUR),
        ({"clocked": clocked(SAVED - HOUR)}, SAVED),
        ({"clocked": clocked(SAVED + HOUR), "start_time": SAVED + 2 * HOUR}, SAVED + 2 * HOUR),
    ],
)
def test_a_row_that_runs_once_is_due_at_one_instant(columns, at):
    told = fields(row(one_off=True, **columns))
    assert told["schedule"] == once(at)
    assert not {"start", "timezone"} & told.keys()


def test_a_clocked_row_runs_once_also_where_nobody_said_so():
    assert fields(row(clocked=clocked(SAVED + HOUR)))["schedule"] == once(SAVED + HOUR)


def test_a_crontab_that_never_fires_has_no_only_run():
    never = models.CrontabSchedule(
        minute="0", hour="0", day_of_month="30", month_of_year="2", timezone=ZoneInfo("UTC")
    )
    with pytest.raises(ConfigurationError, match="never fires"):
        fields(row(crontab=never, one_off=True))


class TestBeginning:
    def test_a_row_begins_at_its_last_run(self):
        assert begins(row(last_run_at=SAVED), None) == SAVED

    def test_one_that_has_never_run_begins_when_it_is_known(self):
        assert begins(row(), None) is None

    def test_an_interval_with_a_start_begins_one_period_before(self):
        assert begins(row(start_time=SAVED), None) == SAVED - HOUR

    def test_a_crontab_with_a_start_begins_right_before(self):
        before = SAVED - dt.timedelta(microseconds=1)
        assert begins(row(crontab=daily(), start_time=SAVED), None) == before

    def test_one_that_runs_once_begins_right_before_that(self):
        before = SAVED - dt.timedelta(microseconds=1)
        assert begins(row(one_off=True, last_run_at=SAVED - HOUR), to_micros(SAVED)) == before
