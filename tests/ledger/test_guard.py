"""Every verb but ``recover`` first asks whether the server is the one that this node pushed to."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger import Ask, Closing, Registration, Release, Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Recovery
from celery_redlock_beat.ticks import SENT
from ledger.places import MINUTE, MOMENT, claim, due_ticks, grant, join, message, push, register

VERBS = {
    "register": lambda node, held: node.register([Registration("new", "daily")]),
    "claim": lambda node, held: node.claim([Ask(held.tick, 0)]),
    "settle": lambda node, held: node.settle([Settlement(held, SENT)]),
    "enqueue": lambda node, held: node.enqueue(held, [message(held.tick)], {}),
    "release": lambda node, held: node.release([held], 0, Release.UNTRIED),
}


@pytest.fixture(params=VERBS)
def verb(request):
    return VERBS[request.param]


@pytest.fixture
def held(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    return grant(a, tick)


def refuses(ledgers, node, verb, held):
    before = ledgers.records()
    with pytest.raises(LedgerRecovering):
        verb(node, held)
    assert ledgers.records() == before
    return True


def test_a_node_that_never_pushed_is_refused(ledgers, held, verb):
    assert refuses(ledgers, ledgers.node(joined=False), verb, held)


def test_a_server_of_another_identity_refuses(ledgers, a, held, verb):
    ledgers.restart()
    assert refuses(ledgers, a, verb, held)


def test_a_server_that_knows_a_lower_fence_refuses(ledgers, a, verb):
    first, second = due_ticks(ledgers, a, count=2)
    held = grant(a, first)
    old = ledgers.snapshot()
    grant(a, second)
    ledgers.restore(old)
    assert refuses(ledgers, a, verb, held)


def test_an_emptied_server_refuses(ledgers, a, held, verb):
    ledgers.flush()
    assert refuses(ledgers, a, verb, held)


def test_a_server_that_lost_only_the_marks_refuses(ledgers, held, verb):
    # The identity is lost with them, so that even a node that never saw a fence is refused.
    late = ledgers.node()
    late.fence = 0
    ledgers.lose_marks()
    assert ledgers.identity() is None
    assert refuses(ledgers, late, verb, held)


def test_a_running_recovery_refuses_also_those_who_have_pushed(ledgers, verb):
    # The identity stays the same here: what starts the recovery is the fence.
    a, b = ledgers.node(hold_down=MINUTE, joined=False), ledgers.node()
    join(a)
    first, second = due_ticks(ledgers, b, count=2)
    held = grant(b, first)
    a.claim([])
    old = ledgers.snapshot()
    grant(a, second)
    ledgers.restore(old)
    assert push(a).wait > 0
    assert refuses(ledgers, a, verb, held)


def test_every_verb_answers_again_once_the_node_has_pushed(ledgers, a, held, verb):
    ledgers.restart()
    join(a)
    verb(a, held)


def test_recover_is_never_refused(ledgers, a):
    for disaster in (ledgers.restart, ledgers.flush, ledgers.lose_marks):
        disaster()
        assert push(a) == Recovery(0)
        register(a, "tidy")


def test_every_grant_has_a_higher_fence_than_all_before(ledgers, a, b):
    ticks = due_ticks(ledgers, a, count=6)
    in_one_call = a.claim([Ask(tick, tick.at) for tick in ticks[:4]]).answers
    fences = [answer.grant.fence for answer in in_one_call]
    fences += [grant(b, ticks[4]).fence, grant(a, ticks[5]).fence]
    assert fences == sorted(set(fences))
    assert ledgers.last_fence() == fences[-1]


def test_a_fence_is_higher_than_the_time_of_its_grant(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    assert held.fence > held.deadline - MINUTE


def test_a_fence_that_a_failover_lost_is_not_given_again(ledgers, a):
    first, second = due_ticks(ledgers, a, count=2)
    grant(a, first)
    old = ledgers.snapshot()
    lost = grant(a, second)
    ledgers.restore(old)
    ledgers.restart()
    ledgers.pass_time(MOMENT)
    nobody_told = ledgers.node()
    assert grant(nobody_told, second).fence > lost.fence


def test_fences_rise_although_the_clock_was_set_back(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    a.fence = ledgers.now() + 1000 * MINUTE
    push(a)
    join(b)
    assert grant(b, tick).fence == a.fence + 1


def test_a_node_hears_of_fences_given_to_others(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    b.claim([])
    assert b.fence == held.fence


def test_a_sibling_is_the_same_node(ledgers, a):
    first, second, third = due_ticks(ledgers, a, count=3)
    held = [grant(a, tick) for tick in (first, second)]
    twin = a.sibling()
    assert twin.node == a.node
    assert claim(twin, first).verdict is Verdict.MINE
    assert twin.settle([Settlement(held[0], SENT)]) == [Closing.DONE]
    twin.release(held[1:], 0, Release.UNTRIED)
    grant(twin, third)
    assert claim(a, third).verdict is Verdict.MINE
