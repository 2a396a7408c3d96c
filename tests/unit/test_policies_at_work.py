"""What policies do to the ticks of an entry, on a ledger in memory and a clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from celery.schedules import crontab

from celery_redlock_beat.backlog import newest_begin
from celery_redlock_beat.ticks import COUNT_LIMIT, SECOND, Count, to_datetime, to_micros
from celery_redlock_beat.timetables import (
    Bounded,
    CeleryCrontab,
    Cron,
    Interval,
    Once,
    RealCrontab,
)
from celery_redlock_beat.timetables.zones import zone_of
from support.fleet import START, Fleet

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NEW_YORK = zone_of("America/New_York")


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def node(fleet):
    return fleet.add()


def live(fleet, seconds, *nodes, every=1.0):
    """Let nodes pass now and then."""
    for _ in range(round(seconds / every)):
        fleet.advance(every)
        for node in nodes:
            node.run()


def sent(node):
    return [event.tick.at for event in node.events if event.outcome.text == "sent"]


def delayed_tick(slot):
    """Return a minute whose tick is due more than ten seconds later."""
    return next(
        tick
        for tick in range(START + 5 * MINUTE, START + DAY, MINUTE)
        if slot.due_at(tick) - tick > 10 * SECOND
    )


class TestJitter:
    def test_a_tick_is_sent_when_its_jitter_is_over_and_never_earlier(self, fleet, node):
        node.put("a", Interval(MINUTE), jitter=30 * SECOND)
        node.run()
        live(fleet, 300, node, every=0.1)
        assert sent(node) == [START + k * MINUTE for k in range(1, 5 + 1)][: len(sent(node))]
        assert len(sent(node)) >= 4
        slot = node.dispatcher.due.get("a")
        delays = [slot.due_at(tick) - tick for tick in sent(node)]
        assert len(set(delays)) == len(delays)
        assert all(0 <= delay < 30 * SECOND for delay in delays)
        assert all(0 <= event.lateness <= SECOND // 10 for event in node.events)

    def test_all_nodes_agree_on_it(self, fleet):
        nodes = [fleet.add() for _ in range(3)]
        for each in nodes:
            each.put("a", Interval(MINUTE), jitter=30 * SECOND)
            each.run()
        live(fleet, 600, *nodes)
        assert set(fleet.queue().values()) == {1}
        assert len(fleet.queue()) in (9, 10)

    def test_it_never_reaches_the_next_tick(self, fleet, node):
        node.put("a", Interval(SECOND), jitter=HOUR, catch_up="all")
        node.run()
        live(fleet, 20, node, every=0.05)
        assert fleet.totals() == {"sent": len(fleet.queue())}
        assert len(fleet.queue()) in (19, 20)

    def test_what_it_delays_is_not_late(self, fleet, node):
        node.put("a", Interval(HOUR), jitter=30 * MINUTE, grace=SECOND)
        node.run()
        live(fleet, 2 * 3600, node)
        assert set(fleet.totals()) == {"sent"}

    def test_a_tick_is_as_late_as_it_is_after_its_jitter_also_for_all(self, fleet, node):
        node.put("a", Interval(MINUTE), jitter=MINUTE, catch_up="all", grace=30 * SECOND)
        node.run()
        slot = node.dispatcher.due.get("a")
        late = next(
            tick
            for tick in range(START + MINUTE, START + DAY, MINUTE)
            if slot.due_at(tick) - tick > 50 * SECOND
            and slot.due_at(tick + MINUTE) - tick - MINUTE < 10 * SECOND
        )
        fleet.now = slot.due_at(late) + 20 * SECOND
        node.run()
        assert sent(node) == [late, late + MINUTE]

    def test_it_ends_with_the_entry(self, fleet, node):
        end = START + 10 * SECOND
        node.put("a", Bounded(Interval(SECOND), None, end), jitter=HOUR, catch_up="all")
        node.run()
        live(fleet, 12, node, every=0.05)
        assert len(sent(node)) == 10
        assert node.events[-1].lateness < SECOND // 10
        slot = node.dispatcher.due.get("a")
        assert all(slot.due_at(START + k * SECOND) <= end for k in range(1, 11))

    def test_an_earlier_tick_is_caught_up_while_the_newest_waits(self, fleet, node):
        node.put("a", Interval(MINUTE), jitter=MINUTE)
        node.run()
        slot = node.dispatcher.due.get("a")
        newest = delayed_tick(slot)
        fleet.now = newest + SECOND
        node.run()
        assert sent(node) == [newest - MINUTE]


class TestCatchUp:
    @pytest.mark.parametrize(
        ("policy", "messages", "skipped"),
        [
            ({"catch_up": "latest"}, [100], {"skipped:superseded": 99}),
            ({"catch_up": "none"}, [], {"skipped:window": 100}),
            (
                {"catch_up": "all", "limit": 20},
                list(range(81, 101)),
                {"skipped:window": 80},
            ),
        ],
    )
    @pytest.mark.parametrize("kind", ["interval", "crontab", "cron"])
    def test_after_an_outage_of_100_ticks(self, fleet, node, policy, messages, skipped, kind):
        tables = {
            "interval": Interval(MINUTE),
            "crontab": CeleryCrontab.of(crontab(), zone_of("UTC")),
            "cron": Cron("* * * * *", "UTC"),
        }
        node.put("a", tables[kind], **policy)
        node.run()
        fleet.advance(100 * 60 + 30)
        node.run()
        assert sent(node) == [START + k * MINUTE for k in messages]
        expected = {"sent": len(messages), **skipped} if messages else skipped
        assert fleet.totals() == expected

    def test_what_becomes_due_meanwhile_is_no_backlog(self, fleet, node):
        node.put("a", Interval(SECOND), catch_up="all", limit=30)
        node.run()
        fleet.advance(100)
        node.dispatcher._room = lambda: 10
        for _ in range(50):
            node.node._step(fleet.now + SECOND)
            fleet.advance(0.5)
        ticks = [(tick - START) // SECOND for tick in sent(node)]
        assert ticks == list(range(71, ticks[-1] + 1))
        assert fleet.totals()["skipped:window"] == 70

    def test_the_message_says_at_least_how_many_were_passed_over(self, fleet, node):
        node.put("a", CeleryCrontab.of(crontab(), zone_of("UTC")))
        node.run()
        fleet.advance(3650 * 86400)
        node.run()
        (message,) = node.delivery.messages
        assert message.options["headers"]["redlock_passed_over"] == COUNT_LIMIT
        assert message.options["headers"]["redlock_passed_over_exact"] is False
        assert fleet.totals() == {"sent": 1, "skipped:superseded": COUNT_LIMIT}

    def test_intervals_count_ten_years_exactly(self, fleet, node):
        node.put("a", Interval(SECOND))
        node.run()
        fleet.advance(3650 * 86400)
        node.run()
        (message,) = node.delivery.messages
        assert message.options["headers"]["redlock_passed_over"] == 3650 * 86400 - 1
        assert message.options["headers"]["redlock_passed_over_exact"] is True


class TestTheNewestOfMany:
    @pytest.mark.parametrize(
        "table",
        [
            Interval(MINUTE),
            Cron("* * * * *", "Europe/Berlin"),
            Cron("* 3 * * *", "Europe/Berlin"),
            Cron("* * 3 * * 1", "UTC"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("most", [1, 20, 700])
    def test_are_exactly_as_many_as_are_wanted(self, table, most):
        newest = table.latest_until(START)
        begin = newest_begin(table, START - 60 * DAY, newest, most)
        assert table.count_between(begin, newest + 1) == Count(most)
        assert table.next_after(begin) is not None

    def test_or_all_where_there_are_fewer(self):
        assert newest_begin(Interval(MINUTE), START - HOUR, START, 100) == START - HOUR


class TestExpiry:
    def test_a_message_expires_when_the_next_tick_is_due(self, fleet, node):
        node.put("a", Interval(MINUTE), expires=True)
        node.run()
        fleet.advance(60)
        node.run()
        (message,) = node.delivery.messages
        assert message.options["expires"] == to_datetime(START + 2 * MINUTE)
        assert "expires" not in node.entries["a"].options

    def test_what_is_sent_late_still_has_until_then(self, fleet, node):
        node.put("a", Interval(MINUTE), expires=True, catch_up="all")
        node.run()
        fleet.advance(150)
        node.run()
        expiries = {message.options["expires"] for message in node.delivery.messages}
        assert expiries == {to_datetime(START + 3 * MINUTE)}

    def test_the_jitter_of_the_next_tick_counts(self, fleet, node):
        node.put("a", Interval(MINUTE), expires=True, jitter=MINUTE)
        node.run()
        live(fleet, 180, node)
        slot = node.dispatcher.due.get("a")
        for message in node.delivery.messages:
            tick = to_micros(datetime.fromisoformat(message.options["headers"]["redlock_tick"]))
            assert message.options["expires"] == to_datetime(slot.due_at(tick + MINUTE))

    def test_a_late_message_expires_when_the_newest_tick_is_due_with_its_jitter(self, fleet, node):
        node.put("a", Interval(MINUTE), expires=True, jitter=MINUTE)
        node.run()
        slot = node.dispatcher.due.get("a")
        newest = delayed_tick(slot)
        fleet.now = newest + SECOND
        node.run()
        (message,) = node.delivery.messages
        assert message.options["expires"] == to_datetime(slot.due_at(newest))

    def test_the_last_tick_never_expires(self, fleet, node):
        node.put("a", Bounded(Interval(MINUTE), None, START + MINUTE), expires=True)
        node.run()
        fleet.advance(60)
        node.run()
        (message,) = node.delivery.messages
        assert "expires" not in message.options

    def test_an_expiry_among_the_options_wins_over_the_setting(self, fleet, node):
        node.put("a", Interval(MINUTE), expires=True)
        node.entries["a"].options["expires"] = 5
        node.run()
        fleet.advance(60)
        node.run()
        assert node.delivery.messages[0].options["expires"] == 5


class TestBounds:
    def test_it_fires_from_its_start_to_its_end(self, fleet, node):
        node.put("a", Bounded(Interval(SECOND), START + 3 * SECOND, START + 5 * SECOND))
        node.run()
        live(fleet, 10, node)
        assert sent(node) == [START + k * SECOND for k in (3, 4, 5)]

    def test_the_last_tick_is_caught_up_after_the_end(self, fleet, node):
        node.put("a", Bounded(Interval(SECOND), None, START + 5 * SECOND))
        node.run()
        fleet.advance(60)
        node.run()
        assert sent(node) == [START + 5 * SECOND]
        assert fleet.totals() == {"sent": 1, "skipped:superseded": 4}

    def test_a_claimed_tick_behind_a_new_end_is_skipped(self, fleet, node):
        node.put("a")
        node.run()
        fleet.advance(1)
        node.dispatcher.claims.claim(10, can_send=True)
        node.put("a", Bounded(Interval(SECOND), None, START))
        node.run()
        assert fleet.totals() == {"skipped:end": 1}


class TestEnabled:
    def test_a_disabled_entry_sends_nothing_and_catches_up_nothing(self, fleet, node):
        node.put("a")
        node.run()
        node.put("a", enabled=False)
        live(fleet, 10.5, node, every=0.5)
        assert node.events == []
        node.put("a")
        node.run()
        live(fleet, 2, node)
        assert sent(node) == [START + 11 * SECOND, START + 12 * SECOND]

    def test_nor_after_a_deploy_that_enables_it(self, fleet):
        first = fleet.add()
        first.put("a")
        first.run()
        second = fleet.add()  # the first is stopped
        second.put("a", enabled=False)
        second.run()
        fleet.advance(10.5)
        third = fleet.add()
        third.put("a")
        third.run()
        assert third.outcomes() == [("a", "skipped:before_registration")]
        live(fleet, 1, third)
        assert sent(third) == [START + 11 * SECOND]


class TestRestarts:
    def test_an_interval_of_a_day_fires_daily_though_every_node_restarts_every_hour(self, fleet):
        fleet.now = START - START % DAY + 7 * MINUTE
        begin = fleet.now
        for _hour in range(5 * 24):
            nodes = [fleet.add(), fleet.add()]
            for each in nodes:
                each.put("a", Interval(DAY))
            live(fleet, 3600, *nodes, every=300)
        assert sorted(fleet.queue()) == [f"a {begin - 7 * MINUTE + k * DAY}" for k in range(1, 6)]
        assert set(fleet.queue().values()) == {1}


class TestTheRepeatedHour:
    """New York, 1 November 2026: at 02:00 clocks go back to 01:00."""

    FIRST_PASS = to_micros(datetime(2026, 11, 1, 5, tzinfo=UTC))  # 01:00 EDT
    SECOND_PASS = FIRST_PASS + HOUR  # 01:00 EST

    @pytest.mark.parametrize(
        ("table", "minutes"),
        [
            (CeleryCrontab.of(crontab(minute="*/15"), NEW_YORK), []),
            (RealCrontab.of(crontab(minute="*/15"), NEW_YORK), [15, 30, 45]),
            (Cron("*/15 * * * *", "America/New_York"), [15, 30, 45]),
        ],
        ids=["stock", "real", "cron string"],
    )
    def test_a_beat_started_at_five_past_sends_what_the_calendar_says(
        self, fleet, node, table, minutes
    ):
        fleet.now = self.SECOND_PASS + 5 * MINUTE
        node.put("a", table)
        live(fleet, 2 * 3600, node, every=0.5)
        expected = [self.SECOND_PASS + minute * MINUTE for minute in minutes]
        expected += [self.SECOND_PASS + HOUR + k * 15 * MINUTE for k in range(5)]
        assert sent(node) == expected[: len(sent(node))]
        assert len(sent(node)) >= len(expected) - 1

    def test_hourly_with_the_real_clock_loses_nothing(self, fleet, node):
        fleet.now = self.FIRST_PASS - 5 * HOUR - 30 * MINUTE
        node.put("a", RealCrontab.of(crontab(minute=0), NEW_YORK))
        live(fleet, 10 * 3600, node, every=60)
        assert sent(node) == [self.FIRST_PASS + k * HOUR for k in range(-5, 5)]


class TestLimits:
    @pytest.mark.parametrize("enqueues", [True, False], ids=["enqueue", "publish"])
    @pytest.mark.parametrize("catch_up", ["latest", "all"])
    def test_all_nodes_together_send_so_many(self, fleet, enqueues, catch_up):
        nodes = [fleet.add(enqueues=enqueues) for _ in range(3)]
        for each in nodes:
            each.put("a", max_runs=5, catch_up=catch_up)
            each.run()
        live(fleet, 20, *nodes, every=0.25)
        assert sum(len(each.delivery.messages) for each in nodes) == 5
        late = fleet.add(enqueues=enqueues)
        late.put("a", max_runs=5, catch_up=catch_up)
        live(fleet, 5, late, *nodes, every=0.25)
        assert late.delivery.messages == []
        assert fleet.totals() == {"sent": 5}

    def test_what_is_skipped_is_no_run(self, fleet, node):
        node.put("a", Interval(MINUTE), max_runs=2, grace=SECOND)
        node.run()
        fleet.advance(60 + 30)
        node.run()
        live(fleet, 300, node)
        assert fleet.totals() == {"skipped:grace": 1, "sent": 2}

    def test_a_raised_limit_goes_on_and_catches_up_nothing(self, fleet, node):
        node.put("a", max_runs=2, catch_up="all")
        node.run()
        live(fleet, 10, node)
        node.put("a", max_runs=3, catch_up="all")
        live(fleet, 10, node)
        assert sent(node) == [START + k * SECOND for k in (1, 2, 11)]
        assert fleet.totals() == {"sent": 3, "skipped:before_registration": 8}

    def test_a_finished_entry_costs_no_more_calls_and_counts_nothing(self, fleet, node):
        node.put("a", max_runs=1)
        live(fleet, 3, node)
        asked = []
        claim = node.dispatcher.ledger.claim
        node.dispatcher.ledger.claim = lambda asks, *rest: asked.extend(asks) or claim(asks, *rest)
        live(fleet, 60, node)
        assert asked == []
        assert fleet.totals() == {"sent": 1}


class TestTheFirstStart:
    def test_one_of_the_nodes_sends_at_once_and_no_later_one(self, fleet):
        nodes = [fleet.add() for _ in range(3)]
        for each in nodes:
            each.put("a", Interval(DAY), run_on_start=True)
        live(fleet, 3, *nodes)
        assert fleet.queue() == {f"a {START + SECOND}": 1}
        again = fleet.add()
        again.put("a", Interval(HOUR, 1), run_on_start=True)
        live(fleet, 3, again, *nodes)
        assert sum(fleet.queue().values()) == 1

    def test_it_counts_as_a_run(self, fleet, node):
        node.put("a", max_runs=1, run_on_start=True)
        live(fleet, 5, node)
        assert fleet.totals() == {"sent": 1}

    def test_a_disabled_entry_sends_nothing(self, fleet, node):
        node.put("a", Interval(DAY), run_on_start=True, enabled=False)
        live(fleet, 60, node)
        assert fleet.totals() == {}


class TestOnce:
    def test_it_fires_once_over_restarts_and_deploys(self, fleet):
        for _ in range(4):
            nodes = [fleet.add(), fleet.add()]
            for each in nodes:
                each.put("a", Once(START + 5 * SECOND))
            live(fleet, 4, *nodes)
        assert fleet.queue() == {f"a {START + 5 * SECOND}": 1}

    def test_it_is_caught_up_after_an_outage(self, fleet, node):
        node.put("a", Once(START + 5 * SECOND))
        node.run()
        fleet.advance(3600)
        node.run()
        assert fleet.totals() == {"sent": 1}

    def test_one_that_had_passed_before_it_was_seen_is_counted_and_told_once(self, fleet):
        nodes = [fleet.add() for _ in range(3)]
        for each in nodes:
            each.put("a", Once(START - DAY))
        live(fleet, 5, *nodes)
        events = [event for each in nodes for event in each.outcomes()]
        assert events == [("a", "skipped:before_registration")]
        assert fleet.totals() == {"skipped:before_registration": 1}

    def test_another_instant_is_another_chance(self, fleet, node):
        node.put("a", Once(START + SECOND))
        live(fleet, 3, node)
        node.put("a", Once(START + 10 * SECOND))
        live(fleet, 10, node)
        assert fleet.queue() == {f"a {START + SECOND}": 1, f"a {START + 10 * SECOND}": 1}

    def test_a_removed_one_that_comes_back_stays_done(self, fleet, node):
        node.put("a", Once(START + SECOND))
        live(fleet, 3, node)
        node.remove("a")
        live(fleet, 3, node)
        node.put("a", Once(START + SECOND))
        live(fleet, 3, node)
        assert fleet.totals() == {"sent": 1}
