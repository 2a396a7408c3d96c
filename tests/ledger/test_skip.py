"""A tick to come that an operator does not want: whoever claims it is told so."""

from __future__ import annotations

from celery_redlock_beat.ledger import Settlement, Verdict
from celery_redlock_beat.ledger.steering import Skipping
from celery_redlock_beat.ticks import SENT, Tick
from ledger.places import MINUTE, claim, due_ticks, grant, register

DONE, OPEN, SETTLED, MISSING = Skipping


def skip(operator, *ticks):
    return operator.skip(ticks, "not on a holiday")


def unwanted(operator):
    return list(operator.look(["tidy"])[0].unwanted)


def test_whoever_is_granted_the_tick_is_told_and_no_other_tick_is_meant(ledgers, a, b, op):
    first, second, third = due_ticks(ledgers, a, count=3)
    assert skip(op, second) == [DONE]
    assert [grant(a, tick).unwanted for tick in (first, second, third)] == [False, True, False]
    assert claim(a, second).grant.unwanted, "told again to whoever lost the reply"
    assert claim(b, second).verdict is Verdict.HELD


def test_whoever_takes_it_over_is_told_too(ledgers, b, op):
    brief = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, brief)
    skip(op, tick)
    grant(brief, tick)
    ledgers.pass_time(1)
    assert grant(b, tick).unwanted


def test_nothing_is_counted_and_the_mark_stays(ledgers, a, op):
    before = register(a, "tidy")
    assert skip(op, Tick("tidy", ledgers.now() + MINUTE)) == [DONE]
    assert ledgers.record("tidy") == before
    assert ledgers.totals() == {}
    assert ledgers.open_ticks() == {}


def test_what_is_being_sent_or_is_settled_or_unknown_cannot_be_skipped(ledgers, a, op):
    first, second = due_ticks(ledgers, a, count=2)
    a.settle([Settlement(grant(a, first), SENT)])
    grant(a, second)
    before = ledgers.records()
    asked = [first, second, Tick("tidy", second.at - 2), Tick("other", second.at + 9)]
    assert skip(op, *asked) == [SETTLED, OPEN, SETTLED, MISSING]
    assert ledgers.records() == before


def test_what_lies_behind_the_mark_is_swept(ledgers, a, op):
    first, second, third = due_ticks(ledgers, a, count=3)
    assert skip(op, first, second, third) == [DONE] * 3
    assert unwanted(op) == [first.at, second.at, third.at]
    a.settle([Settlement(grant(a, second), SENT)])
    later = Tick("tidy", ledgers.now() + MINUTE)
    assert skip(op, later) == [DONE]
    assert unwanted(op) == [third.at, later.at]


def test_a_tick_that_is_skipped_twice_is_noted_once(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    other = Tick("tidy", tick.at + 1)
    assert skip(op, tick, other) == skip(op, tick, other) == [DONE, DONE]
    assert sorted(unwanted(op)) == [tick.at, other.at]


def test_a_tick_is_not_taken_for_one_that_begins_with_its_digits(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    assert skip(op, Tick("tidy", tick.at * 2)) == [DONE]
    longer = Tick("tidy", 8_999_999_999_999_999)
    assert skip(op, longer) == [DONE]
    assert not grant(a, tick).unwanted
    assert not claim(a, Tick("tidy", 8_999_999_999_999_998), due_at=0).grant.unwanted
    assert claim(a, longer, due_at=0).grant.unwanted


def test_one_that_is_being_sent_stays_so_when_another_is_to_be_skipped(ledgers, b, op):
    brief = ledgers.node(lease=1)
    first, second = due_ticks(ledgers, brief, count=2)
    skip(op, first)
    grant(brief, first)
    ledgers.pass_time(1)
    assert skip(op, second) == [DONE]
    assert grant(b, first).unwanted
