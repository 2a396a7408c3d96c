"""An explicit-state model of the ledger protocol: its laws hold, and each rule is needed.

Every state that a bounded world can reach is visited, with the faults that the world allows. With
all rules on no law breaks; with any rule left out one does, and the shortest way there is told.
docs/model.md says what is modelled. These rules of PROTOCOL.md are out of the model's reach:

rule                                  why                      held by, in tests/
orphans come from a cursor that wraps paging of answers        ledger/test_claim.py
a node's name is made after the fork  a name is a number here  ledger/test_server.py
a mark an hour ahead is refused       ticks have no distance   ledger/test_recover.py
numbers are written in full           ticks are small numbers  ledger/test_names_and_numbers.py
types are checked before all else     a key has one type here  ledger/test_disorder.py
settled grants are swept in time      they are kept for ever   ledger/test_settle.py
the feed is told in parts             paging of answers        ledger/test_changes.py
"""

from __future__ import annotations

import pytest

from model.bounds import Bounds, World
from model.explore import explore, shortest
from model.rules import TEXTS, Rules
from model.telling import told
from model.worlds import NOTICED, WORLDS, world_of


def name(bounds: Bounds) -> str:
    return f"{bounds.name}, {bounds.delivery}"


@pytest.mark.parametrize("bounds", WORLDS, ids=name)
def test_the_laws_hold_in_every_reachable_state(bounds):
    found = explore(World(bounds))
    print(f"{found.states:,} states")  # noqa: T201 - shown with -s, and where it fails
    assert not found.law, told(found)


def test_an_entry_that_only_nodes_register_may_lose_its_first_tick():
    # Neither rule alone loses it: a node that registers late does so as of the storing.
    rules = Rules().without("store_registers").without("known_since_stored")
    found = shortest(World(world_of(("add and change", "enqueue")), rules))
    assert found.law == "a tick fell due while the entry was in force, and will not be sent"


@pytest.mark.parametrize("rule", TEXTS)
def test_without_the_rule_a_law_breaks(rule):
    found = shortest(World(world_of(NOTICED[rule]), Rules().without(rule)))
    assert found.law
    assert found.trace
