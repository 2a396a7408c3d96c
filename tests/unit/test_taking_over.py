"""Nodes go on where another scheduler stopped, and agree on it; time is moved by hand."""

from __future__ import annotations

import pytest

from celery_redlock_beat.host import LastRun
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import Bounded, Interval
from support.fleet import START, Fleet

EVERY = 30 * SECOND
PHASE = 7 * SECOND
STOPPED = START - 100 * SECOND + PHASE  # START is a multiple of the period


@pytest.fixture
def fleet():
    return Fleet()


def after(at):
    """Know of another scheduler that sent everything until an instant."""
    return lambda _name: LastRun(at)


def sent(fleet):
    return sorted(int(text.split(" ")[1]) - START for text in fleet.queue())


def run_for(fleet, seconds, *nodes):
    for _ in range(seconds):
        fleet.advance(1)
        for node in nodes:
            node.run()


class TestAnInterval:
    def test_goes_on_with_the_phase_of_its_last_run(self, fleet):
        node = fleet.add(last_run=after(STOPPED))
        node.put("a", Interval(EVERY), takes_phase=True, catch_up="all")
        run_for(fleet, 60, node)
        first = STOPPED + EVERY - START
        assert sent(fleet) == [first + i * EVERY for i in range(5)]

    def test_sends_the_newest_of_what_was_missed_by_default(self, fleet):
        node = fleet.add(last_run=after(STOPPED))
        node.put("a", Interval(EVERY), takes_phase=True)
        node.run()
        assert len(sent(fleet)) == 1

    def test_keeps_its_own_phase_if_it_says_one(self, fleet):
        node = fleet.add(last_run=after(STOPPED))
        node.put("a", Interval(EVERY, 3 * SECOND), catch_up="all")
        run_for(fleet, 60, node)
        assert {at % EVERY for at in sent(fleet)} == {3 * SECOND}

    def test_goes_on_within_its_bounds(self, fleet):
        node = fleet.add(last_run=after(STOPPED))
        bounded = Bounded(Interval(EVERY), None, START + 50 * SECOND)
        node.put("a", bounded, takes_phase=True, catch_up="all")
        run_for(fleet, 120, node)
        assert {at % EVERY for at in sent(fleet)} == {(STOPPED - START) % EVERY}
        assert max(sent(fleet)) <= 50 * SECOND

    def test_goes_on_on_every_node_also_on_one_that_knows_of_no_other_scheduler(self, fleet):
        one, two = fleet.add(last_run=after(STOPPED)), fleet.add()
        for node in (one, two):
            node.put("a", Interval(EVERY), takes_phase=True, catch_up="all")
            node.run()
        run_for(fleet, 90, two, one)
        assert {at % EVERY for at in sent(fleet)} == {(STOPPED - START) % EVERY}
        assert len(set(sent(fleet))) == len(sent(fleet))

    def test_goes_on_after_all_data_was_lost_for_those_who_come_later(self, fleet):
        one = fleet.add(last_run=after(STOPPED))
        one.put("a", Interval(EVERY), takes_phase=True)
        run_for(fleet, 35, one)
        fleet.server.flush()
        run_for(fleet, 5, one)
        two = fleet.add()
        two.put("a", Interval(EVERY), takes_phase=True)
        run_for(fleet, 90, two, one)
        assert {at % EVERY for at in sent(fleet)} == {(STOPPED - START) % EVERY}

    def test_follows_the_ledger_where_that_knows_nothing_of_its_phase_any_more(self, fleet):
        """A node that slept through a whole recovery, while others began anew."""
        one = fleet.add(last_run=after(STOPPED))
        one.put("a", Interval(EVERY), takes_phase=True)
        run_for(fleet, 35, one)
        fleet.server.flush()
        two = fleet.add()
        two.put("a", Interval(EVERY), takes_phase=True)
        run_for(fleet, 35, two)
        before = len(sent(fleet))
        run_for(fleet, 95, two, one)
        assert {at % EVERY for at in sent(fleet)[before:]} == {0}

    def test_begins_anew_with_another_period(self, fleet):
        node = fleet.add(last_run=after(STOPPED))
        node.put("a", Interval(EVERY), takes_phase=True)
        run_for(fleet, 5, node)
        before = len(sent(fleet))
        node.put("a", Interval(2 * EVERY), takes_phase=True)
        run_for(fleet, 130, node)
        assert {at % (2 * EVERY) for at in sent(fleet)[before:]} == {0}


def test_a_node_is_told_whether_an_entry_begins_there(fleet):
    heard = []
    node = fleet.add(last_run=after(STOPPED), seeded=lambda *told: heard.append(told))
    node.put("a", Interval(EVERY), takes_phase=True)
    run_for(fleet, 40, node)
    node.put("a", Interval(EVERY), takes_phase=True)
    late = fleet.add(last_run=after(STOPPED - SECOND), seeded=lambda *told: heard.append(told))
    late.put("a", Interval(EVERY), takes_phase=True)
    late.run()
    assert heard == [("a", True), ("a", False)]


class TestTurns:
    def test_nothing_is_asked_for_while_it_is_the_other_ones_turn(self, fleet):
        ours = []
        node = fleet.add(may_send=lambda: bool(ours))
        node.put("a", Interval(SECOND))
        run_for(fleet, 5, node)
        assert not sent(fleet)
        assert node.dispatcher.ledger.node in fleet.server.nodes
        assert not any(node.node.problems().values())
        assert node.run() == SECOND // 2
        ours.append(True)
        run_for(fleet, 3, node)
        assert sent(fleet)

    def test_what_is_in_hand_is_given_back_when_a_turn_ends(self, fleet):
        turn = [True]
        node, other = fleet.add(may_send=lambda: turn[-1]), fleet.add()
        for each in (node, other):
            each.put("a", Interval(SECOND))
            each.run()
        node.delivery.is_ready = True
        fleet.advance(1)
        grant = (
            node.dispatcher.ledger.claim(node.dispatcher.due.asks(fleet.now, 1)).answers[0].grant
        )
        node.dispatcher.hand.take(grant, fleet.now + 5 * SECOND)
        turn.append(False)
        node.run()
        other.run()
        assert not node.dispatcher.hand
        assert [at for at in sent(fleet) if at == grant.tick.at - START] == [grant.tick.at - START]

    def test_what_the_other_one_sent_meanwhile_is_not_sent_again(self, fleet):
        runs = {}
        node = fleet.add(last_run=runs.get)
        node.put("a", Interval(EVERY), takes_phase=True, catch_up="all")
        run_for(fleet, 31, node)
        fleet.advance(300)  # in which the other scheduler has its turn
        runs["a"] = LastRun(fleet.now - 2 * SECOND, again=True)
        before = sent(fleet)
        node.put("a", Interval(EVERY), takes_phase=True, catch_up="all")
        run_for(fleet, 31, node)
        assert sent(fleet)[len(before) :] == [runs["a"].at + EVERY - START]
