"""What RedBeat stores, or its documentation says, is read; what cannot be is kept with a reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from celery_redlock_beat.documents import entries
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.predecessors.redbeat import coding
from celery_redlock_beat.predecessors.redbeat.keys import Raw
from celery_redlock_beat.predecessors.redbeat.moving import move_of
from celery_redlock_beat.predecessors.redbeat.records import Record, record_of, timetable
from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables.zones import UTC_ZONE, zone_of

BERLIN = zone_of("Europe/Berlin")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVERY = {"__type__": "interval", "every": 5, "relative": False}
RULE = {"__type__": "rrule", "freq": "DAILY", "dtstart": 1451480362}


def raw(spec=EVERY, meta=None, **more):
    given = {"task": "proj.it", "schedule": spec, **more}
    return Raw(
        "it",
        json.dumps({key: value for key, value in given.items() if value is not ...}).encode(),
        None if meta is None else json.dumps(meta).encode(),
        score=1.0,
        is_planned=True,
    )


def known(spec=EVERY, meta=None, zone=UTC_ZONE, **more):
    return record_of(raw(spec, meta, **more), zone, NOW)


def read(spec=EVERY, meta=None, zone=UTC_ZONE, **more):
    record = known(spec, meta, zone, **more)
    assert record.problem == ""
    assert entries.fields_of("it", record.document)
    return record


def problem(spec=EVERY, meta=None, **more):
    record = known(spec, meta, **more)
    assert record.document == {}
    assert record.problem
    return record.problem


def at(year, *rest, **more):
    names = ("month", "day", "hour", "minute", "second", "microsecond")
    parts = dict(zip(names, (*rest, 0, 0, 0), strict=False))
    return {"__type__": "datetime", "year": year, **parts, **more}


def ran(when, runs=1):
    return {"last_run_at": when, "total_run_count": runs}


def next_of(record, zone=UTC_ZONE):
    last = to_micros(record.last_run_at or NOW)
    return to_datetime(timetable("it", record.document, zone, record.last_run_at).next_after(last))


class TestDefinition:
    def test_only_task_and_schedule_must_be_there(self):
        document = read().document
        assert document == {
            "format": 1,
            "task": "proj.it",
            "schedule": {"kind": "interval", "every": 5},
        }

    def test_null_is_nothing(self):
        assert read(args=None, kwargs=None, options=None).document == read().document

    def test_what_a_task_is_called_with_is_kept(self):
        document = read(args=[1, "two"], kwargs={"a": [None]}, options={"queue": "q"}).document
        assert document["args"] == [1, "two"]
        assert document["kwargs"] == {"a": [None]}
        assert document["options"] == {"queue": "q"}

    def test_a_datetime_to_be_called_with_is_one(self):
        document = read(kwargs={"since": at(2026, 1, 2, 3, timezone="Europe/Berlin")}).document
        fields = entries.fields_of("it", document)
        assert fields["kwargs"]["since"] == datetime(2026, 1, 2, 2, tzinfo=UTC)

    def test_a_schedule_to_be_called_with_is_refused(self):
        assert "no message can carry a schedule" in problem(args=[[EVERY]])

    @pytest.mark.parametrize(("told", "enabled"), [(..., True), (True, True), (False, False)])
    def test_it_may_be_disabled(self, told, enabled):
        record = read(enabled=told)
        assert record.enabled is enabled
        assert record.document.get("enabled", True) is enabled

    def test_it_is_kept_under_its_key(self):
        (warning, _) = read(name="interval example").warnings
        assert "'interval example'" in warning
        assert "that of its key" in warning

    def test_what_nobody_knows_is_left_out_and_told(self):
        assert "left out of it: 'extra'" in read(extra=1).warnings

    @pytest.mark.parametrize(
        ("more", "told"),
        [
            ({"task": ...}, "it has no 'task'"),
            ({"task": 3}, "must be the name of a task"),
            ({"args": {"a": 1}}, "'args' must be a list"),
            ({"kwargs": [1]}, "'kwargs' must be"),
            ({"spec": ...}, "it has no 'schedule'"),
            ({"spec": None}, "it has no 'schedule'"),
            ({"spec": "soon"}, "its schedule is a text"),
            ({"spec": {"every": 5}}, "which RedBeat does not have"),
            ({"spec": {"__type__": "solar"}}, "which RedBeat does not have"),
        ],
    )
    def test_what_is_wrong_is_told(self, more, told):
        assert told in problem(**more)

    @pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"null", b"[" * 100_000])
    def test_what_is_no_json_is_kept_with_its_reason(self, text):
        record = record_of(Raw("it", text, is_planned=True), UTC_ZONE, NOW)
        assert record.problem.startswith("its definition ")


class TestMeta:
    def test_it_may_be_missing(self):
        record = read()
        assert (record.last_run_at, record.total_run_count) == (None, 0)
        assert "would have sent it at once" in record.warnings[-1]

    def test_it_may_lack_the_count(self):
        record = read(meta={"last_run_at": at(2026, 5, 1)})
        assert record.last_run_at == datetime(2026, 5, 1, tzinfo=UTC)
        assert record.total_run_count == 0

    @pytest.mark.parametrize(
        "meta", [{"last_run_at": None}, {}, {"last_run_at": None, "total_run_count": 0}]
    )
    def test_one_that_never_ran_has_no_last_run(self, meta):
        assert read(meta=meta).last_run_at is None

    @pytest.mark.parametrize(
        ("zone", "hour"),
        [
            ("UTC", 12),
            ("Europe/Berlin", 10),
            (7200, 10),
            (7200.0, 10),
            (-12600.0, 15.5),
            (..., 12),
        ],
    )
    def test_its_zone_is_a_name_or_an_offset_in_seconds(self, zone, hour):
        told = at(2026, 5, 1, 12) | ({} if zone is ... else {"timezone": zone})
        expected = datetime(2026, 5, 1, tzinfo=UTC) + timedelta(hours=hour)
        assert read(meta=ran(told)).last_run_at == expected

    @pytest.mark.parametrize(
        "told",
        [at(2026, 13, 1), at(2026, 5, 1, timezone="Mars/Phobos"), "2026-05-01", 1777593600, {}],
    )
    def test_one_that_cannot_be_read_is_told_and_stops_nothing(self, told):
        record = read(meta=ran(told))
        assert record.last_run_at is None
        assert "when it ran last is not known" in record.warnings[0]

    def test_a_time_that_was_shown_twice_is_the_later_one_unless_that_is_to_come(self):
        told = coding.moment("x", at(2026, 10, 25, 2, 30, timezone="Europe/Berlin"))
        first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
        assert coding.settled(told, first + timedelta(minutes=59)) == first
        assert coding.settled(told, first + timedelta(hours=1)) == first + timedelta(hours=1)

    def test_a_run_that_is_to_come_is_told(self):
        (warning,) = read(meta=ran(at(2026, 6, 2))).warnings
        assert "which is to come" in warning


class TestInterval:
    def test_relative_may_be_missing_which_redbeat_itself_does_not_bear(self):
        record = read({"__type__": "interval", "every": 5}, ran(at(2026, 6, 1)))
        assert record.document == read(EVERY, ran(at(2026, 6, 1))).document
        assert "RedBeat cannot read it without 'relative'" in record.warnings[0]

    def test_it_may_be_a_mere_number(self):
        assert read(5).document == read(EVERY).document
        told = read(3600, relative=True).document["schedule"]
        assert told == {"kind": "interval", "every": 3600, "relative": True}

    def test_it_goes_on_from_its_last_run_to_the_microsecond(self):
        last = at(2026, 6, 1, 11, 59, 58) | {"microsecond": 123456}
        record = read(EVERY | {"every": 90.5}, ran(last))
        assert next_of(record) - record.last_run_at == timedelta(seconds=90.5)
        assert record.warnings == ()

    def test_one_that_celery_cuts_short_is_told(self):
        spec = {"__type__": "interval", "every": 5400, "relative": True}
        record = read(spec, ran(at(2026, 6, 1, 11)))
        assert record.document["schedule"] == {"kind": "interval", "every": 3600, "relative": True}
        assert "1:30:00 down: it ran every 1:00:00" in record.warnings[0]

    @pytest.mark.parametrize("every", [0, -5, "5", None, True, [5], 1e300])
    def test_one_without_a_length_is_refused(self, every):
        assert "every" in problem(EVERY | {"every": every})

    def test_an_unknown_key_is_told(self):
        assert "unknown key 'seconds'" in problem(EVERY | {"seconds": 1})


class TestCrontab:
    def test_fields_that_are_missing_are_stars(self):
        spec = {"__type__": "crontab", "minute": 5, "day_of_week": "mon-fri"}
        record = read(spec, ran(at(2026, 5, 30)), BERLIN)
        told = {"kind": "crontab", "minute": 5, "day_of_week": "mon-fri"}
        assert record.document["schedule"] == read(spec).document["schedule"]
        assert told.items() <= record.document["schedule"].items()
        assert "that of the app is meant (Europe/Berlin)" in record.warnings[0]
        assert next_of(record, BERLIN) == datetime(2026, 5, 31, 22, 5, tzinfo=UTC)

    def test_a_field_may_be_a_list(self):
        spec = {"__type__": "crontab", "minute": [0, 30]}
        assert read(spec).document["schedule"]["minute"] == [0, 30]

    def test_the_brackets_of_its_documentation_cannot_be_read_by_redbeat_either(self):
        told = problem({"__type__": "crontab", "month_of_year": "[1-12]"})
        assert "schedule.month_of_year" in told
        assert "ranges (a-b)" in told

    @pytest.mark.parametrize(
        "more", [{"minute": None}, {"minute": 60}, {"second": 1}, {"day_of_month": "x"}]
    )
    def test_what_is_wrong_is_told(self, more):
        assert next(iter(more)) in problem({"__type__": "crontab", **more})


class TestRule:
    def test_a_number_of_a_weekday_may_have_been_lost(self):
        monday = {"__type__": "weekday", "wkday": 0}
        for freq, lost in ((0, True), (1, True), (2, False), (3, False)):
            told = read(RULE | {"freq": freq, "byweekday": [monday]}).warnings
            assert any("no number of a weekday" in each for each in told) is lost

    def test_a_number_that_is_there_counts(self):
        spec = RULE | {"freq": 1, "byweekday": {"__type__": "weekday", "wkday": 0, "n": 2}}
        record = read(spec)
        assert "BYDAY=2MO" in record.document["schedule"]["rule"]
        assert not any("number of a weekday" in each for each in record.warnings)
        assert "BYDAY=MO" in read(spec | {"freq": 2}).document["schedule"]["rule"]

    @pytest.mark.parametrize(
        ("minutes", "zone"),
        [
            (0, "UTC"),
            (60.0, "Etc/GMT-1"),
            (120, "Etc/GMT-2"),
            (-300, "Etc/GMT+5"),
            (330, "Asia/Kolkata"),
            (345, "Asia/Kathmandu"),
        ],
    )
    def test_its_offset_goes_on_for_ever(self, minutes, zone):
        record = read(RULE | {"dtstart_tz": minutes, "byhour": 9, "byminute": 0, "bysecond": 0})
        assert record.document["schedule"]["timezone"] == zone
        expected = datetime(2026, 6, 2, 9, tzinfo=UTC) - timedelta(minutes=float(minutes))
        assert (next_of(record) - expected) % timedelta(days=1) == timedelta(0)
        lost = any("an offset" in each for each in record.warnings)
        assert lost is bool(minutes)

    def test_an_offset_that_no_zone_has_for_ever_is_that_of_the_app_or_refused(self):
        spec = RULE | {"dtstart_tz": -210}
        record = record_of(raw(spec), zone_of("America/St_Johns"), NOW)
        assert record.document["schedule"]["timezone"] == "America/St_Johns"
        assert "is taken for the zone America/St_Johns" in record.warnings[0]
        assert "no zone has for ever" in problem(spec)

    def test_a_rule_without_a_start_may_do_without(self):
        record = read({"__type__": "rrule", "freq": "HOURLY", "byminute": 5, "bysecond": 0})
        assert next_of(record).minute == 5
        assert any("began it anew" in each for each in record.warnings)
        assert "counts from a start" in problem({"__type__": "rrule", "freq": 3, "interval": 2})

    @pytest.mark.parametrize(("count", "last"), [(3, 3), (30, 11)])
    def test_of_a_count_and_an_end_the_first_counts(self, count, last):
        start = 1780272000  # 2026-06-01T00:00:00Z
        spec = RULE | {"dtstart": start, "count": count, "until": start + 10 * 86400}
        record = read(spec)
        rule = record.document["schedule"]["rule"]
        assert ("COUNT" in rule) != ("UNTIL" in rule)
        table = timetable("it", record.document, UTC_ZONE)
        assert table.latest_until(to_micros(datetime(2027, 1, 1, tzinfo=UTC))) == to_micros(
            datetime(2026, 6, last, tzinfo=UTC)
        )

    def test_a_rule_that_is_over_stays_enabled(self):
        spec = RULE | {"count": 1}
        last = ran(at(2026, 1, 1))
        over = Raw("it", raw(spec).definition, json.dumps(last).encode(), score=-1.0)
        record = record_of(over, UTC_ZONE, NOW)
        assert record.document.get("enabled", True)
        assert record.warnings == ()

    def test_one_that_has_not_begun_would_not_have_been_sent_at_once(self):
        start = to_micros(NOW + timedelta(days=1)) // 1_000_000
        assert read(RULE | {"dtstart": start, "count": 1}).warnings == ()
        assert "sent it at once" in read(RULE | {"dtstart": start - 86500}).warnings[-1]

    @pytest.mark.parametrize(
        ("more", "told"),
        [
            ({"freq": "SOMETIMES"}, "freq"),
            ({"freq": 7}, "freq"),
            ({"freq": None}, "freq"),
            ({"byeaster": 0}, "byeaster"),
            ({"byweekday": 7}, "weekday"),
            ({"byweekday": "MO"}, "weekday"),
            ({"dtstart": "2026-01-01"}, "dtstart"),
            ({"dtstart": at(2026, 1, 1)}, "dtstart"),
            ({"dtstart_tz": 99999}, "dtstart"),
            ({"until": 1e300}, "until"),
            ({"interval": 0}, "INTERVAL"),
            ({"count": 1.5}, "count"),
            ({"byhour": ["9"]}, "byhour"),
            ({"bymonth": 13}, "BYMONTH"),
            ({"bymonths": 1}, "unknown key 'bymonths'"),
            ({"freq": 1, "bymonth": 2, "bymonthday": 30}, "never fires"),
        ],
    )
    def test_what_is_wrong_is_told(self, more, told):
        assert told in problem(RULE | more)


class TestMove:
    def move(self, *records, code=()):
        return move_of(records, set(code))

    def test_what_is_in_code_only_begins_here(self):
        here = Record("it", {"task": "old"}, NOW, is_static=True)
        move = self.move(here, Record("new", is_static=True), code=["it", "new"])
        assert (move.documents, move.in_code) == ({}, {"it": NOW})
        assert "never ran it" in move.left["new"]

    def test_a_broken_record_of_what_is_in_code_begins_all_the_same(self):
        record = Record("it", last_run_at=NOW, problem="broken")
        assert self.move(record, code=["it"]).in_code == {"it": NOW}

    def test_what_came_from_code_and_is_not_there_any_more_is_left(self):
        move = self.move(Record("it", {"task": "x"}, NOW, is_static=True))
        assert (move.documents, move.refused) == ({}, {})
        assert "which has it no more" in move.left["it"]

    def test_what_celery_adds_by_itself_is_not_stored(self):
        assert self.move(Record("celery.backend_cleanup", {"task": "x"})).documents == {}

    def test_all_else_is_stored_and_begins_after_its_last_run(self):
        move = self.move(Record("a", {"task": "x"}, NOW), Record("b", {"task": "y"}))
        assert move.documents.keys() == {"a", "b"}
        assert move.last_runs == {"a": NOW}

    def test_what_cannot_be_read_is_refused(self):
        assert self.move(Record("it", problem="broken")).refused == {"it": "broken"}


class TestWriting:
    def test_a_moment_is_told_in_its_zone(self):
        when = datetime(2026, 5, 1, 12, tzinfo=UTC).astimezone(BERLIN.tz)
        assert coding.written_moment(when)["timezone"] == "Europe/Berlin"
        assert coding.moment("x", coding.written_moment(when)) == when

    def test_where_a_name_would_be_ambiguous_it_is_an_offset(self):
        second = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
        told = coding.run_at(to_micros(second), BERLIN)
        assert (told["hour"], told["timezone"]) == (2, 3600.0)
        assert coding.moment("x", told) == second
        assert coding.run_at(to_micros(second) - 3_600_000_000, BERLIN)["timezone"] == BERLIN.name

    def test_what_json_does_not_have_is_refused(self):
        with pytest.raises(ConfigurationError, match="bytes"):
            coding.written_argument([{"a": b"x"}])
