"""How a tick ends: counted once, by the fence of its present grant."""

from __future__ import annotations

from celery_redlock_beat.ledger import Ask, Closing, Settlement, Verdict
from celery_redlock_beat.ticks import SECOND, SENT, Reason, skipped
from ledger.places import MINUTE, MOMENT, claim, due_ticks, grant, push, reply_lost

TEN_MINUTES = 600 * SECOND


def test_a_settled_tick_is_closed_and_counted(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    assert a.settle([Settlement(grant(a, tick), SENT)]) == [Closing.DONE]
    assert ledgers.open_ticks() == {}
    assert ledgers.totals() == {"sent": 1}
    assert claim(b, tick).verdict is Verdict.SETTLED


def test_what_was_passed_over_is_counted_together_with_the_outcome(ledgers, a):
    *_, tick = due_ticks(ledgers, a, count=9)
    held = grant(a, tick)
    passed = {Reason.SUPERSEDED: 5, Reason.WINDOW: 3}
    a.settle([Settlement(held, skipped(Reason.GRACE), passed)])
    assert ledgers.totals() == {"skipped:grace": 1, "skipped:superseded": 5, "skipped:window": 3}


def test_whoever_lost_the_reply_is_answered_already_and_nothing_is_counted_twice(ledgers, a):
    *_, tick = due_ticks(ledgers, a, count=3)
    settlement = Settlement(grant(a, tick), SENT, {Reason.SUPERSEDED: 2})
    with reply_lost(a):
        a.settle([settlement])
    before = ledgers.records()
    assert a.settle([settlement]) == [Closing.ALREADY]
    assert ledgers.records() == before


def test_a_grant_that_was_taken_over_settles_and_counts_nothing(ledgers, b):
    a = ledgers.node(lease=1)
    *_, tick = due_ticks(ledgers, a, count=3)
    lost = grant(a, tick)
    ledgers.pass_time(1)
    held = grant(b, tick)
    before = ledgers.records()
    assert a.settle([Settlement(lost, SENT, {Reason.SUPERSEDED: 2})]) == [Closing.STALE]
    assert ledgers.records() == before
    assert b.settle([Settlement(held, SENT, {Reason.SUPERSEDED: 2})]) == [Closing.DONE]
    assert ledgers.totals() == {"sent": 1, "skipped:superseded": 2}


def test_already_is_answered_only_to_the_fence_that_settled(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    lost = grant(a, tick)
    ledgers.pass_time(1)
    b.settle([Settlement(grant(b, tick), skipped(Reason.GRACE))])
    before = ledgers.records()
    assert a.settle([Settlement(lost, SENT)]) == [Closing.STALE]
    assert ledgers.records() == before


def test_already_is_answered_only_as_long_as_the_settled_grant_is_remembered(ledgers):
    # The mark alone does not tell how it was settled, or by whom.
    a = ledgers.node(lease=1, settled_kept=0, **quick_socket(ledgers))
    first, second = due_ticks(ledgers, a, count=2)
    forgotten = Settlement(grant(a, first), SENT)
    a.settle([forgotten])
    ledgers.pass_time(MOMENT)
    a.settle([Settlement(grant(a, second), SENT)])
    before = ledgers.records()
    assert a.settle([forgotten]) == [Closing.STALE]
    assert ledgers.records() == before


def test_an_unknown_grant_is_stale(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.flush()
    assert push(a).wait == 0
    assert a.settle([Settlement(held, SENT)]) == [Closing.STALE]
    assert ledgers.totals() == {}


def test_a_lease_that_is_over_settles_as_long_as_nobody_took_over(ledgers):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.pass_time(MOMENT)
    assert a.settle([Settlement(held, SENT)]) == [Closing.DONE]


def test_a_message_that_is_out_is_settled_although_its_entry_was_paused_meanwhile(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.pause("tidy")
    assert a.settle([Settlement(held, SENT)]) == [Closing.DONE]


def test_only_sent_ticks_are_runs(ledgers, a):
    ticks = due_ticks(ledgers, a, count=3)
    outcomes = [SENT, skipped(Reason.ERROR), SENT]
    for tick, outcome in zip(ticks, outcomes, strict=True):
        a.settle([Settlement(grant(a, tick), outcome)])
    texts = [outcome.text for outcome in outcomes]
    assert ledgers.kept() == dict(zip(ticks, texts, strict=True))
    assert ledgers.record("tidy").runs == 2
    assert ledgers.record("tidy").mark == ticks[-1].at


def test_settlements_are_answered_in_order_also_in_many_calls(ledgers, a, b):
    ticks = due_ticks(ledgers, a, count=250)
    grants = []
    for start in range(0, len(ticks), 100):
        asked = [Ask(tick, tick.at) for tick in ticks[start : start + 100]]
        grants += [answer.grant for answer in a.claim(asked).answers]
    b.settle([Settlement(held, SENT) for held in grants[::2]])
    told = a.settle([Settlement(held, SENT, {Reason.WINDOW: 1}) for held in grants])
    assert told == [Closing.ALREADY, Closing.DONE] * 125
    assert ledgers.totals() == {"sent": 250, "skipped:window": 125}
    assert ledgers.open_ticks() == {}


def test_a_settled_grant_is_kept_ten_minutes_or_the_lease_if_that_is_longer(ledgers):
    patient, brief = ledgers.node(lease=20 * MINUTE), ledgers.node()
    first, second = due_ticks(ledgers, brief, count=2)
    for node, tick, kept in ((patient, first, 2 * TEN_MINUTES), (brief, second, TEN_MINUTES)):
        held = grant(node, tick)
        earliest = ledgers.now()
        node.settle([Settlement(held, SENT)])
        assert earliest + kept <= ledgers.kept_until()[tick] <= ledgers.now() + kept


def test_settled_grants_are_not_swept_before_their_time(ledgers, a):
    ticks = due_ticks(ledgers, a, count=20)
    settlements = [Settlement(grant(a, tick), SENT) for tick in ticks]
    a.settle(settlements)
    assert a.settle(settlements) == [Closing.ALREADY] * 20


def test_settled_grants_are_swept_two_for_each_one_kept(ledgers, a):
    brief = ledgers.node(lease=1, settled_kept=MOMENT, **quick_socket(ledgers))
    ticks = due_ticks(ledgers, a, count=15)
    brief.settle([Settlement(grant(brief, tick), SENT) for tick in ticks[:10]])
    ledgers.pass_time(2 * MOMENT)
    left = []
    for tick in ticks[10:]:
        a.settle([Settlement(grant(a, tick), SENT)])
        left.append(len(ledgers.kept().keys() & set(ticks[:10])))
    assert left == [8, 6, 4, 2, 0]
    assert ledgers.kept().keys() == ledgers.kept_until().keys() == set(ticks[10:])


def quick_socket(ledgers):
    return {} if ledgers.kind == "memory" else {"socket_timeout": 1}
