"""What a node does with pauses: it asks for nothing of them, and ends those that are over."""

import pytest

from celery_redlock_beat.ledger.memory_steering import MemorySteering
from celery_redlock_beat.ledger.steering import Resumption
from celery_redlock_beat.remainder import remainder
from celery_redlock_beat.ticks import SECOND, Reason, Tick
from support.fleet import START, Fleet


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def operator(fleet):
    return MemorySteering(fleet.server, who="ann", hold_down=0)


@pytest.fixture
def node(fleet):
    node = fleet.add()
    node.put("a")
    node.put("b")
    live(fleet, node, 1)
    return node


def live(fleet, *nodes, seconds=None):
    """Let nodes pass once now, and once a second."""
    *nodes, seconds = nodes if seconds is None else (*nodes, seconds)
    for each in nodes:
        each.run()
    for _ in range(seconds):
        fleet.advance(1)
        for each in nodes:
            each.run()


def asks_of(node):
    """Note the entries that a node asks for from now on."""
    asked, claim = [], node.dispatcher.ledger.claim

    def noting(asks, *rest):
        asked.extend(ask.tick.entry for ask in asks)
        return claim(asks, *rest)

    node.dispatcher.ledger.claim = noting
    return asked


def resume(operator, entry, node, *, catch_up=False):
    look = operator.look([entry])[0]
    slot = node.dispatcher.due.get(entry)
    left = None if catch_up else remainder(look, slot, Reason.PAUSED, look.now, held=False)
    assert operator.resume([Resumption(entry, look.pause.revision, left)])[0].done


def test_what_is_paused_is_refused_once_and_then_not_asked_for(fleet, node, operator):
    operator.pause(["a"])
    asked = asks_of(node)
    live(fleet, node, 5)
    assert asked.count("a") <= 1
    assert asked.count("b") == 5
    assert fleet.totals() == {"sent": 7}


def test_what_is_resumed_is_asked_for_with_the_next_tick(fleet, node, operator):
    operator.pause(["a"])
    live(fleet, node, 5)
    resume(operator, "a", node)
    live(fleet, node, 1)
    assert fleet.queue()[f"a {START + 7 * SECOND}"] == 1
    assert fleet.totals() == {"sent": 2 + 5 + 2, "skipped:paused": 5}


def test_what_is_resumed_to_catch_up_does_so_by_its_policy(fleet, node, operator):
    node.put("a", catch_up="all")
    operator.pause(["a", "b"])
    live(fleet, node, 5)
    for entry in ("a", "b"):
        resume(operator, entry, node, catch_up=True)
    live(fleet, node, 1)
    assert fleet.totals() == {"sent": 2 + 6 + 2, "skipped:superseded": 4}


def test_a_pause_that_is_over_is_ended_by_a_node_and_what_was_due_is_counted(fleet, node, operator):
    operator.pause(["a"], until=fleet.now + 3 * SECOND)
    live(fleet, node, 6)
    assert operator.look(["a"])[0].pause is None
    assert fleet.totals() == {"sent": 2 + 6 + 3, "skipped:paused": 3}
    record = next(each for each in fleet.server.history if each["outcome"] == "resumed")
    assert record["detail"] == "its time was over"


def test_several_nodes_end_a_pause_once(fleet, node, operator):
    nodes = [node, *(fleet.add() for _ in range(2))]
    for each in nodes[1:]:
        each.put("a")
    operator.pause(["a"], until=fleet.now + 2 * SECOND)
    live(fleet, *nodes, 5)
    outcomes = [each["outcome"] for each in fleet.server.history]
    assert outcomes.count("resumed") == 1
    assert fleet.totals()["skipped:paused"] == 2


def test_a_pause_of_an_entry_that_a_node_gets_later_holds_it_back(fleet, node, operator):
    operator.pause(["later"])
    live(fleet, node, 1)
    asked = asks_of(node)
    node.put("later")
    live(fleet, node, 3)
    assert "later" not in asked


def test_a_grant_that_is_paused_before_it_is_sent_is_not_sent(fleet, node, operator):
    def pause(tick):
        if tick.entry == "a" and not operator.look(["a"])[0].pause:
            operator.pause(["a"])

    node.delivery.before = pause
    live(fleet, node, 3)
    assert [text for text in fleet.queue() if text.startswith("a ")] == [f"a {START + SECOND}"]
    assert Tick("a", START + 2 * SECOND) in fleet.server.open


def test_a_pause_is_a_pause_whatever_somebody_wrote(fleet, node):
    fleet.server.paused["a"] = b"\xff not ours"
    live(fleet, node, 3)
    assert not any(text > f"a {START + SECOND}" for text in fleet.queue() if text[0] == "a")
    assert node.run() > 0
