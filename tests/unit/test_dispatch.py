"""The line, on a ledger in memory: what a node does with what it is granted."""

from dataclasses import replace

import pytest

from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.errors import (
    BrokerUnreachable,
    DeliveryFailed,
    DeliveryImpossible,
    LedgerUnavailable,
)
from celery_redlock_beat.ledger import Answer, Verdict
from celery_redlock_beat.ledger.memory_steering import MemorySteering
from celery_redlock_beat.ledger.steering import Resumption
from celery_redlock_beat.orphans import FORLORN_AFTER, MOST_ATTEMPTS
from celery_redlock_beat.ticks import SECOND, Tick
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.opaque import Opaque
from support.fleet import LEASE, START, Fleet


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def node(fleet):
    return fleet.add()


def raising(exc):
    def before(_tick):
        raise exc

    return before


def live(fleet, node, seconds):
    """Let a node pass once a second."""
    for _ in range(round(seconds)):
        fleet.advance(1)
        node.run()


def test_a_due_tick_is_sent_once_by_one_of_the_nodes(fleet):
    nodes = [fleet.add() for _ in range(3)]
    for each in nodes:
        each.put("a")
        each.run()
    for _ in range(10):
        fleet.advance(1)
        for each in nodes:
            each.run()
    assert len(fleet.queue()) == 10
    assert set(fleet.queue().values()) == {1}
    assert fleet.totals() == {"sent": 10}


def test_a_message_carries_the_tick_and_its_own_id(fleet, node):
    node.put("a")
    node.run()
    fleet.advance(1)
    node.run()
    (message,) = node.delivery.messages
    headers = message.options["headers"]
    assert message.options["task_id"] == Tick("a", START + SECOND).task_id("tests")
    assert headers["redlock_entry"] == "a"
    assert headers["redlock_tick"] == "2027-01-15T08:00:01.000000+00:00"
    assert headers["redlock_attempt"] == 1
    assert node.entries["a"].options == {}


def test_an_entry_never_seen_sends_nothing_of_the_past(fleet, node):
    node.put("a", Interval(3600 * SECOND))
    node.run()
    assert node.events == []


def test_after_an_outage_latest_sends_one_and_counts_the_others(fleet, node):
    node.put("a")
    node.run()
    fleet.advance(8)
    node.run()
    assert fleet.queue() == {f"a {START + 8 * SECOND}": 1}
    assert fleet.totals() == {"sent": 1, "skipped:superseded": 7}
    assert node.delivery.messages[0].options["headers"]["redlock_passed_over"] == 7


def test_after_an_outage_all_sends_each_in_order(fleet, node):
    node.put("a", catch_up="all")
    node.run()
    fleet.advance(90)
    node.run()
    sent = [message.options["headers"]["redlock_tick"] for message in node.delivery.messages]
    assert len(sent) == 90
    assert sent == sorted(sent)
    assert fleet.totals() == {"sent": 90}


def test_after_an_outage_none_sends_only_what_is_on_time(fleet, node):
    node.put("a", Interval(60 * SECOND), catch_up="none")
    node.run()
    fleet.advance(60 + 30)
    node.run()
    assert fleet.totals() == {"skipped:window": 1}


def test_what_is_past_its_grace_is_settled_as_skipped_and_not_left_open(fleet, node):
    node.put("a", Interval(60 * SECOND), grace=10 * SECOND)
    node.run()
    fleet.advance(60 + 11)
    node.run()
    assert fleet.totals() == {"skipped:grace": 1}
    assert not fleet.server.open


def test_a_tick_whose_node_died_is_sent_by_another_with_the_same_id(fleet):
    dying, other = fleet.add(), fleet.add()
    for each in (dying, other):
        each.put("a", catch_up="all")
        each.run()
    fleet.advance(1)
    tick = Tick("a", START + SECOND)
    dying.claim_only(tick)
    other.run()
    assert other.events == []
    fleet.advance(LEASE / SECOND)
    other.run()
    (taken_over,) = [event for event in other.events if event.tick == tick]
    assert taken_over.attempt == 2
    assert taken_over.task_id == tick.task_id("tests")
    assert set(fleet.queue().values()) == {1}


def test_an_orphan_is_sent_even_if_later_ticks_were_sent_meanwhile(fleet):
    dying, other = fleet.add(), fleet.add()
    for each in (dying, other):
        each.put("a")
        each.run()
    fleet.advance(1)
    dying.claim_only(Tick("a", fleet.now))
    for _ in range(7):
        fleet.advance(1)
        other.run()
    assert len(fleet.queue()) == 8
    assert fleet.totals() == {"sent": 8}


def test_an_orphan_of_an_entry_that_nobody_has_is_settled_in_the_end(fleet):
    dying, other = fleet.add(), fleet.add()
    dying.put("gone")
    dying.run()
    other.run()
    fleet.advance(1)
    dying.claim_only(Tick("gone", fleet.now))
    live(fleet, other, (FORLORN_AFTER + 1) * LEASE / SECOND - 1)
    assert fleet.totals() == {}
    live(fleet, other, 2)
    assert fleet.totals() == {"skipped:unknown_entry": 1}


def test_a_time_in_which_nobody_could_send_makes_no_orphan_forlorn(fleet):
    dying, other = fleet.add(), fleet.add()
    dying.put("gone")
    dying.run()
    other.run()
    fleet.advance(1)
    tick = Tick("gone", fleet.now)
    dying.claim_only(tick)
    other.delivery.is_ready = False
    live(fleet, other, 100)
    other.delivery.is_ready = True
    live(fleet, other, 1)
    fleet.advance(100)  # and now the ledger was away
    live(fleet, other, 1)
    assert fleet.totals() == {}
    late = fleet.add()
    late.put("gone", catch_up="all")
    late.run()
    assert late.outcomes()[0] == ("gone", "sent")
    assert tick in {event.tick for event in late.events}


def test_a_broker_that_cannot_be_reached_costs_no_attempt_and_no_tick(fleet, node):
    node.put("a", catch_up="all")
    node.run()
    node.delivery.before = raising(BrokerUnreachable("down"))
    for _ in range(20):
        fleet.advance(1)
        node.run()
    node.delivery.before = lambda _tick: None
    fleet.advance(1)
    node.run()
    fleet.advance(1)
    node.run()
    assert len(fleet.queue()) == 22
    assert fleet.totals() == {"sent": 22}


def test_a_broker_that_is_not_ready_leaves_ticks_unclaimed(fleet, node):
    node.put("a")
    node.run()
    node.delivery.is_ready = False
    fleet.advance(8)
    node.run()
    assert not fleet.server.open
    node.delivery.is_ready = True
    node.run()
    assert fleet.totals() == {"sent": 1, "skipped:superseded": 7}


def test_under_latest_a_tick_that_waited_gives_way_to_a_newer_one(fleet, node):
    node.put("a")
    node.run()
    node.delivery.before = raising(BrokerUnreachable("down"))
    fleet.advance(1)
    node.run()
    fleet.advance(1)
    node.delivery.before = lambda _tick: None
    node.run()
    node.run()
    assert fleet.totals() == {"sent": 1, "skipped:superseded": 1}
    assert fleet.queue() == {f"a {START + 2 * SECOND}": 1}


def test_failures_that_may_pass_end_after_some_attempts(fleet, node):
    node.put("a", Interval(3600 * SECOND))
    node.run()
    node.delivery.before = raising(DeliveryFailed("sometimes"))
    fleet.advance(3600)
    for _ in range(200):
        node.run()
        fleet.advance(1)
    assert fleet.totals() == {"skipped:attempts": 1}
    assert node.events[-1].attempt == MOST_ATTEMPTS + 1


def test_a_failure_that_will_not_pass_is_settled_at_once_and_the_others_go_on(fleet, node):
    node.put("bad")
    node.put("good")
    node.run()

    def before(tick):
        if tick.entry == "bad":
            raise DeliveryImpossible("not serialisable")

    node.delivery.before = before
    fleet.advance(1)
    node.run()
    assert sorted(node.outcomes()) == [("bad", "skipped:error"), ("good", "sent")]
    assert "not serialisable" in next(e.detail for e in node.events if e.tick.entry == "bad")
    assert not fleet.server.open


def test_no_message_is_settled_as_not_sent(fleet, node):
    node.put("a")
    node.run()
    node.delivery.before = lambda _tick: Delivered.NOTHING
    fleet.advance(1)
    node.run()
    assert node.outcomes() == [("a", "skipped:not_sent")]


def test_a_paused_entry_is_neither_sent_nor_counted_and_goes_on_where_it_was(fleet, node):
    node.put("a")
    node.run()
    operator = MemorySteering(fleet.server, who="ann", clock=node.clock)
    (revision,) = operator.pause(["a"])
    fleet.advance(3)
    node.run()
    assert node.events == []
    assert fleet.totals() == {}
    operator.resume([Resumption("a", revision)])
    fleet.advance(1)
    node.run()
    assert fleet.totals() == {"sent": 1, "skipped:superseded": 3}


def test_a_published_message_is_settled_even_if_the_first_answer_is_lost(fleet):
    node = fleet.add(enqueues=False)
    node.put("a", Interval(3600 * SECOND))
    node.run()
    ledger = node.dispatcher.ledger
    settle = ledger.settle

    def lost(settlements):
        settle(settlements)
        ledger.settle = settle
        raise LedgerUnavailable("reply lost")

    ledger.settle = lost
    fleet.advance(3600)
    node.node.run()
    assert node.events == []
    fleet.advance(1)
    node.run()
    assert node.outcomes() == [("a", "sent")]
    assert len(node.delivery.messages) == 1
    assert fleet.totals() == {"sent": 1}


def test_a_lost_answer_to_a_claim_is_asked_for_again(fleet, node):
    node.put("a")
    node.run()
    ledger = node.dispatcher.ledger
    claim = ledger.claim

    def lost(asks, *more):
        claim(asks, *more)
        ledger.claim = claim
        raise LedgerUnavailable("reply lost")

    ledger.claim = lost
    fleet.advance(1)
    node.node.run()
    node.run()
    assert node.outcomes() == [("a", "sent")]
    assert node.events[0].attempt == 1


def test_an_enqueue_without_an_answer_is_not_tried_again_by_its_node(fleet, node):
    node.put("a")
    node.run()
    tried = []

    def before(tick):
        tried.append(tick)
        raise LedgerUnavailable("reply lost")

    node.delivery.before = before
    fleet.advance(1)
    node.node.run()
    fleet.advance(0.1)
    node.node.run()
    assert len(tried) == 1
    node.delivery.before = lambda _tick: None
    fleet.advance(LEASE / SECOND)
    node.run()
    assert f"a {START + SECOND}" in fleet.queue()


def test_a_grant_whose_lease_is_over_is_not_tried(fleet, node):
    node.put("a", Interval(3600 * SECOND))
    node.put("b", Interval(3600 * SECOND))
    node.run()

    def slow(_tick):
        fleet.advance(LEASE / SECOND + 1)

    node.delivery.before = slow
    fleet.advance(3600)
    node.node.run()
    tried = [message.name for message in node.delivery.messages]
    assert len(tried) == 1
    node.delivery.before = lambda _tick: None
    node.run()
    assert set(fleet.queue().values()) == {1}
    assert len(fleet.queue()) == 2


def test_who_leaves_gives_back_what_it_holds(fleet):
    leaving, other = fleet.add(), fleet.add()
    for each in (leaving, other):
        each.put("a")
        each.put("b")
        each.run()

    def interrupted(_tick):
        raise SystemExit

    leaving.delivery.before = interrupted
    fleet.advance(1)
    with pytest.raises(SystemExit):
        leaving.node.run()
    leaving.node.leave()
    leaving.node.leave()
    other.run()
    other.run()
    assert sorted(other.outcomes()) == [("a", "sent"), ("b", "sent")]
    assert {event.attempt for event in other.events} == {1}


def test_who_leaves_tries_nothing_more_even_if_its_exit_is_swallowed(fleet):
    leaving = fleet.add(enqueues=False)
    leaving.put("a")
    leaving.put("b")
    leaving.run()

    def swallowing(_tick):
        leaving.node.leave()

    leaving.delivery.before = swallowing
    fleet.advance(1)
    leaving.dispatcher.step(fleet.now + SECOND)
    assert len(leaving.delivery.messages) == 1


def test_who_leaves_without_having_met_the_ledger_says_nothing_to_it(fleet, node):
    node.dispatcher.ledger.sibling = None
    node.node.leave()
    assert node.delivery.closed == 1


def test_who_leaves_tells_so_once(fleet, node):
    node.run()
    node.node.leave("farewell")
    node.dispatcher.ledger.sibling = None
    node.node.leave("again")
    assert list(fleet.server.beats.values()) == ["farewell"]


def test_an_entry_whose_own_code_raises_is_settled_as_an_error_and_the_others_go_on(fleet, node):
    class Uncountable(Interval):
        def count_between(self, after, before):
            raise ZeroDivisionError("cannot count")

    node.put("bad", Uncountable(SECOND))
    node.put("good")
    node.run()
    fleet.advance(1)
    node.run()
    assert sorted(node.outcomes()) == [("bad", "skipped:error"), ("good", "sent")]


def test_an_observer_that_raises_stops_nothing(fleet, node):
    node.put("a")
    node.run()

    def broken(_event):
        raise ValueError("observer")

    node.dispatcher.teller.observe = broken
    fleet.advance(1)
    node.run()
    assert fleet.totals() == {"sent": 1}


def test_orphans_and_a_slow_broker_cost_a_backlog_nothing(fleet):
    dying, other = fleet.add(), fleet.add()
    for each in (dying, other):
        each.put("a", Interval(10 * SECOND), catch_up="all")
        each.put("b", Interval(3600 * SECOND))
        each.run()
    other.delivery.before = lambda _tick: fleet.advance(2)
    fleet.advance(3600)
    dying.claim_only(Tick("b", START + 3600 * SECOND))
    fleet.advance(6)
    other.run()
    due = (fleet.now - START) // (10 * SECOND)
    assert len(fleet.queue()) == due + 1
    assert fleet.totals() == {"sent": due + 1}


def test_a_grant_that_ran_out_untried_was_no_attempt(fleet):
    names = [f"e{number}" for number in range(30)]
    started = fleet.add()
    for name in names:
        started.put(name, Interval(3600 * SECOND))
    started.run()
    fleet.advance(3600)
    for _ in range(40):  # each a new process, which sends a few and is replaced
        node = fleet.add()
        node.delivery.before = lambda _tick: fleet.advance(0.9)
        for name in names:
            node.put(name, Interval(3600 * SECOND))
        node.node.run()
        node.node.run()
    assert fleet.totals() == {"sent": 30}


def test_a_pass_is_bounded_in_time_and_keeps_what_it_holds(fleet, node):
    for number in range(10):
        node.put(f"e{number}", Interval(3600 * SECOND))
    node.run()
    node.delivery.before = lambda _tick: fleet.advance(0.4)
    fleet.advance(3600)
    before = fleet.now
    assert node.node.run() == 0
    assert fleet.now - before < 1.5 * SECOND
    node.run()
    assert fleet.totals() == {"sent": 10}
    assert {event.attempt for event in node.events} == {1}


def test_no_more_is_claimed_than_can_be_sent_within_a_lease(fleet, node):
    for number in range(50):
        node.put(f"e{number}", Interval(3600 * SECOND))
    node.run()
    node.delivery.before = lambda _tick: fleet.advance(1)
    fleet.advance(3600)
    node.run()
    assert {event.attempt for event in node.events} == {1}
    assert fleet.totals() == {"sent": 50}


def test_what_is_held_of_an_entry_that_is_removed_here_is_left_to_the_others(fleet):
    leaving, other = fleet.add(), fleet.add()
    for each in (leaving, other):
        each.put("a", Interval(3600 * SECOND))
        each.put("b", Interval(3600 * SECOND))
        each.run()
    fleet.advance(3600)
    leaving.delivery.before = lambda _tick: fleet.advance(1)
    leaving.node.run()
    (kept,) = leaving.dispatcher.hand.held
    leaving.remove(kept.entry)
    leaving.run()
    other.run()
    assert fleet.totals() == {"sent": 2}
    assert {event.attempt for event in leaving.events + other.events} == {1}


def test_one_message_without_an_answer_does_not_stop_the_others(fleet, node):
    for name in ("bad", "good", "well"):
        node.put(name)
    node.run()

    def before(tick):
        if tick.entry == "bad":
            raise LedgerUnavailable("timeout")

    node.delivery.before = before
    live(fleet, node, 4)
    sent = [event.tick.entry for event in node.events]
    assert sent.count("good") == sent.count("well") == 4


class AlwaysDue:
    def is_due(self, _last_run_at):
        return True, 5.0


def test_under_latest_an_opaque_schedule_leaves_one_open_tick_in_an_outage(fleet, node):
    node.put("a", Opaque(AlwaysDue()))
    node.run()
    node.delivery.before = raising(BrokerUnreachable("down"))
    live(fleet, node, 60)
    assert len(fleet.server.open) == 1
    node.delivery.before = lambda _tick: None
    live(fleet, node, 6)
    assert fleet.totals()["sent"] == 2


def test_a_clock_of_the_server_that_is_set_back_stops_nothing_for_long(fleet):
    node, dead = fleet.add(), fleet.add()
    for each in (node, dead):
        each.put("a")
        each.put("opaque", Opaque(AlwaysDue()))
        each.run()
    live(fleet, node, 3)
    dead.claim_only(Tick("b", fleet.now))
    fleet.server_shift -= 1800 * SECOND
    node.put("b", Interval(2 * SECOND))
    live(fleet, node, 4)
    assert ("b", "sent") in node.outcomes()
    assert node.run() > 0


def test_a_node_that_starts_behind_the_mark_of_an_opaque_schedule_does_not_spin(fleet, node):
    node.put("a", Opaque(AlwaysDue()))
    live(fleet, node, 10)
    fleet.server_shift -= 30 * SECOND
    late = fleet.add()
    late.put("a", Opaque(AlwaysDue()))
    assert late.run() > 0


def answering(node, **changes):
    """Change the next answer of the ledger to this node's claim."""
    ledger = node.dispatcher.ledger
    claim = ledger.claim

    def once(asks, *more):
        ledger.claim = claim
        claimed = claim([], *more)
        answers = [Answer(ask.tick, **changes) for ask in asks]
        return replace(claimed, answers=answers)

    ledger.claim = once


@pytest.mark.parametrize(
    ("verdict", "mark", "moves_to"),
    [
        (Verdict.SETTLED, START + SECOND, START + SECOND),
        (Verdict.HELD, START + SECOND, START + SECOND),
        (Verdict.EARLY, START + SECOND, START),
        (Verdict.PAUSED, START + SECOND, START),
    ],
)
def test_a_cursor_moves_to_the_answered_mark_and_only_by_a_verdict_on_the_tick(
    fleet, node, verdict, mark, moves_to
):
    node.put("a")
    node.run()
    fleet.advance(3)
    answering(node, verdict=verdict, mark=mark, wait=SECOND)
    node.dispatcher.step(fleet.now + SECOND)
    assert node.dispatcher.due.get("a").cursor == moves_to
    assert node.dispatcher.witness.marks["a"] == mark


def test_a_mark_that_was_answered_for_an_entry_that_is_gone_here_is_remembered(fleet):
    dying, other = fleet.add(), fleet.add()
    dying.put("gone")
    dying.run()
    other.run()
    fleet.advance(1)
    dying.claim_only(Tick("gone", fleet.now))
    live(fleet, other, (FORLORN_AFTER + 2) * LEASE / SECOND)
    assert other.dispatcher.witness.marks["gone"] == START + SECOND


def test_an_entry_that_the_ledger_does_not_know_any_more_is_registered_again(fleet, node):
    node.put("a")
    node.run()
    del fleet.server.marks["a"]
    live(fleet, node, 3)
    assert fleet.totals()["sent"] >= 1


def test_what_was_published_is_settled_before_it_can_come_back_as_an_orphan(fleet):
    node = fleet.add(enqueues=False)
    node.put("a", Interval(3600 * SECOND))
    node.run()
    ledger = node.dispatcher.ledger
    settle = ledger.settle

    def away(_settlements):
        ledger.settle = settle
        raise LedgerUnavailable("cut before the server")

    ledger.settle = away
    fleet.advance(3600)
    node.node.run()
    fleet.advance(LEASE / SECOND + 1)
    node.run()
    assert len(node.delivery.messages) == 1
    assert fleet.totals() == {"sent": 1}


def test_who_leaves_settles_what_it_has_published(fleet):
    node = fleet.add(enqueues=False)
    node.put("a", Interval(3600 * SECOND))
    node.run()
    ledger = node.dispatcher.ledger
    settle = ledger.settle

    def away(_settlements):
        raise LedgerUnavailable("away")

    ledger.settle = away
    fleet.advance(3600)
    node.node.run()
    ledger.settle = settle
    node.node.leave()
    assert fleet.totals() == {"sent": 1}


def test_a_slow_publisher_that_is_granted_its_own_tick_again_does_not_publish_it_again():
    fleet = Fleet()
    slow, other = (fleet.add(enqueues=False) for _ in range(2))
    for node in (slow, other):
        node.put("a")
        node.run()
    fleet.advance(1)
    settle = slow.dispatcher.ledger.settle

    def overtaken(settlements):
        # Its lease ends before it can settle; another node takes the tick over, and dies.
        slow.dispatcher.ledger.settle = settle
        fleet.advance(6)
        other.claim_only(settlements[0].grant.tick)
        return settle(settlements)

    slow.dispatcher.ledger.settle = overtaken
    slow.run()
    fleet.advance(6)
    slow.run()
    sent = [
        message.options.get("headers", {}).get("redlock_tick") for message in slow.delivery.messages
    ]
    assert len(sent) == len(set(sent))
    assert fleet.totals()["sent"] == len(sent)
