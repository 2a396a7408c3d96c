"""A grant given back leaves its tick open, unowned, until the back-off ends."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import Ask, Closing, Orphan, Release, Settlement, Verdict
from celery_redlock_beat.ticks import SENT
from ledger.places import MINUTE, MOMENT, claim, due_ticks, grant, reply_lost


def test_until_the_back_off_ends_nobody_holds_the_tick_not_even_who_gave_it_back(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    earliest = ledgers.now()
    a.release([held], MINUTE // 2, Release.FAILED)
    free_at = ledgers.open_ticks()[tick]
    assert earliest + MINUTE // 2 <= free_at <= ledgers.now() + MINUTE // 2
    for node in (a, b):
        answer = claim(node, tick)
        assert answer.verdict is Verdict.HELD
        assert 0 < answer.wait <= MINUTE // 2
    claimed = b.claim([])
    assert (claimed.orphans, claimed.next_deadline) == ([], free_at)


@pytest.mark.parametrize(
    ("why", "attempt", "waited"),
    [(Release.UNTRIED, 1, False), (Release.UNREACHABLE, 1, True), (Release.FAILED, 2, True)],
)
def test_why_it_was_given_back_tells_whether_that_was_an_attempt(
    ledgers, a, b, why, attempt, waited
):
    *_, tick = due_ticks(ledgers, a, count=3)
    lost = grant(a, tick)
    a.release([lost], MOMENT, why)
    ledgers.pass_time(2 * MOMENT)
    (orphan,) = b.claim([]).orphans
    assert orphan == Orphan(tick, orphan.free_since, attempt - 1)
    held = grant(b, tick)
    assert (held.attempt, held.waited, held.previous) == (attempt, waited, lost.previous)
    assert held.fence > lost.fence


def test_a_tick_that_waited_once_has_waited(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    a.release([grant(a, tick)], 0, Release.UNREACHABLE)
    a.release([grant(a, tick)], 0, Release.UNTRIED)
    assert grant(a, tick).waited


def test_without_a_back_off_the_tick_is_free_at_once(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    a.release([grant(a, tick)], 0, Release.UNTRIED)
    assert [orphan.tick for orphan in b.claim([]).orphans] == [tick]
    assert grant(b, tick).attempt == 1


@pytest.mark.parametrize("why", Release)
def test_a_release_whose_reply_was_lost_counts_once(ledgers, a, b, why):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    with reply_lost(a):
        a.release([held], MOMENT, why)
    before = ledgers.records()
    a.release([held], MINUTE, why)
    assert ledgers.records() == before
    ledgers.pass_time(2 * MOMENT)
    assert grant(b, tick).attempt == (2 if why is Release.FAILED else 1)


def test_a_grant_that_was_taken_over_releases_nothing(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    lost = grant(a, tick)
    ledgers.pass_time(1)
    held = grant(b, tick)
    before = ledgers.records()
    a.release([lost], 0, Release.FAILED)
    assert ledgers.records() == before
    assert b.settle([Settlement(held, SENT)]) == [Closing.DONE]


def test_a_settled_tick_cannot_be_released(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    a.settle([Settlement(held, SENT)])
    before = ledgers.records()
    a.release([held], 0, Release.FAILED)
    assert ledgers.records() == before
    assert claim(a, tick).verdict is Verdict.SETTLED


def test_many_grants_are_given_back_at_once(ledgers, a, b):
    ticks = due_ticks(ledgers, a, count=150)
    grants = []
    for asked in (ticks[:100], ticks[100:]):
        answers = a.claim([Ask(tick, tick.at) for tick in asked]).answers
        grants += [answer.grant for answer in answers]
    a.release(grants, 0, Release.UNTRIED)
    first = b.claim([])
    rest = b.claim([], first.cursor)
    assert {orphan.tick for orphan in first.orphans + rest.orphans} == set(ticks)
