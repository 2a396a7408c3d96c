"""Names are any text and numbers are exact, whatever Lua thinks of them."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import Ask, Closing, Orphan, Release, Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Memory, Recovery
from celery_redlock_beat.ticks import SENT, Reason, Tick
from ledger.places import (
    MOMENT,
    claim,
    due_ticks,
    grant,
    join,
    message,
    messages,
    push,
    register,
)

LAST = 2**53 - 1  # in the year 2255
NAMES = {
    "spaces": "  send the  mail ",
    "colons": "1:2::3:",
    "digits": "1900000000000000",
    "newlines": "a\nb\r\n",
    "braces": "{tag}:{redlock:tests}:marks",
    "percent": "%d+ %s %%",
    "non-ASCII": "größe 日本語 🎉 e\u0301",
    "NUL": "a\0b",
    "long": "x" * 5000,
    "repr": "tasks.add(2, 2)",
    "meta": "fence",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_an_entry_may_have_any_name(ledgers, b, name):
    a = ledgers.node(lease=1)
    first, second = due_ticks(ledgers, a, name, count=2)
    assert ledgers.record(name).entry == name
    lost = grant(a, first)
    ledgers.pass_time(1)
    assert b.claim([]).orphans == [Orphan(first, lost.deadline, 1)]
    b.release([grant(b, first)], 0, Release.UNTRIED)
    held = grant(b, first)
    assert b.enqueue(held, [message(first)], {}) is Closing.DONE
    assert messages(ledgers) == {first: 1}
    ledgers.pause(name)
    assert claim(b, second).verdict is Verdict.PAUSED
    ledgers.unpause(name)
    assert b.settle([Settlement(grant(b, second), SENT)]) == [Closing.DONE]
    assert push(b, [Memory(name, second.at + 1), Memory(name, LAST)]) == Recovery(0, [name])
    assert ledgers.record(name).mark == second.at + 1


@pytest.mark.parametrize("fingerprint", ["", "two words ", "a\nb", "größe", "1 2 3 4 5"])
def test_a_timetable_may_have_any_fingerprint(ledgers, a, b, fingerprint):
    record = register(a, "tidy", fingerprint)
    assert record.fingerprint == fingerprint
    assert register(b, "tidy", fingerprint) == record


def test_names_that_share_a_beginning_are_not_confused(ledgers, a):
    (tick,) = due_ticks(ledgers, a, "tidy")
    register(a, "tidy:1")
    register(a, "")
    assert claim(a, Tick("tidy:1", tick.at)).verdict is Verdict.SETTLED
    grant(a, tick)
    assert list(ledgers.open_ticks()) == [tick]


@pytest.mark.parametrize("at", [LAST, LAST - 1, 8_999_999_999_999_999, 4_102_444_800_000_001])
def test_ticks_are_exact_up_to_the_year_2255(ledgers, b, at):
    a = ledgers.node(lease=1)
    register(a, "tidy")
    before, tick = Tick("tidy", at - 1), Tick("tidy", at)
    answers = a.claim([Ask(before, 0), Ask(tick, 0)]).answers
    assert [answer.mark for answer in answers] == [at - 1, at]
    assert answers[1].grant.previous == at - 1
    ledgers.pass_time(1)
    assert {orphan.tick for orphan in b.claim([]).orphans} == {before, tick}
    held = claim(b, tick, due_at=0).grant
    assert held.previous == at - 1
    assert b.settle([Settlement(held, SENT)]) == [Closing.DONE]
    assert b.enqueue(claim(b, before, due_at=0).grant, [message(before)], {}) is Closing.DONE
    assert messages(ledgers) == {before: 1}
    assert ledgers.record("tidy").mark == at
    assert claim(b, tick, due_at=0, expected=at).verdict is Verdict.SETTLED


def test_marks_and_fences_of_the_far_future_survive_every_verb(ledgers, a):
    a.fence = LAST - 100
    join(a)
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    assert held.fence == LAST - 99
    a.release([held], 0, Release.FAILED)
    held = grant(a, tick)
    assert held.fence == ledgers.last_fence() == LAST - 98
    assert a.settle([Settlement(held, SENT)]) == [Closing.DONE]
    assert a.settle([Settlement(held, SENT)]) == [Closing.ALREADY]


def test_large_counts_are_exact(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    many = 2**53 + 1
    a.settle([Settlement(grant(a, tick), SENT, {Reason.SUPERSEDED: many, Reason.WINDOW: 0})])
    assert ledgers.totals() == {"sent": 1, "skipped:superseded": many, "skipped:window": 0}


def test_microseconds_of_leases_are_exact(ledgers):
    a = ledgers.node(lease=MOMENT + 1)
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    assert a.claim([]).next_deadline in (held.deadline, None)
    assert ledgers.open_ticks() == {tick: held.deadline}
