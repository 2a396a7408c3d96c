"""When operators are answered at all, and what nodes tell of themselves."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import LedgerRecovering, LedgerUnavailable
from celery_redlock_beat.ledger import Registration, Verdict
from celery_redlock_beat.ledger.steering import (
    Definition,
    Removal,
    Resumption,
    Shot,
    Step,
)
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import SECOND, Tick
from ledger.places import HOLD_DOWN, MINUTE, claim, due_ticks, grant, join, register, stored

DAY = 86_400 * SECOND
VERBS = {
    "store": lambda op: op.store([Definition("{}", Registration("new", "daily"))]),
    "remove": lambda op: op.remove([Removal("tidy", 1)]),
    "pause": lambda op: op.pause(["tidy"]),
    "resume": lambda op: op.resume([Resumption("tidy", 1)]),
    "skip": lambda op: op.skip([Tick("tidy", 1)]),
    "fire": lambda op: op.fire(Shot("tidy", "id"), Step.RESERVE),
}


@pytest.fixture(params=VERBS)
def verb(request):
    return VERBS[request.param]


def refuses(ledgers, operator, verb):
    before = ledgers.records()
    with pytest.raises(LedgerRecovering):
        verb(operator)
    assert ledgers.records() == before
    return True


def test_a_ledger_that_no_node_has_been_at_is_begun_by_an_operator(ledgers, verb):
    op = ledgers.operator(hold_down=HOLD_DOWN)
    assert refuses(ledgers, op, verb)
    assert 0 < op.begin() <= HOLD_DOWN
    assert refuses(ledgers, op, verb)
    ledgers.pass_time(HOLD_DOWN)
    assert op.begin() == 0
    verb(op)
    assert op.begin() == 0


def test_a_node_finds_what_was_stored_before_it_was_there(ledgers):
    op = ledgers.operator()
    assert op.begin() == 0
    revision = stored(op)
    node = ledgers.node()
    assert [each.revision for each in node.changes(0).changes] == [revision]
    tick = Tick("tidy", ledgers.record("tidy").mark + 1)
    ledgers.pass_time(2)
    assert claim(node, tick, revision=revision).verdict is Verdict.GRANTED


def test_operators_wait_while_nodes_recover(ledgers, a, op, verb):
    ledgers.restart()
    assert refuses(ledgers, op, verb)
    join(a)
    verb(op)


@pytest.mark.parametrize("key", ["marks", "open", "grants", "pauses", "entries"])
def test_operators_wait_where_a_key_was_lost(ledgers, a, op, verb, key):
    getattr(ledgers, f"lose_{key}")()
    assert refuses(ledgers, op, verb)
    assert op.begin() == 0
    verb(op)
    with pytest.raises(LedgerRecovering):
        a.claim([])  # whoever has something to tell must tell it
    join(a)


def test_an_operator_does_not_speak_for_nodes(ledgers, a, op):
    register(a, "tidy")
    ledgers.restart()
    assert op.begin() == 0
    with pytest.raises(LedgerRecovering):
        a.claim([])
    join(a)
    a.claim([])


def test_an_operator_who_begins_waits_for_the_nodes_that_know_what_is_in_doubt(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    ledgers.flush()
    (doubt,) = a.recover(Testimony([Memory("tidy", tick.at, sure=tick.at - 1)])).doubts
    assert op.begin() > 0
    a.resolve({doubt: [tick.at]})
    assert op.begin() == 0


def test_an_operator_who_begins_lets_open_ticks_keep_a_lease(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    grant(a, tick)
    ledgers.lose_open()
    earliest = ledgers.now()
    assert op.begin() == 0
    assert ledgers.open_ticks()[tick] >= earliest + MINUTE


def test_an_operator_hears_of_the_fence_and_gives_higher_ones(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    op.look(["tidy"])
    assert op.fence == held.fence
    assert op.pause(["tidy"])[0] > held.fence


class TestWhatANodeTellsOfItself:
    def test_comes_with_its_claim_and_stays_until_there_is_news(self, ledgers, a, b):
        a.claim([], 0, '{"version": "größe"}')
        a.claim([])
        b.claim([], 0, "{}")
        assert ledgers.beats() == {a.node: '{"version": "größe"}', b.node: "{}"}
        a.claim([], 0, '{"version": 2}')
        assert ledgers.beats()[a.node] == '{"version": 2}'

    def test_is_forgotten_with_its_heartbeat(self, ledgers, a, b):
        a.claim([], 0, "{}")
        ledgers.set_heartbeat(a.node, ledgers.now() - DAY)
        b.claim([], 0, "{}")
        assert ledgers.beats().keys() == ledgers.heartbeats().keys() == {b.node}

    def test_is_that_it_has_left_and_since_when_it_was_there(self, ledgers, a):
        a.claim([], 0, "{}")
        before = ledgers.heartbeats()
        a.depart('{"left": true}')
        assert ledgers.beats() == {a.node: '{"left": true}'}
        assert ledgers.heartbeats() == before

    def test_is_refused_like_all_else_while_a_recovery_runs(self, ledgers, a):
        ledgers.restart()
        with pytest.raises(LedgerRecovering):
            a.depart("{}")

    def test_stops_no_claim_where_its_key_holds_another_type(self, served):
        node = served.node()
        (tick,) = due_ticks(served, node)
        served.client.set(served.keys["beats"], "of somebody else")
        node.claim([], 0, "{}")
        grant(node, tick)
        with pytest.raises(LedgerUnavailable, match="beats' is ours, and holds a string"):
            node.depart("{}")
