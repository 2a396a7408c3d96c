from __future__ import annotations

import copy
import pickle
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from dateutil import rrule as du
from dateutil import tz

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Count, to_datetime
from celery_redlock_beat.timetables.rule import Rule, is_rule_text, rrule, rule_of
from celery_redlock_beat.timetables.zones import zone_of
from support.windows import at, day_of, shown

BERLIN = "Europe/Berlin"
NEW_YORK = "America/New_York"


def first(table, text="2026-01-01T00:00", number=3):
    """Return the local times of the first ticks after a local time."""
    return [shown(table, tick) for tick in islice(table.instants(at(text, table.zone) - 1), number)]


class TestReading:
    def test_the_parts_of_one_rule_are_enough(self):
        table = Rule("FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=0;BYSECOND=0", BERLIN)
        assert first(table) == ["2026-01-05T09:00", "2026-01-07T09:00", "2026-01-12T09:00"]

    @pytest.mark.parametrize(
        "text",
        [
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9",
            "rrule:freq=weekly;byday=we,mo;byhour=9",
            "FREQ=WEEKLY; BYHOUR=+9; BYDAY=MO,WE,MO; INTERVAL=1;",
            "BYSECOND=0;BYMINUTE=0;BYHOUR=9;BYDAY=MO,WE;WKST=SU;FREQ=WEEKLY",
            "DTSTART:19700101T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9 DTSTART:19700101T000000",
            "\n    DTSTART:19700101T000000\n\n    RRULE:FREQ=WEEKLY;\n      BYDAY=MO,WE;BYHOUR=9\n",
            "DTSTART:19700101T000000\r\nRRULE:FREQ=WEEKLY;BYDAY=M\r\n O,WE;BYHOUR=9\r\n",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9\nRRULE:FREQ=WEEKLY;BYHOUR=9;BYDAY=MO,WE",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;\n  DTSTART:19700101T000000\n",
        ],
    )
    def test_notation_makes_no_other_timetable(self, text):
        plain = Rule("FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9", BERLIN)
        assert Rule(text, BERLIN) == plain
        assert hash(Rule(text, BERLIN)) == hash(plain)
        assert Rule(text, BERLIN).fingerprint == (
            "rrule:DTSTART:19700101T000000 "
            f"RRULE:FREQ=WEEKLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0;BYDAY=MO,WE:{BERLIN}"
        )

    @pytest.mark.parametrize(
        "text",
        [
            "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9",
            "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=1",
            "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;UNTIL=20300101",
            "DTSTART:19700101T000001\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9",
            "DTSTART:19700101T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9;INTERVAL=2",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9\nEXDATE:20260105T090000",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9\nRDATE:20260106T090000",
        ],
    )
    def test_another_meaning_makes_another_fingerprint(self, text):
        plain = Rule("FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9", BERLIN)
        assert Rule(text, BERLIN).fingerprint != plain.fingerprint
        assert Rule(plain.text, NEW_YORK) != plain

    def test_the_one_spelling_reads_as_the_same(self):
        table = Rule(
            "DTSTART:20260101T090000\n"
            "RRULE:FREQ=WEEKLY;INTERVAL=2;WKST=SU;UNTIL=20270101T000000Z\n"
            "RRULE:FREQ=MONTHLY;BYDAY=-1FR,2MO;BYSETPOS=1;COUNT=3\n"
            "EXRULE:FREQ=YEARLY\n"
            "RDATE:20260303T070000,20261025T013000Z\n"
            "EXDATE:20260101T080000Z,20260129T090000\n"
            "EXDATE;VALUE=DATE:20260226",
            BERLIN,
        )
        assert Rule(table.text, BERLIN) == table
        assert "RDATE:20260303T070000,20261025T013000Z" in table.text

    def test_the_first_of_two_weekdays_matters_only_where_weeks_are_counted(self):
        start = "DTSTART:20260101T090000\nRRULE:FREQ=WEEKLY;BYDAY=SU,MO"
        assert Rule(f"{start};WKST=SU", BERLIN) == Rule(start, BERLIN)
        by_sunday, by_monday = (
            Rule(f"{start};INTERVAL=2;WKST=SU", "UTC"),
            Rule(f"{start};INTERVAL=2", "UTC"),
        )
        assert first(by_sunday, number=2) == ["2026-01-11T09:00", "2026-01-12T09:00"]
        assert first(by_monday, number=2) == ["2026-01-04T09:00", "2026-01-12T09:00"]

    @pytest.mark.parametrize(
        "text",
        ["RRULE:FREQ=DAILY", "FREQ=DAILY", " freq=daily", "DTSTART;TZID=X:1", "BYDAY=MO", "FRQ=1"],
    )
    def test_a_rule_is_told_by_its_first_word(self, text):
        assert is_rule_text(text)

    @pytest.mark.parametrize("text", ["0 9 * * *", "@daily", "", "H H * * MON-FRI", "RRULE", "=1"])
    def test_all_else_is_no_rule(self, text):
        assert not is_rule_text(text)


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("FREQ=DALY", "FREQ=DALY is not one of YEARLY, .* did you mean DAILY"),
            ("BYHOUR=9", "FREQ is missing"),
            ("FREQ=DAILY;BYDAY=XX", "BYDAY has 'XX'; allowed are MO, TU"),
            ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY has '0MO'"),
            ("FREQ=DAILY;BYHOUR=24", "BYHOUR has '24'; allowed are whole numbers from 0 to 23"),
            ("FREQ=DAILY;BYSECOND=60", "BYSECOND has '60'"),
            ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY has '0'; .* 1 to 31, or -31 to -1"),
            ("FREQ=MONTHLY;BYMONTHDAY=1,", "BYMONTHDAY has ''"),
            ("FREQ=DAILY;INTERVAL=0", "INTERVAL has '0'"),
            ("FREQ=DAILY;INTERVAL=-1", "INTERVAL has '-1'"),
            ("FREQ=DAILY;BYWEEKDAY=MO", "there is no part BYWEEKDAY; did you mean BYDAY"),
            ("FREQ=YEARLY;BYEASTER=1", "there is no part BYEASTER"),
            ("FREQ=DAILY;BYHOUR", "'BYHOUR' is no part of a rule; write NAME=VALUE"),
            ("FREQ=DAILY;BYHOUR=1;BYHOUR=2", "BYHOUR is there twice"),
            ("FREQ=DAILY;WKST=1", "WKST=1 is not one of MO"),
            ("FREQ=DAILY;UNTIL=20260230", "UNTIL has '20260230', which does not exist"),
            ("FREQ=DAILY;UNTIL=2026-02-03", "UNTIL has '2026-02-03'; write a date and time as"),
            ("DTSTART:20260101T000000\nRRULE:FREQ=DAILY;COUNT=100001", "COUNT has '100001'"),
            ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "COUNT and UNTIL exclude each other"),
            ("DTSTART:20260101T090000", "nothing recurs; add an RRULE"),
            ("", "nothing recurs"),
            ("DTSTRT:20260101T000000 RRULE:FREQ=DAILY", "DTSTRT is not one of .* mean DTSTART"),
            ("DTSTART:20260101,20260102 RRULE:FREQ=DAILY", "DTSTART has several dates"),
            ("DTSTART;TZID=UTC:20260101T000000Z RRULE:FREQ=DAILY", "both a TZID and the Z"),
            ("DTSTART:00010101 RRULE:FREQ=DAILY", "an end of the calendar"),
            ("RDATE;VALUE=PERIOD:20260101T000000/PT1H", "RDATE has 'VALUE=PERIOD'; allowed are"),
            (
                "DTSTART:20260101 RRULE:FREQ=DAILY DTSTART:20260101T000000Z RRULE:FREQ=DAILY",
                "in different zones; make an entry of each",
            ),
        ],
    )
    def test_what_cannot_be_read_is_refused_by_its_part(self, text, complaint):
        with pytest.raises(ConfigurationError, match=complaint) as caught:
            rrule(text)
        assert repr(text) in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY does not go with FREQ=WEEKLY; use"),
            ("FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY does not go with FREQ=DAILY"),
            ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO does not go with FREQ=MONTHLY"),
            ("FREQ=YEARLY;BYWEEKNO=1", "BYWEEKNO does not say on which days of the week; add"),
            ("FREQ=WEEKLY;BYDAY=1MO", "only with FREQ=MONTHLY or FREQ=YEARLY"),
            ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "without BYWEEKNO"),
            ("FREQ=MONTHLY;BYDAY=1MO,TU", "BYDAY mixes days with a number and days without"),
            ("FREQ=MONTHLY;BYDAY=6MO", "numbers go up to 5"),
            ("FREQ=SECONDLY;BYSETPOS=2", "FREQ=SECONDLY has 1 .* never fires"),
            ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3", "FREQ=WEEKLY has 2 .* never fires"),
            ("FREQ=SECONDLY\nEXRULE:FREQ=MINUTELY", "EXRULE does not go with FREQ=SECONDLY"),
        ],
    )
    def test_parts_that_do_not_go_together_are_refused(self, text, complaint):
        with pytest.raises(ConfigurationError, match=complaint):
            rrule(text)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("FREQ=DAILY;COUNT=3", "COUNT=3 counts from a start"),
            ("FREQ=DAILY;INTERVAL=2", "INTERVAL=2 counts from a start"),
            ("FREQ=HOURLY;INTERVAL=5", "INTERVAL=5 counts from a start"),
            ("FREQ=WEEKLY;BYHOUR=9", "on which day of the week"),
            ("FREQ=MONTHLY", "on which day of the month"),
            ("FREQ=YEARLY;BYMONTH=3", "on which day of the year"),
        ],
    )
    def test_what_needs_a_start_is_refused_without_one(self, text, problem):
        with pytest.raises(ConfigurationError, match=f"{problem}.*add a line DTSTART"):
            rrule(text)
        assert rrule(text, datetime(2026, 1, 1, 9)).timetable(zone_of(BERLIN))

    @pytest.mark.parametrize("interval", ["MINUTELY;INTERVAL=15", "HOURLY;INTERVAL=6"])
    def test_an_interval_that_fits_into_a_day_counts_from_midnight(self, interval):
        assert first(Rule(f"FREQ={interval}", BERLIN))[0] == "2026-01-01T00:00"

    @pytest.mark.parametrize(
        "text",
        [
            "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
            "FREQ=DAILY;UNTIL=19690101",
            "DTSTART:20260101T090000\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MONTHLY;BYMONTHDAY=1,"
            + ",".join(map(str, range(2, 32))),
            "DTSTART:20260106T090000\nRRULE:FREQ=HOURLY;INTERVAL=168;BYDAY=MO",
            "DTSTART:20260101T090000\nRRULE:FREQ=HOURLY;INTERVAL=24;BYHOUR=10",
            "DTSTART:20260101T090000\nRRULE:FREQ=MINUTELY;INTERVAL=1440;BYHOUR=10",
            "RDATE:20260101T090000\nEXDATE:20260101T090000",
        ],
    )
    def test_what_never_fires_is_refused(self, text):
        with pytest.raises(ConfigurationError, match=r"never fires|leaves out more than"):
            rrule(text)

    @pytest.mark.parametrize("zone", ["Europe/Berlni", "Mars/Base", ""])
    def test_an_unknown_zone_is_refused(self, zone):
        with pytest.raises(ConfigurationError, match="unknown time zone"):
            rrule("FREQ=DAILY", timezone=zone)
        with pytest.raises(ConfigurationError, match="unknown time zone"):
            rrule(f"DTSTART;TZID={zone}:20260101T090000\nRRULE:FREQ=DAILY")

    @pytest.mark.parametrize("rule", [5, None, ["FREQ=DAILY"]])
    def test_something_that_is_no_text_is_refused(self, rule):
        with pytest.raises(ConfigurationError, match="must be a string, not"):
            rrule(rule)


class TestChangesOfOffset:
    def test_a_time_in_a_gap_is_shifted_by_the_gap(self):
        assert day_of(Rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", BERLIN), "2026-03-29") == ["03:30"]

    def test_a_repeated_time_fires_in_the_first_pass(self):
        table = Rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30", BERLIN)
        assert day_of(table, "2026-10-25") == ["02:30"]
        assert table.next_after(at("2026-10-25T00:00")) == at("2026-10-25T00:30")

    def test_a_shifted_time_and_a_real_one_are_one_tick(self):
        table = Rule("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30", BERLIN)
        assert day_of(table, "2026-03-29") == ["03:00", "03:30"]

    def test_shifted_times_come_in_order(self):
        table = Rule("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=10,40\nRDATE:20260329T022000", BERLIN)
        assert day_of(table, "2026-03-29") == ["03:10", "03:20", "03:40"]

    def test_an_hourly_rule_rests_for_the_second_pass(self):
        table = Rule("FREQ=HOURLY", BERLIN)
        assert len(day_of(table, "2026-10-25")) == 24
        assert table.next_after(at("2026-10-25T00:00")) == at("2026-10-25T02:00")
        assert len(day_of(table, "2026-03-29")) == 23

    def test_a_gap_of_half_an_hour_shifts_by_half_an_hour(self):
        table = Rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=0,20,40", "Australia/Lord_Howe")
        assert day_of(table, "2026-10-04") == ["02:30", "02:40", "02:50"]

    def test_a_day_that_a_country_left_out_is_one_tick_with_the_next(self):
        table = Rule("FREQ=DAILY;BYHOUR=3", "Pacific/Apia")
        assert first(table, "2011-12-29T00:00") == [
            "2011-12-29T03:00", "2011-12-31T03:00", "2012-01-01T03:00"
        ]  # fmt: skip

    def test_only_ever_shifted_times_are_found_without_looking_far(self):
        table = Rule("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU;BYHOUR=2;BYMINUTE=30", BERLIN)
        assert first(table, number=2) == ["2026-03-29T03:30", "2027-03-28T03:30"]


class TestEnds:
    def test_an_until_in_utc_is_an_instant(self):
        table = Rule("FREQ=HOURLY;UNTIL=20260619T070000Z", BERLIN)
        assert table.latest_until(at("2026-07-01T00:00")) == at("2026-06-19T07:00")
        assert table.next_after(at("2026-06-19T07:00")) is None

    def test_an_until_in_utc_ends_also_what_a_gap_shifts(self):
        table = Rule("FREQ=MINUTELY;BYMINUTE=0,30;UNTIL=20260329T011500Z", BERLIN)
        assert table.latest_until(at("2026-04-01T00:00")) == at("2026-03-29T01:00")

    def test_an_until_in_the_second_pass_ends_after_all_of_the_first(self):
        table = Rule("FREQ=HOURLY;BYMINUTE=0,30;UNTIL=20261025T010000Z", BERLIN)
        assert table.latest_until(at("2026-11-01T00:00")) == at("2026-10-25T00:30")

    def test_another_until_is_local_even_beside_a_zone(self):
        text = "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;UNTIL=20260619T090000"
        table = rrule(text).timetable()
        assert table.latest_until(at("2026-07-01T00:00")) == at("2026-06-19T09:00", BERLIN)

    def test_an_until_without_a_time_is_the_whole_day(self):
        table = Rule("FREQ=DAILY;BYHOUR=9,17;UNTIL=20260619", BERLIN)
        assert table.latest_until(at("2026-07-01T00:00")) == at("2026-06-19T17:00", BERLIN)

    def test_an_until_at_the_end_of_the_calendar_is_none(self):
        assert Rule("FREQ=DAILY;UNTIL=99991231T235959Z", BERLIN) == Rule("FREQ=DAILY", BERLIN)

    def test_a_count_ends_the_rule(self):
        table = Rule("DTSTART:20260618T090000\nRRULE:FREQ=DAILY;COUNT=3", BERLIN)
        assert first(table, number=9) == [f"2026-06-{day}T09:00" for day in (18, 19, 20)]
        assert table.latest_until(at("2027-01-01T00:00")) == at("2026-06-20T09:00", BERLIN)
        assert table.latest_until(at("2026-06-01T00:00")) is None

    def test_a_start_counts_only_where_the_rule_matches_it(self):
        text = "DTSTART:20260618T090000\nRRULE:FREQ=WEEKLY;BYDAY=FR;COUNT=2"
        assert first(Rule(text, BERLIN)) == ["2026-06-19T09:00", "2026-06-26T09:00"]

    def test_the_years_at_both_ends_of_the_calendar_raise_nothing(self):
        for parts in ("SECONDLY", "DAILY;BYHOUR=2;BYMINUTE=30", "WEEKLY;BYDAY=SU"):
            for zone in (BERLIN, "UTC", "Pacific/Apia"):
                table = Rule(f"FREQ={parts}", zone)
                assert table.next_after(at("9999-12-31T00:00")) is None
                assert table.latest_until(at("9999-12-31T00:00")) is not None
                assert table.latest_until(at("0001-01-01T00:00")) is None
                assert table.next_after(at("0001-01-01T00:00")) >= at("1969-12-31T00:00")


class TestSets:
    def test_several_rules_and_dates_are_one_timetable(self):
        table = Rule(
            """
            DTSTART:20260601T090000
            RRULE:FREQ=WEEKLY;BYDAY=MO
            RRULE:FREQ=MONTHLY;BYMONTHDAY=2
            RDATE:20260603T120000,20260608T090000
            """,
            BERLIN,
        )
        assert first(table, number=5) == [
            "2026-06-01T09:00", "2026-06-02T09:00", "2026-06-03T12:00", "2026-06-08T09:00",
            "2026-06-15T09:00",
        ]  # fmt: skip

    def test_several_starts_hold_for_the_rules_that_follow_them(self):
        text = (
            "DTSTART:20260618T090000 RRULE:FREQ=DAILY;COUNT=1 "
            "DTSTART:20260619T100000 RRULE:FREQ=DAILY;COUNT=1"
        )
        table = Rule(text, BERLIN)
        assert first(table) == ["2026-06-18T09:00", "2026-06-19T10:00"]
        assert Rule(table.text, BERLIN) == table

    @pytest.mark.parametrize(
        "exdate",
        [
            "EXDATE:20260619T090000",
            "EXDATE:20260619T070000Z",
            "EXDATE;TZID=America/New_York:20260619T030000",
            "EXDATE;TZID=Europe/Berlin:20260619T090000",
            "EXDATE;VALUE=DATE:20260619",
            "EXRULE:FREQ=MONTHLY;BYMONTHDAY=19;BYHOUR=9",
        ],
    )
    def test_a_time_that_is_left_out_may_be_told_in_many_ways(self, exdate):
        table = Rule(f"FREQ=DAILY;BYHOUR=9\n{exdate}", BERLIN)
        assert first(table, "2026-06-18T00:00", 2) == ["2026-06-18T09:00", "2026-06-20T09:00"]

    def test_a_date_in_utc_may_be_in_the_second_pass(self):
        table = Rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30\nRDATE:20261025T013000Z", BERLIN)
        assert day_of(table, "2026-10-25") == ["02:30", "02:30"]
        left_out = Rule(f"{table.text} EXDATE:20261025T013000Z", BERLIN)
        assert day_of(left_out, "2026-10-25") == ["02:30"]

    def test_dates_alone_need_no_rule(self):
        table = Rule("RDATE;VALUE=DATE:20260619,20260101", BERLIN)
        assert first(table) == ["2026-01-01T00:00", "2026-06-19T00:00"]

    def test_a_whole_season_can_be_left_out(self):
        table = Rule("FREQ=HOURLY\nEXRULE:FREQ=HOURLY;BYMONTH=6,7,8", BERLIN)
        assert first(table, "2026-05-31T23:00", 2) == ["2026-05-31T23:00", "2026-09-01T00:00"]

    def test_a_rule_of_which_nothing_is_left_is_refused_beside_others(self):
        with pytest.raises(ConfigurationError, match="EXRULE leaves out more than 100000 times"):
            Rule("RDATE:20260619T090000\nRRULE:FREQ=HOURLY\nEXRULE:FREQ=HOURLY", BERLIN)

    def test_more_than_can_be_looked_at_is_an_error_and_no_silence(self):
        table = Rule("FREQ=MINUTELY\nEXRULE:FREQ=MINUTELY;BYMONTH=6,7,8", BERLIN)
        with pytest.raises(ConfigurationError, match="EXRULE leaves out more than 100000 times"):
            table.next_after(at("2026-06-01T00:00"))


class TestWalking:
    def test_a_start_long_ago_costs_nothing(self):
        table = Rule("DTSTART:19700101T000003\nRRULE:FREQ=SECONDLY;INTERVAL=8", "UTC")
        assert table.next_after(at("2026-06-19T00:00")) == at("2026-06-19T00:00:03")

    def test_an_interval_keeps_its_beat_from_the_start(self):
        table = Rule("DTSTART:20000101T090000\nRRULE:FREQ=DAILY;INTERVAL=3", "UTC")
        days = (at("2026-06-19T09:00") - at("2000-01-01T09:00")) // (86_400 * 10**6)
        ahead = timedelta(days=-days % 3)
        following = table.next_after(at("2026-06-19T08:00"))
        assert to_datetime(following) == datetime(2026, 6, 19, 9, tzinfo=UTC) + ahead

    @pytest.mark.parametrize("wkst", ["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
    def test_weeks_are_counted_from_their_first_day(self, wkst):
        for day in range(12, 19):
            text = f"DTSTART:201901{day}T090000\nRRULE:FREQ=WEEKLY;INTERVAL=3;WKST={wkst}"
            rule = du.rrulestr(f"{text};BYDAY=SU,WE")
            expected = rule.between(datetime(2026, 1, 1), datetime(2026, 4, 1))
            table = Rule(f"{text};BYDAY=SU,WE", "UTC")
            for tick in expected:
                assert table.next_after(at(tick.isoformat()) - 1) == at(tick.isoformat())
            assert table.next_after(at("2026-01-01T00:00")) == at(expected[0].isoformat())

    @pytest.mark.parametrize(
        "parts",
        [
            "DAILY;BYMONTHDAY=-1,-31",
            "DAILY;BYMONTH=2,3;BYMONTHDAY=1,-29",
            "DAILY;INTERVAL=2;BYDAY=SA,SU",
            "HOURLY;INTERVAL=12;BYYEARDAY=-1,-366,60",
            "MINUTELY;INTERVAL=720;BYYEARDAY=1,366;BYDAY=MO,TU,WE",
            "SECONDLY;INTERVAL=43200;BYMONTHDAY=-30,30;BYMONTH=2,4",
        ],
    )
    def test_the_days_left_out_are_those_of_dateutil(self, parts):
        text = f"DTSTART:20230101T093000\nRRULE:FREQ={parts}"
        expected = [each.isoformat()[:16] for each in islice(du.rrulestr(text), 40)]
        assert first(Rule(text, BERLIN), "2023-01-01T00:00", 40) == expected

    def test_a_rare_second_is_found_without_looking_at_all_others(self):
        table = Rule("FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=9;BYMINUTE=30", "UTC")
        assert table.next_after(at("2026-06-19T00:00")) == at("2028-02-29T09:30")

    def test_leap_days_eight_years_apart_are_found(self):
        table = Rule("DTSTART:18000101T000000\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "UTC")
        assert table.next_after(at("1896-03-01T00:00")) == at("1904-02-29T00:00")
        assert table.latest_until(at("1904-02-28T00:00")) == at("1896-02-29T00:00")

    def test_the_last_working_day_of_a_month_is_picked_by_its_place(self):
        table = Rule("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18", BERLIN)
        assert [each[:10] for each in first(table)] == ["2026-01-30", "2026-02-27", "2026-03-31"]

    def test_a_place_in_a_first_week_counts_from_the_start_as_in_dateutil(self):
        table = Rule("DTSTART:20260618T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,FR;BYSETPOS=1", BERLIN)
        assert first(table, number=2) == ["2026-06-19T09:00", "2026-06-22T09:00"]
        assert table.next_after(at("2026-06-19T12:00")) == at("2026-06-22T09:00", BERLIN)

    def test_counting_is_exact_up_to_ten_thousand_and_then_at_least(self):
        table = Rule("FREQ=MINUTELY", "UTC")
        start = at("2026-06-01T00:00")
        day = timedelta(days=1) // timedelta(microseconds=1)
        assert table.count_between(start, start + day) == Count(1439)
        assert table.count_between(start, start + 7 * day) == Count(10_000, exact=False)
        assert table.count_between(start, start) == Count(0)


class TestSchedule:
    def test_the_zone_of_a_start_is_kept_as_a_name(self):
        schedule = rrule("DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=WEEKLY")
        assert schedule.timezone == BERLIN
        assert first(schedule.timetable(), number=1) == ["2026-01-01T09:00"]

    @pytest.mark.parametrize(
        ("start", "zone"),
        [
            (datetime(2026, 6, 19, 9), BERLIN),
            (datetime(2026, 6, 19, 9, tzinfo=ZoneInfo(BERLIN)), None),
            (datetime(2026, 6, 19, 7, tzinfo=UTC), BERLIN),
            (datetime(2026, 6, 19, 3, tzinfo=ZoneInfo(NEW_YORK)), ZoneInfo(BERLIN)),
        ],
    )
    def test_a_start_may_be_given_beside_the_rule(self, start, zone):
        schedule = rrule("FREQ=WEEKLY", start, zone)
        text = "DTSTART;TZID=Europe/Berlin:20260619T090000 RRULE:FREQ=WEEKLY"
        assert schedule == rrule(text)
        assert schedule.timetable().zone == BERLIN

    def test_a_start_without_a_time_is_midnight(self):
        schedule = rrule("FREQ=MONTHLY", date(2026, 6, 19))
        assert schedule == rrule("FREQ=MONTHLY", datetime(2026, 6, 19))

    def test_a_start_in_utc_recurs_in_utc_unless_a_zone_is_given(self):
        text = "DTSTART:20260101T080000Z\nRRULE:FREQ=DAILY"
        june = "2026-06-19T00:00"
        assert first(rrule(text).timetable(), june, 1) == ["2026-06-19T08:00"]
        assert first(rrule(text, timezone=BERLIN).timetable(), june, 1) == ["2026-06-19T09:00"]

    def test_two_starts_or_two_zones_are_refused(self):
        text = "DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY"
        with pytest.raises(ConfigurationError, match="dtstart= is given too; leave one out"):
            rrule(text, datetime(2026, 1, 1))
        with pytest.raises(ConfigurationError, match=f"timezone={NEW_YORK}; leave one out"):
            rrule(text, timezone=NEW_YORK)
        assert rrule(text, timezone=ZoneInfo(BERLIN)) == rrule(text)

    def test_a_start_that_is_no_date_is_refused(self):
        with pytest.raises(ConfigurationError, match="dtstart must be a datetime, not '2026"):
            rrule("FREQ=DAILY", "2026-01-01")

    def test_it_is_equal_by_meaning_and_survives_pickling(self):
        schedule = rrule("FREQ=WEEKLY;BYDAY=MO", datetime(2026, 1, 1, 9), BERLIN)
        assert schedule == rrule("RRULE:BYDAY=MO;FREQ=WEEKLY", datetime(2026, 1, 1, 9), BERLIN)
        assert schedule != rrule("FREQ=WEEKLY;BYDAY=MO", datetime(2026, 1, 1, 9))
        assert schedule != schedule.timetable()
        for other in (pickle.loads(pickle.dumps(schedule)), copy.copy(schedule)):
            assert other == schedule
            assert other.timetable() == schedule.timetable()
        assert len({schedule, pickle.loads(pickle.dumps(schedule))}) == 1
        text = "DTSTART:20260101T090000 RRULE:FREQ=WEEKLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0;BYDAY=MO"
        assert repr(schedule) == f"<rrule: {text} Europe/Berlin>"

    def stock_view(self, schedule, now, zone="UTC"):
        schedule.app = Celery("shop", set_as_current=False, timezone=zone)
        schedule.nowfun = lambda: to_datetime(now).astimezone(ZoneInfo(zone))
        return schedule

    def test_a_stock_beat_can_run_it(self):
        now = at("2026-06-19T09:00", BERLIN)
        schedule = self.stock_view(rrule("FREQ=DAILY;BYHOUR=9", timezone=BERLIN), now)
        assert schedule.is_due(datetime(2026, 6, 18, 7, 0, 1, tzinfo=UTC)) == (True, 86_400)
        assert schedule.is_due(datetime(2026, 6, 19, 7, tzinfo=UTC)) == (False, 86_400)

    def test_without_a_zone_it_is_told_in_that_of_the_app(self):
        now = at("2026-06-19T08:00", BERLIN)
        schedule = self.stock_view(rrule("FREQ=DAILY;BYHOUR=9"), now, BERLIN)
        assert schedule.is_due(datetime(2026, 6, 18, 12, tzinfo=UTC)) == (False, 3600)
        assert schedule.tz == ZoneInfo(BERLIN)

    def test_after_its_end_a_stock_beat_need_not_ask_soon(self):
        now = at("2026-06-19T08:00")
        schedule = self.stock_view(rrule("FREQ=DAILY;UNTIL=20260101"), now)
        assert schedule.remaining_estimate(datetime(2026, 6, 18)) == timedelta(days=36_500)


class TestObjects:
    def test_a_rule_of_dateutil_is_read(self):
        spec = du.rrule(du.WEEKLY, datetime(2026, 6, 19, 9), byweekday=(du.MO, du.FR), count=3)
        table = rule_of(spec).timetable(zone_of(BERLIN))
        assert first(table, number=9) == [each.isoformat()[:16] for each in spec]

    @pytest.mark.parametrize("zone", [ZoneInfo(BERLIN), tz.gettz(BERLIN)], ids=["zoneinfo", "file"])
    def test_its_zone_is_kept_as_a_name(self, zone):
        spec = du.rrule(
            du.DAILY,
            datetime(2026, 6, 19, 9, tzinfo=zone),
            until=datetime(2026, 6, 21, 7, tzinfo=UTC),
        )
        table = rule_of(spec).timetable()
        assert table.zone == BERLIN
        assert [to_datetime(tick) for tick in table.instants(0)] == list(spec)

    @pytest.mark.parametrize("zone", [UTC, tz.UTC, ZoneInfo("Etc/UTC")])
    def test_utc_is_utc_by_any_name(self, zone):
        spec = du.rrule(du.DAILY, datetime(2026, 6, 19, 9, tzinfo=zone))
        assert rule_of(spec).timetable().zone == "UTC"

    def test_a_set_of_dateutil_is_read(self):
        spec = du.rruleset()
        spec.rrule(du.rrule(du.DAILY, datetime(2026, 6, 19, 9), count=4))
        spec.rrule(du.rrule(du.MONTHLY, datetime(2026, 6, 20, 10), bymonthday=-1, count=2))
        spec.rdate(datetime(2026, 6, 1))
        spec.exdate(datetime(2026, 6, 20, 9))
        spec.exrule(du.rrule(du.WEEKLY, datetime(2026, 6, 21, 9), count=1))
        table = rule_of(spec).timetable(zone_of(BERLIN))
        assert first(table, number=9) == [each.isoformat()[:16] for each in spec]
        assert len(list(spec)) == 5

    def test_a_set_may_have_dates_of_another_zone(self):
        spec = du.rruleset()
        spec.rrule(du.rrule(du.DAILY, datetime(2026, 6, 19, 9, tzinfo=ZoneInfo(BERLIN)), count=2))
        spec.rdate(datetime(2026, 6, 19, 12, tzinfo=UTC))
        spec.exdate(datetime(2026, 6, 20, 3, tzinfo=ZoneInfo(NEW_YORK)))
        table = rule_of(spec).timetable()
        assert table.zone == BERLIN
        assert [to_datetime(tick) for tick in table.instants(0)] == list(spec)

    def test_a_subclass_may_mean_something_else(self):
        class Mine(du.rrule):
            pass

        assert rule_of(Mine(du.DAILY)) is None
        assert rule_of("FREQ=DAILY") is None
        assert rule_of(du.rrule) is None

    def test_what_is_not_in_the_standard_is_refused(self):
        with pytest.raises(ConfigurationError, match="there is no part BYEASTER"):
            rule_of(du.rrule(du.YEARLY, datetime(2026, 1, 1), byeaster=1))
