"""What a node does between two messages to a broker that takes whatever it is given."""

import pytest

from celery_redlock_beat.ledger.memory_steering import MemorySteering
from celery_redlock_beat.ledger.steering import Resumption
from support.fleet import Fleet


@pytest.fixture
def fleet():
    return Fleet()


@pytest.fixture
def operator(fleet):
    return MemorySteering(fleet.server, who="ann", hold_down=0)


@pytest.fixture
def node(fleet):
    node = fleet.add(enqueues=False)
    node.put("a", catch_up="all")
    node.put("b", catch_up="all")
    node.run()
    return node


def sent(node, entry):
    return sum(1 for each in node.delivery.messages if each.name == entry)


def when_sending(node, deed, number=1, entry="a"):
    """Do something while the message of an entry's so manieth tick is on its way."""
    seen = []

    def before(tick):
        seen.append(tick.entry)
        if tick.entry == entry and seen.count(entry) == number:
            deed()

    node.delivery.before = before


def test_of_what_was_granted_together_one_message_comes_after_a_pause(fleet, node, operator):
    when_sending(node, lambda: operator.pause(["a"]), number=3)
    fleet.advance(10)
    node.run()
    assert sent(node, "a") == 3
    assert sent(node, "b") == 10


def test_what_was_given_back_is_sent_by_the_next_one_after_the_pause(fleet, node, operator):
    when_sending(node, lambda: operator.pause(["a"]), number=3)
    fleet.advance(10)
    node.run()
    other = fleet.add(enqueues=False)
    other.put("a", catch_up="all")
    revision = operator.look(["a"])[0].pause.revision
    assert operator.resume([Resumption("a", revision)])[0].done
    other.run()
    assert sent(other, "a") == 7
    assert fleet.totals() == {"sent": 20}


def test_what_is_granted_and_sent_one_by_one_costs_no_look(fleet, node):
    looked, look = [], node.dispatcher.ledger.look
    node.dispatcher.ledger.look = lambda entries: looked.append(entries) or look(entries)
    for _ in range(5):
        fleet.advance(1)
        node.run()
    assert looked == []
    assert sent(node, "a") == 5


def test_a_look_holds_for_a_moment_only(fleet, node, operator):
    def dawdle_and_pause():
        fleet.advance(0.2)
        operator.pause(["b"])

    when_sending(node, dawdle_and_pause)
    fleet.advance(1)
    node.run()
    assert (sent(node, "a"), sent(node, "b")) == (1, 0)


def test_a_ledger_that_lost_its_data_hears_of_what_is_in_hand(fleet, node):
    when_sending(node, fleet.server.flush, number=3)
    fleet.advance(10)
    node.run()
    node.run()
    assert sent(node, "a") == 10
    assert len({each.options["task_id"] for each in node.delivery.messages}) == 20
