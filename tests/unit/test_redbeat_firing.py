"""What RedBeat's own encoder writes fires here at the instants at which RedBeat would send it."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from dateutil.rrule import weekday
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from redbeat.decoder import RedBeatJSONDecoder, RedBeatJSONEncoder
from redbeat.schedules import rrule

from celery_redlock_beat.documents import entries
from celery_redlock_beat.ledger import Record as Mark
from celery_redlock_beat.ledger.steering import Look
from celery_redlock_beat.predecessors.redbeat.keys import Raw
from celery_redlock_beat.predecessors.redbeat.leaving import leaving_of
from celery_redlock_beat.predecessors.redbeat.records import Record, record_of, timetable
from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import app_zone

BEGIN = datetime(2026, 4, 10, tzinfo=UTC)
CHANGE = datetime(2026, 10, 24, tzinfo=UTC)  # the day before clocks go back in Berlin
DAY = 86_400
NUMBER = 5

ZONES = pytest.mark.parametrize("place", ["UTC", "Europe/Berlin"])
moments = st.integers(0, 150 * DAY * 1_000_000).map(lambda n: BEGIN + timedelta(microseconds=n))
periods = st.one_of(
    st.integers(1, 3 * DAY).map(lambda n: timedelta(seconds=n)),
    st.integers(1, DAY * 1_000_000).map(lambda n: timedelta(microseconds=n)),
    st.sampled_from([timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)]),
    st.integers(1, 60).map(lambda n: timedelta(days=n)),
)
intervals = st.builds(schedule, run_every=periods)
whole_seconds = st.integers(1, 40 * DAY).map(lambda n: timedelta(seconds=n))
relatives = st.builds(schedule, run_every=whole_seconds, relative=st.just(True))


def some(low, high):
    return st.lists(st.integers(low, high), min_size=1, max_size=3, unique=True)


def field(low, high, names=()):
    listed = some(low, high).map(lambda each: ",".join(map(str, each)))
    steps = st.integers(2, max(2, (high - low) // 2)).map(lambda n: f"*/{n}")
    return st.one_of(st.just("*"), st.integers(low, high), listed, steps, st.sampled_from(names))


crontabs = st.builds(
    crontab,
    minute=field(0, 59, ["7-23", "50-10"]),
    hour=field(0, 23, ["9-17", "22-3"]),
    day_of_week=field(0, 6, ["mon", "mon-fri", "sat,sun"]),
    day_of_month=field(1, 28, ["1-7", "25-31"]),
    month_of_year=field(1, 12, ["jan-jun"]),
)
PARTS = {
    "bymonth": some(1, 12),
    "bymonthday": some(1, 28) | some(-28, -1),
    "byyearday": some(1, 365),
    "byweekno": some(1, 52),
    "byweekday": st.lists(st.integers(0, 6).map(weekday), min_size=1, max_size=4, unique=True)
    | some(0, 6),
    "byhour": some(0, 23),
    "byminute": some(0, 59),
    "bysecond": some(0, 59),
}
OFFSETS = [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata"), timezone(timedelta(hours=-8))]


@st.composite
def rules(draw):
    names = draw(st.lists(st.sampled_from(sorted(PARTS)), max_size=3, unique=True))
    parts = {name: draw(PARTS[name]) for name in names}
    freq = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"]))
    if freq != "YEARLY":
        parts.pop("byweekno", None)
    if freq in {"MONTHLY", "WEEKLY", "DAILY"}:
        parts.pop("byyearday", None)
    if freq == "WEEKLY":
        parts.pop("bymonthday", None)
    start = draw(moments).astimezone(draw(st.sampled_from(OFFSETS)))
    interval = draw(st.integers(1, 4)) if freq in {"WEEKLY", "DAILY"} else 1
    ends = {}
    if draw(st.booleans()):
        ends["count"] = draw(st.integers(1, 30))
    if draw(st.booleans()):
        ends["until"] = start + timedelta(seconds=draw(st.integers(0, 90 * DAY)))
    wkst = draw(st.none() | st.integers(0, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of both ends
        return rrule(freq, dtstart=start, interval=interval, wkst=wkst, **ends, **parts)


def app_in(place):
    app = Celery("shop", broker="redis://", set_as_current=False)
    app.conf.timezone = place
    return app


def written(spec, ran):
    """Return the record of an entry as RedBeat saves it."""
    definition = {"name": "it", "task": "proj.it", "args": None, "kwargs": {}, "options": {}}
    definition |= {"schedule": spec, "enabled": True}
    meta = {"last_run_at": ran, "total_run_count": 3}
    told = (json.dumps(each, cls=RedBeatJSONEncoder).encode() for each in (definition, meta))
    return Raw("it", *told, score=1.0, is_planned=True)


def at_a_boundary(ran, every):
    """Return when a relative interval was due last: whenever else it ran, it was late."""
    cleared = {"hour": ran.hour if every < timedelta(days=1) else 0}
    cleared |= {"minute": ran.minute if every < timedelta(hours=1) else 0}
    cleared |= {"second": ran.second if every < timedelta(minutes=1) else 0}
    return ran.replace(microsecond=0, **cleared)


def as_redbeat_runs(raw, ran, app):
    """Yield the instants of RedBeat's own schedule, each sent exactly when it is due."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        spec = json.loads(raw.definition, cls=RedBeatJSONDecoder)["schedule"]
    spec.app = app
    for _ in range(NUMBER):
        spec.nowfun = lambda now=ran: now
        left = spec.remaining_estimate(ran)
        if left is None:
            return
        ran = (ran.astimezone(UTC) + left).astimezone(app.timezone)
        if ran > CHANGE:
            return
        yield ran.astimezone(UTC)


def as_we_run(record, zone):
    table = timetable("it", record.document, zone, record.last_run_at)
    at = to_micros(record.last_run_at)
    for _ in range(NUMBER):
        at = table.next_after(at)
        if at is None or to_datetime(at) > CHANGE:
            return
        yield to_datetime(at)


def compare(spec, ran, place):
    app = app_in(place)
    ran = ran.astimezone(app.timezone)
    raw = written(spec, ran)
    record = record_of(raw, app_zone(app), ran)
    assert record.problem == ""
    assert record.last_run_at == ran
    assert record.total_run_count == 3
    assert list(as_we_run(record, app_zone(app))) == list(as_redbeat_runs(raw, ran, app))
    return record


@ZONES
@given(spec=intervals, ran=moments)
@settings(deadline=None)
def test_an_interval_goes_on_from_its_last_run(place, spec, ran):
    record = compare(spec, ran, place)
    assert record.warnings == ()
    for one, other in pairwise(as_we_run(record, app_zone(app_in(place)))):
        assert other - one == spec.run_every


@ZONES
@given(spec=relatives, ran=moments)
@settings(deadline=None)
def test_a_relative_interval_is_rounded_as_celery_rounds_it(place, spec, ran):
    compare(spec, at_a_boundary(ran.astimezone(ZoneInfo(place)), spec.run_every), place)


@ZONES
@given(spec=crontabs, ran=moments)
@settings(deadline=None)
def test_a_crontab_fires_in_the_zone_of_the_app(place, spec, ran):
    (warning,) = compare(spec, ran, place).warnings
    assert place in warning


@ZONES
@given(spec=rules(), ran=moments)
@settings(deadline=None)
def test_a_rule_goes_on_with_its_offset(place, spec, ran):
    problem = record_of(written(spec, ran), app_zone(app_in(place)), ran).problem
    assume("never fires" not in problem)  # RedBeat would look for it until the year 9999
    compare(spec, ran, place)


def written_back(document, ran, app):
    """Return what RedBeat hears of a document that was sent last at an instant."""
    at = to_micros(ran)
    known = timetable("it", document, app_zone(app), ran).fingerprint
    record = Mark("it", mark=at, since=at, fence=1, runs=3, fingerprint=known)
    leaving = leaving_of(document, Look("it", now=at, record=record), None, app_zone(app))
    assert leaving.problem == ""
    told = leaving.written
    return Raw("it", told.definition.encode(), told.meta.encode(), told.score, is_planned=True)


@ZONES
@given(spec=st.one_of(intervals, relatives, crontabs, rules()), ran=moments)
@settings(deadline=None)
def test_what_is_written_back_fires_as_it_did(place, spec, ran):
    app = app_in(place)
    zone = app_zone(app)
    if isinstance(spec, schedule) and spec.relative:
        ran = at_a_boundary(ran.astimezone(app.timezone), spec.run_every)
    record = record_of(written(spec, ran), zone, ran)
    assume("never fires" not in record.problem)
    raw = written_back(record.document, ran, app)
    again = record_of(raw, zone, ran)
    # Where it counts from is told by its last run.
    said = {key: each for key, each in record.document.items() if key != "phase"}
    bare = {key: each for key, each in again.document.items() if key != "phase"}
    assert bare == said or isinstance(spec, rrule)
    assert (again.last_run_at, again.total_run_count) == (ran, 3)
    expected = list(as_we_run(record, zone))
    assert list(as_redbeat_runs(raw, ran.astimezone(app.timezone), app)) == expected
    if expected:
        assert raw.score == int(expected[0].timestamp())


@ZONES
@pytest.mark.parametrize(
    "spec",
    [
        "*/7 9-17 * * MON-FRI",
        "30 2 1,15 * *",
        "0 12 * JAN-JUN 7",
        "5/20 * */2 * *",
        "0 0 9 * * *",
        "@daily",
        "@every 90s",
        "H H * * *",
        "FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9",
        "FREQ=MINUTELY;INTERVAL=15",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=17",
        "DTSTART:20260401T080000 RRULE:FREQ=DAILY;INTERVAL=3;COUNT=50",
        "DTSTART:20260401T080000 RRULE:FREQ=DAILY;UNTIL=20260901T060000Z",
    ],
)
def test_a_text_is_written_back_where_redbeat_can_say_it(place, spec):
    app = app_in(place)
    zone = app_zone(app)
    document = json.loads(entries.written("it", {"task": "proj.it", "schedule": spec}))
    table = timetable("it", document, zone)
    ran = to_datetime(table.latest_until(to_micros(BEGIN + timedelta(days=60))))
    record = Record("it", document, ran)
    raw = written_back(document, ran, app)
    found = list(as_redbeat_runs(raw, ran.astimezone(app.timezone), app))
    assert found == list(as_we_run(record, zone))
    assert found
