"""A node over time: outages, recoveries, entries that come and go."""

import logging
from dataclasses import replace

import pytest

from celery_redlock_beat.errors import LedgerRecovering, LedgerUnavailable
from celery_redlock_beat.ledger import Answer, Verdict
from celery_redlock_beat.ticks import SECOND, Tick
from celery_redlock_beat.timetables.interval import Interval
from support.fleet import START, Fleet


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def node(fleet):
    node = fleet.add()
    node.put("a")
    node.run()
    return node


def test_it_sleeps_until_the_next_tick_and_at_most_the_poll(fleet, node):
    assert node.run() == SECOND // 2
    fleet.advance(0.75)
    assert node.run() == SECOND // 4


def test_an_outage_is_told_once_and_so_is_its_end(fleet, node, caplog):
    caplog.set_level(logging.INFO)
    ledger = node.dispatcher.ledger
    claim = ledger.claim

    def away(asks, *more):
        raise LedgerUnavailable("connection refused", "start the server")

    ledger.claim = away
    for _ in range(8):
        assert 0 < node.node.run() <= SECOND
        fleet.advance(1)
    ledger.claim = claim
    node.run()
    told = [record.message for record in caplog.records if record.name.endswith(".node")]
    assert len(told) == 2
    assert "start the server" in told[0]
    assert "back after 8.0 s" in told[1]
    assert fleet.totals() == {"sent": 1, "skipped:superseded": 7}


def test_after_a_flush_nodes_push_what_they_remember_and_nothing_is_doubled(fleet):
    nodes = [fleet.add() for _ in range(2)]
    for each in nodes:
        each.put("a", catch_up="all")
        each.run()
    for _ in range(3):
        fleet.advance(1)
        for each in nodes:
            each.run()
    before = fleet.queue()
    fleet.server.flush()
    fleet.advance(1)
    for each in nodes:
        each.run()
    for each in nodes:
        each.run()
    assert all(each.delivery.resets for each in nodes)
    assert not set(before) & set(fleet.queue())
    assert fleet.queue() == {f"a {START + 4 * SECOND}": 1}


def test_every_node_comes_out_of_a_recovery_whoever_ends_it(fleet, caplog):
    caplog.set_level(logging.INFO)
    nodes = [fleet.add(hold_down=3.0) for _ in range(2)]
    for each in nodes:
        each.put("a")
        assert each.node.run() == SECOND // 2
    fleet.advance(3)
    for each in nodes:
        each.run()
    heard = [record for record in caplog.records if "has heard this node" in record.message]
    assert len(heard) == 2
    assert not any(each.dispatcher.claims.unregistered for each in nodes)


def test_a_mark_of_an_entry_that_is_gone_here_is_pushed_too(fleet, node):
    fleet.advance(1)
    node.run()
    node.remove("a")
    fleet.server.flush()
    node.run()
    assert fleet.server.marks["a"].mark == START + SECOND


def test_an_entry_that_comes_back_catches_up_nothing(fleet, node):
    node.remove("a")
    fleet.advance(30.5)
    node.run()
    node.put("a", catch_up="all")
    node.run()
    assert "sent" not in fleet.totals()
    fleet.advance(0.5)
    node.run()
    assert fleet.totals() == {"sent": 1, "skipped:before_registration": 30}


def test_a_changed_timetable_catches_up_nothing(fleet, node):
    fleet.advance(30.25)
    node.put("a", Interval(2 * SECOND), catch_up="all")
    node.run()
    assert "sent" not in fleet.totals()
    fleet.advance(2)
    node.run()
    assert fleet.totals()["sent"] == 1


def test_what_one_node_removed_goes_on_while_another_has_it(fleet, node):
    other = fleet.add()
    other.put("a")
    other.run()
    node.remove("a")
    fleet.advance(1)
    node.run()
    other.run()
    assert other.outcomes() == [("a", "sent")]


def test_a_recovery_in_a_rolling_deploy_skips_nothing_that_is_due(fleet):
    old, new = fleet.add(), fleet.add()
    old.put("a", Interval(60 * SECOND))
    old.run()
    new.put("a", Interval(30 * SECOND))
    new.run()
    fleet.advance(60)
    fleet.server.restart()
    for _ in range(3):
        for each in (old, new):
            each.run()
    assert fleet.totals() == {"sent": 1}


def test_an_entry_that_a_deploy_brings_back_catches_up_nothing(fleet):
    first, without = fleet.add(), fleet.add()
    first.put("a", Interval(7200 * SECOND), catch_up="all")
    first.run()
    without.put("other", Interval(60 * SECOND))
    for _ in range(3 * 60):
        fleet.advance(60)
        without.run()
    back = fleet.add()
    back.put("a", Interval(7200 * SECOND), catch_up="all")
    back.run()
    assert "sent" not in {text for entry, text in back.outcomes() if entry == "a"}


def test_entries_of_living_nodes_and_of_a_fleet_that_was_down_are_not_missing(fleet):
    node = fleet.add()
    node.put("a", Interval(7200 * SECOND), catch_up="all")
    for _ in range(60):
        fleet.advance(60)
        node.run()
    fleet.advance(3600)
    late = fleet.add()
    late.put("a", Interval(7200 * SECOND), catch_up="all")
    late.run()
    assert late.outcomes() == [("a", "sent")]


def three_due(fleet, **options):
    """Return two nodes, and three ticks that are due by now."""
    nodes = [fleet.add(**options) for _ in range(2)]
    for each in nodes:
        each.put("a", catch_up="all")
        each.run()
    fleet.advance(3)
    return nodes


def test_what_was_claimed_and_not_sent_when_the_data_was_lost_is_sent(fleet):
    one, other = three_due(fleet)

    def lose(_tick):
        one.delivery.before = lambda _tick: None
        fleet.server.flush()

    one.delivery.before = lose
    for each in (one, other):
        each.run()
    assert fleet.queue() == {f"a {START + number * SECOND}": 1 for number in (1, 2, 3)}
    assert fleet.totals() == {"sent": 3}


def test_what_was_tried_without_an_answer_when_the_data_was_lost_is_in_doubt(fleet):
    one, other = three_due(fleet)
    enqueue = one.dispatcher.ledger.enqueue

    def lost(*args):
        one.dispatcher.ledger.enqueue = enqueue
        enqueue(*args)
        fleet.server.flush()
        raise LedgerUnavailable("timed out")

    one.dispatcher.ledger.enqueue = lost
    for each in (one, other):
        each.run()
    assert fleet.queue() == {f"a {START + number * SECOND}": 1 for number in (2, 3)}
    assert fleet.totals() == {"sent": 2, "in_doubt:data_loss": 1}
    assert ("a", "in_doubt:data_loss") not in other.outcomes()


def test_what_only_a_dead_node_knew_is_in_doubt_and_told(fleet):
    one, other = three_due(fleet)
    one.claim_only(Tick("a", START + SECOND))
    other.dispatcher.ledger.claim([])
    other.dispatcher.witness.hear_mark("a", START + 3 * SECOND)
    fleet.server.flush()
    fleet.advance(1)
    other.run()
    told = [event for event in other.events if event.outcome.text == "in_doubt:data_loss"]
    assert [event.tick.at for event in told] == [START + number * SECOND for number in (1, 2, 3)]
    assert fleet.queue() == {f"a {START + 4 * SECOND}": 1}


def test_a_lost_key_is_told_by_its_name_and_a_first_start_is_no_loss(fleet, node, caplog):
    assert "lost" not in caplog.text
    fleet.server.paused.clear()
    fleet.server.keepers.discard("paused")
    node.run()
    assert "The ledger had lost its key 'paused'" in caplog.text
    fleet.server.flush()
    node.run()
    assert "The ledger was empty" in caplog.text


def test_a_pause_outlives_the_loss_of_the_ledger(fleet, node):
    fleet.server.paused["a"] = "7 by ann"
    fleet.advance(1)
    node.run()
    fleet.server.flush()
    fleet.advance(1)
    node.run()
    assert fleet.server.paused == {"a": "7 by ann"}
    assert fleet.queue() == {}


def test_a_mark_of_a_clock_that_was_set_back_is_told_once_and_a_repair_is_obeyed(
    fleet, node, caplog
):
    fleet.server_shift = 1800 * SECOND
    node.run()
    fleet.advance(1)
    node.run()
    fleet.server_shift = 0
    for _ in range(5):
        fleet.advance(1)
        node.run()
    assert caplog.text.count("s ahead of the ledger's clock, which was set back") == 1
    assert "celery redlock repair" in caplog.text
    before = len(fleet.queue())
    operator = fleet.add()
    operator.run()
    operator.dispatcher.ledger.repair({"a": fleet.now}, "ann", "clock")
    node.run()
    fleet.advance(1)
    node.run()
    assert len(fleet.queue()) == before + 1
    assert "an operator set its mark" in caplog.text


def test_a_record_that_cannot_be_read_is_told_once_and_stops_no_other(fleet, node, caplog):
    node.put("b")
    node.run()
    ledger, claim = node.dispatcher.ledger, node.dispatcher.ledger.claim

    def torn(asks, *more):
        claimed = claim([ask for ask in asks if ask.tick.entry != "a"], *more)
        unread = [ask.tick for ask in asks if ask.tick.entry == "a"]
        answers = [Answer(tick, Verdict.UNREADABLE, -1) for tick in unread]
        return replace(claimed, answers=[*answers, *claimed.answers])

    ledger.claim = torn
    for _ in range(3):
        fleet.advance(1)
        node.run()
    assert caplog.text.count("cannot read what it holds") == 1
    assert {event.tick.entry for event in node.events} == {"b"}


def test_recoveries_that_never_help_are_paced(fleet, node):
    def always(asks, *more):
        raise LedgerRecovering("claim")

    node.dispatcher.ledger.claim = always
    waits = [node.node.run() for _ in range(5)]
    assert all(0 < wait <= SECOND for wait in waits)


def test_a_record_that_was_deleted_costs_no_tick_while_a_node_remembers_it(fleet, node, caplog):
    other = fleet.add()
    other.put("a")
    other.run()
    fleet.advance(1)
    node.run()
    fleet.advance(0.5)
    del fleet.server.marks["a"]
    fleet.advance(0.5)
    for each in (node, other):
        each.run()
    assert fleet.queue() == {f"a {START + number * SECOND}": 1 for number in (1, 2)}
    assert fleet.server.marks["a"].since == START
    assert caplog.text.count("the ledger had lost its record") == 1


def test_what_is_in_doubt_ahead_of_the_clock_is_due_again_after_a_repair(fleet, node):
    fleet.server_shift = 60 * SECOND
    fleet.advance(1)
    node.run()
    fleet.server_shift = 0
    fleet.server.flush()
    fleet.advance(1)
    node.run()
    assert fleet.totals()["in_doubt:data_loss"] > 1
    node.dispatcher.ledger.sibling().repair({"a": None}, "ann", "clock")
    node.dispatcher.claims.obey("a", fleet.now)
    fleet.advance(1)
    node.run()
    assert fleet.queue() == {f"a {START + 3 * SECOND}": 1}


def test_an_open_tick_that_is_not_due_holds_up_no_other(fleet, node):
    ahead = Tick("a", START + 3600 * SECOND)
    fleet.server.open[ahead] = 0
    fleet.advance(1)
    node.run()
    assert fleet.queue() == {f"a {START + SECOND}": 1}
