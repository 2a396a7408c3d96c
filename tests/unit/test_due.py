"""The due queue: which ticks are asked for, when, and which are too late."""

import pytest

from celery_redlock_beat.due import CHUNK, FAULT_PAUSE, DueQueue
from celery_redlock_beat.lateness import PassedOver, Policy, Slot
from celery_redlock_beat.ticks import SECOND, Count, Reason
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.opaque import Opaque

T0 = 1_800_000_000 * SECOND
MINUTELY = Interval(60 * SECOND)
SECONDLY = Interval(SECOND)


@pytest.fixture
def faults():
    return []


@pytest.fixture
def due(faults):
    return DueQueue(lambda names, exc: faults.append((*names, str(exc))))


def slot(name="a", timetable=SECONDLY, cursor=T0, since=T0, **policy):
    return Slot(name, timetable, Policy(**policy), cursor=cursor, since=since)


def instants(asks):
    return [(ask.tick.entry, (ask.tick.at - T0) / SECOND) for ask in asks]


def test_nothing_is_due_before_the_first_instant(due):
    due.put(slot())
    assert due.asks(T0 + SECOND - 1, 100) == []
    assert due.next_look() == T0 + SECOND


def test_a_tick_is_asked_for_from_its_very_instant(due):
    due.put(slot())
    assert instants(due.asks(T0 + SECOND, 100)) == [("a", 1)]


def test_it_is_asked_for_until_the_ledger_answered_a_mark(due):
    due.put(slot())
    assert due.asks(T0 + SECOND, 100)
    assert due.asks(T0 + SECOND + 5, 100)
    due.advance("a", T0 + SECOND)
    assert due.asks(T0 + SECOND + 6, 100) == []


def test_a_cursor_never_falls(due):
    due.put(slot())
    due.advance("a", T0 + 5 * SECOND)
    due.advance("a", T0 + 2 * SECOND)
    assert due.asks(T0 + 5 * SECOND, 100) == []


def test_latest_asks_only_for_the_newest_late_tick(due):
    due.put(slot())
    assert instants(due.asks(T0 + 90 * SECOND, 100)) == [("a", 90)]


def test_all_asks_for_each_late_tick_in_order_and_in_chunks(due):
    due.put(slot(catch_up="all"))
    now = T0 + 50 * SECOND
    first = instants(due.asks(now, 100))
    assert first == [("a", second) for second in range(1, CHUNK + 1)]
    due.advance("a", T0 + CHUNK * SECOND)
    assert instants(due.asks(now, 100))[0] == ("a", CHUNK + 1)


def test_all_looks_back_no_further_than_its_window(due):
    due.put(slot(catch_up="all", window=3 * SECOND))
    assert instants(due.asks(T0 + 50 * SECOND, 100)) == [("a", 48), ("a", 49), ("a", 50)]


def test_the_newest_tick_is_asked_for_even_outside_of_the_window(due):
    due.put(slot(timetable=MINUTELY, catch_up="all", window=SECOND))
    assert instants(due.asks(T0 + 90 * SECOND, 100)) == [("a", 60)]


def test_a_backlog_takes_turns_with_the_others(due):
    due.put(slot("long", catch_up="all"))
    due.put(slot("short", timetable=MINUTELY))
    asked = instants(due.asks(T0 + 90 * SECOND, CHUNK + 1))
    assert ("short", 60) in asked
    assert len(asked) == CHUNK + 1


def test_asks_are_bounded_and_the_rest_follows(due):
    for number in range(250):
        due.put(slot(f"e{number}"))
    seen = []
    while asks := due.asks(T0 + SECOND, 100):
        assert len(asks) <= 100
        for ask in asks:
            seen.append(ask.tick.entry)
            due.advance(ask.tick.entry, ask.tick.at)
    assert sorted(seen) == sorted(f"e{number}" for number in range(250))


def test_a_deferred_entry_waits_and_hides_no_other(due):
    due.put(slot("a"))
    due.put(slot("b"))
    due.defer("a", T0 + 5 * SECOND)
    assert instants(due.asks(T0 + SECOND, 100)) == [("b", 1)]
    due.advance("b", T0 + SECOND)
    assert instants(due.asks(T0 + 5 * SECOND, 100)) == [("a", 5), ("b", 5)]


def test_a_removed_entry_is_not_asked_for(due):
    due.put(slot())
    due.discard("a")
    due.discard("never there")
    assert due.asks(T0 + SECOND, 100) == []
    assert "a" not in due


def test_entries_on_equal_timetables_cost_one_computation(due):
    class Counting(Interval):
        calls = 0

        def next_after(self, moment):
            Counting.calls += 1
            return super().next_after(moment)

    for number in range(1000):
        due.put(slot(f"e{number}", timetable=Counting(SECOND)))
    assert len(due.asks(T0 + SECOND, 1000)) == 1000
    assert Counting.calls <= 3


class Broken:
    fingerprint = "broken"

    def latest_until(self, moment):
        raise ZeroDivisionError("no idea")

    next_after = latest_until

    def count_between(self, after, before):
        return Count(0)


def test_a_schedule_that_raises_is_reported_and_the_others_go_on(due, faults):
    due.put(slot("bad", timetable=Broken()))
    due.put(slot("good"))
    assert instants(due.asks(T0 + SECOND, 100)) == [("good", 1)]
    assert faults == [("bad", "no idea")]
    due.advance("good", T0 + SECOND)
    due.asks(T0 + SECOND + FAULT_PAUSE, 100)
    assert len(faults) == 2


@pytest.mark.parametrize(
    ("policy", "late", "reason"),
    [
        ({}, 10**6, None),
        ({"grace": 5 * SECOND}, 5, None),
        ({"grace": 5 * SECOND}, 6, Reason.GRACE),
        ({"catch_up": "none"}, 10, None),
        ({"catch_up": "none"}, 11, Reason.WINDOW),
        ({"catch_up": "all", "window": 60 * SECOND}, 60, None),
        ({"catch_up": "all", "window": 60 * SECOND}, 61, Reason.WINDOW),
    ],
)
def test_what_is_too_late_is_refused_with_its_reason(policy, late, reason):
    tick = T0 + SECOND
    assert slot(**policy).refusal(tick, tick + late * SECOND) == reason


def test_what_was_due_before_the_entry_was_known_is_refused():
    assert slot(since=T0).refusal(T0 - 1, T0) is Reason.BEFORE_REGISTRATION
    assert slot(since=T0).refusal(T0, T0) is None


def test_what_was_passed_over_is_counted_by_reason():
    old = slot(cursor=T0 - 10 * SECOND, since=T0)
    passed = old.passed_over(T0 - 10 * SECOND, T0 + 5 * SECOND)
    assert passed == PassedOver({Reason.BEFORE_REGISTRATION: 9, Reason.SUPERSEDED: 5})
    assert passed.total == 14
    assert slot(catch_up="all").passed_over(T0, T0 + 5 * SECOND).counts == {Reason.WINDOW: 4}
    assert slot().passed_over(T0, T0 + SECOND) == PassedOver()


class AlwaysDue:
    """A custom schedule that does not look at its last run."""

    def is_due(self, _last_run_at):
        return True, 5.0


def test_a_schedule_that_is_always_due_is_asked_again_when_it_says_so(due):
    due.put(slot(timetable=Opaque(AlwaysDue())))
    now = T0 + SECOND
    (ask,) = due.asks(now, 100)
    assert ask.expected == T0
    assert due.asks(now + 1, 100)  # the answer was lost: at once
    due.advance("a", ask.tick.at)
    assert due.asks(now + 5 * SECOND - 1, 100) == []
    assert due.next_look() == now + 1 + 5 * SECOND
    assert due.asks(now + 1 + 5 * SECOND, 100)


def test_each_backlog_has_a_limit_of_its_own_also_where_others_ended_the_last_one(due):
    due.put(slot(cursor=T0, catch_up="all", limit=30))
    assert len(due.asks(T0 + 25 * SECOND, 100)) == CHUNK
    due.advance("a", T0 + 25 * SECOND)
    assert due.asks(T0 + 25 * SECOND, 100) == []
    late = T0 + 1000 * SECOND
    assert due.asks(late, 100)[0].tick.at == late - 29 * SECOND


def test_what_becomes_due_while_a_node_sleeps_over_a_backlog_is_another_one(due):
    due.put(slot(cursor=T0, catch_up="all", limit=30))
    due.asks(T0 + 25 * SECOND, 100)
    due.advance("a", T0 + 20 * SECOND)
    late = T0 + 1000 * SECOND
    assert instants(due.asks(late, 100)) == [("a", second) for second in range(21, 26)]
    due.advance("a", T0 + 25 * SECOND)
    assert due.asks(late, 100)[0].tick.at == late - 29 * SECOND
