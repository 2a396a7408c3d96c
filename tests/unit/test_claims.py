"""What a node asks for an entry with a limit, and what it makes of the answers."""

from __future__ import annotations

import pytest

from celery_redlock_beat.claims import LONGEST_WAIT, SHORTEST_WAIT, registration_of
from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.ledger import Ask, Registration, Settlement
from celery_redlock_beat.ticks import SECOND, SENT, Tick
from celery_redlock_beat.timetables import Interval, Once
from support.fleet import LEASE, START, Fleet

DAY = 86_400 * SECOND


@pytest.fixture
def fleet():
    return Fleet()


def asked_by(node):
    """Return the list in which the asks of a node will be found."""
    asked, claim = [], node.dispatcher.ledger.claim
    node.dispatcher.ledger.claim = lambda asks, *rest: asked.extend(asks) or claim(asks, *rest)
    return asked


@pytest.mark.parametrize(
    ("lease_left", "waits"),
    [(LEASE, LONGEST_WAIT), (SECOND // 2, SECOND // 2), (1000, SHORTEST_WAIT)],
)
def test_a_tick_that_an_earlier_one_stands_in_the_way_of_is_asked_for_again(
    fleet, lease_left, waits
):
    node, other = fleet.add(), fleet.add()
    for each in (node, other):
        each.put("a", max_runs=3)
        each.run()
    fleet.advance(1)
    first = Tick("a", START + SECOND)
    (answer,) = other.dispatcher.ledger.claim([Ask(first, first.at)]).answers
    fleet.advance(1)
    fleet.server.open[first] = fleet.now + lease_left
    node.dispatcher.step(fleet.now + SECOND)
    slot = node.dispatcher.due.get("a")
    assert (slot.cursor, slot.retry_at) == (first.at, fleet.now + waits)
    other.dispatcher.ledger.settle([Settlement(answer.grant, SENT)])
    fleet.advance(1)
    node.run()
    assert [event.tick.at for event in node.events] == [START + 3 * SECOND]


def test_an_orphan_is_asked_for_with_the_limit_of_its_entry(fleet):
    dying, node = fleet.add(), fleet.add()
    for each in (dying, node):
        each.put("a", max_runs=3)
        each.run()
    fleet.advance(1)
    tick = Tick("a", START + SECOND)
    dying.claim_only(tick)
    node.run()
    fleet.advance(LEASE / SECOND)
    asked = asked_by(node)
    node.run()
    assert Ask(tick, tick.at, limit=3) in asked


def test_a_run_is_remembered_after_all_data_was_lost(fleet):
    nodes = [fleet.add(), fleet.add()]
    for each in nodes:
        each.put("a", max_runs=2)
    for _ in range(2):
        fleet.advance(1)
        for each in nodes:
            each.run()
    assert sum(fleet.queue().values()) == 1
    fleet.server.flush()
    for _ in range(5):
        fleet.advance(1)
        for each in nodes:
            each.run()
    assert fleet.server.marks["a"].runs == 2
    assert sum(len(each.delivery.messages) for each in nodes) == 2


def test_an_entry_that_nobody_remembers_is_registered_as_for_the_first_time(fleet):
    node = fleet.add()
    node.put("a", Interval(5 * SECOND), run_on_start=True)
    node.run()
    fleet.server.marks.clear()
    node.dispatcher.witness.marks.clear()
    fleet.advance(7)
    node.run()
    assert [event.tick.at for event in node.events] == [START, START + 7 * SECOND]


@pytest.mark.parametrize(
    ("slot", "registration"),
    [
        (Slot("a", Interval(DAY), Policy()), Registration("a", "interval:86400000000+0")),
        (
            Slot("a", Interval(DAY), Policy(run_on_start=True)),
            Registration("a", "interval:86400000000+0", run_on_start=True),
        ),
        (
            Slot("a", Interval(DAY), Policy(run_on_start=True, enabled=False)),
            Registration("a", "disabled interval:86400000000+0"),
        ),
        (Slot("a", Once(START), Policy()), Registration("a", f"once:{START}", once=True)),
    ],
    ids=["plain", "run_on_start", "disabled", "once"],
)
def test_an_entry_is_registered_by_what_its_slot_says(slot, registration):
    assert registration_of(slot) == registration
    assert registration_of(slot, again=True).again
