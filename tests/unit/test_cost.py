"""What time costs, counted in steps: entries share their timetables, and nobody walks for years."""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.ledger import memory_server
from celery_redlock_beat.roster import Roster
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.ticks import COUNT_LIMIT, SECOND
from celery_redlock_beat.timetables import CeleryCrontab, Cron, Interval
from celery_redlock_beat.timetables.debian import Debian
from celery_redlock_beat.timetables.zones import zone_of
from support.fleet import START, Fleet

ENTRIES = 10_000
TABLES = 30
FEW = 10
"""Steps of one timetable that a start or a tick may take, however many entries are on it."""
HOUR = 3600 * SECOND
YEAR = 365 * 24 * HOUR

KINDS = {
    "crontab": lambda number: {"schedule": crontab(minute=f"0,{number}")},
    "cron string": lambda number: {"schedule": f"0,{number} * * * *"},
    "crontab as clocks show": lambda number: {
        "schedule": crontab(minute=f"0,{number}"),
        "dst": "real",
    },
}


class FlowingFleet(Fleet):
    """A fleet whose clock goes on whenever anybody looks at it, as real ones do."""

    @property
    def now(self):
        self._now += 1
        return self._now

    @now.setter
    def now(self, moment):
        self._now = moment


class Beat:
    """A node, and the roster that takes in its entries."""

    def __init__(self, entries):
        self.fleet = FlowingFleet()
        self.node = self.fleet.add()
        app = Celery("tests", broker="memory://", set_as_current=False)
        app.conf.timezone = "Europe/Berlin"
        self.roster = Roster(app, Settings(), self.node.node.put, self.node.node.discard)
        for name, fields in entries.items():
            self.node.entries[name] = RedlockEntry(name=name, task="t", app=app, **fields)

    def run_at(self, moment):
        """Pass as often as there is work; return how many messages were sent."""
        self.fleet.now = moment
        sent = len(self.node.delivery.messages)
        self.roster.compare(self.node.entries)
        self.node.run()
        return len(self.node.delivery.messages) - sent


@pytest.fixture
def steps(monkeypatch):
    """Count the steps of each timetable; nothing is remembered from before."""
    counts = Counter()

    def count(kind, name):
        method = getattr(kind, name)

        def counted(self, *args):
            counts[self] += 1
            return method(self, *args)

        monkeypatch.setattr(kind, name, counted)

    for kind in (CeleryCrontab, Debian):
        count(kind, "step")
    for name in ("next_after", "latest_until", "count_between"):
        count(Interval, name)
    forget()
    return counts


@pytest.fixture(autouse=True)
def _sweep_nothing(monkeypatch):
    # The double looks through all that it has settled whenever it settles one.
    monkeypatch.setattr(memory_server, "until", lambda *_: [])


def forget():
    """Clear what timetables remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith("celery_redlock_beat.timetables"):
            for each in vars(module).values():
                if isinstance(each, type(lru_cache(len))):
                    each.cache_clear()


def entries_of(kind, entries=ENTRIES, tables=TABLES, **policies):
    """Return so many entries on so many timetables, all of which are due on the hour."""
    make = KINDS[kind]
    return {f"e{number}": make(number % tables + 1) | policies for number in range(entries)}


def taken(steps):
    """Return how many timetables were stepped, and the most steps of one; begin anew."""
    found = len(steps), max(steps.values(), default=0)
    steps.clear()
    return found


@pytest.mark.parametrize("kind", KINDS)
class TestTenThousandEntriesOnThirtyTimetables:
    def test_ask_thirty_when_they_start_and_none_while_they_wait(self, steps, kind):
        beat = Beat(entries_of(kind))
        assert beat.run_at(START) == 0
        tables, most = taken(steps)
        assert (tables, beat.roster.faults) == (TABLES, {})
        assert most <= FEW
        for second in (1, 30, 59):
            assert beat.run_at(START + second * SECOND) == 0
        assert taken(steps) == (0, 0)

    def test_ask_thirty_when_all_are_due_counting_and_expiry_included(self, steps, kind):
        beat = Beat(entries_of(kind, expires="next"))
        beat.run_at(START)
        for hour in (1, 2):
            taken(steps)
            assert beat.run_at(START + hour * HOUR) == ENTRIES
            tables, most = taken(steps)
            assert tables == TABLES
            assert most <= FEW
            assert beat.fleet.totals() == {
                "sent": hour * ENTRIES,
                "skipped:superseded": hour * ENTRIES,
            }


def test_jitter_takes_no_step_per_entry(steps):
    beat = Beat(entries_of("crontab", jitter=30))
    beat.run_at(START + HOUR // 2 + 31 * SECOND)
    taken(steps)
    sent = [beat.run_at(START + HOUR + second * SECOND) for second in (0, 10, 20, 30)]
    assert sum(sent) == ENTRIES
    tables, most = taken(steps)
    assert tables == TABLES
    assert most <= FEW


def test_after_a_day_without_redis_each_timetable_is_counted_once(steps):
    minutely = [{"schedule": crontab()}, {"schedule": "* * * * *"}]
    beat = Beat({f"e{number}": minutely[number % 2] for number in range(ENTRIES)})
    beat.run_at(START)  # marks differ: not all are registered in one call
    taken(steps)
    assert beat.run_at(START + 24 * HOUR) == ENTRIES
    tables, most = taken(steps)
    assert tables == 2
    assert most <= 24 * 60 + FEW
    assert beat.fleet.totals()["skipped:superseded"] == (24 * 60 - 1) * ENTRIES


def test_a_timetable_of_its_own_takes_each_entry_few_steps(steps):
    beat = Beat(
        {
            f"e{number}": {"schedule": crontab(number % 60, number // 60, day_of_month="1-28")}
            for number in range(1000)
        }
    )
    beat.run_at(START)
    tables, most = taken(steps)
    assert tables == 1000
    assert most <= 3
    for day in (1, 2):
        assert beat.run_at(START + day * 24 * HOUR) == 1000
        tables, most = taken(steps)
        assert tables == 1000
        assert most <= 3


@pytest.mark.parametrize(
    "policy",
    [
        {"catch_up": "latest"},
        {"catch_up": "none"},
        {"catch_up": "all"},
        {"catch_up": "all", "window": 10 * YEAR, "limit": 2000},
    ],
    ids=["latest", "none", "all", "all of ten years"],
)
@pytest.mark.parametrize(
    "table",
    [
        Interval(SECOND),
        CeleryCrontab.of(crontab(), zone_of("Europe/Berlin")),
        Cron("* * * * *", "Europe/Berlin"),
    ],
    ids=["interval", "crontab", "cron string"],
)
def test_a_mark_of_ten_years_ago_is_resolved_in_ten_thousand_steps(steps, table, policy):
    fleet = Fleet()
    node = fleet.add()
    node.put("a", table, **policy)
    node.run()
    taken(steps)
    fleet.advance(10 * YEAR / SECOND)
    node.run()
    sent = fleet.totals()["sent"]
    assert sum(steps.values()) <= COUNT_LIMIT + FEW + 5 * sent
