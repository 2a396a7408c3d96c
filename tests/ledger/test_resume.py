"""A pause ends by resume alone: with what it held back counted, or left to be caught up."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import Ask, Closing, Settlement, Verdict
from celery_redlock_beat.ledger.steering import (
    Change,
    Ending,
    Kind,
    Remainder,
    Resumption,
    Steered,
)
from celery_redlock_beat.ticks import SENT, Reason
from ledger.places import (
    PAUSE,
    all_at_once,
    claim,
    due_ticks,
    grant,
    message,
    remainder_of,
)


def pause(operator):
    return operator.pause(["tidy"])[0]


def resume(operator, expected, remainder=None):
    (told,) = operator.resume([Resumption("tidy", expected, remainder, "all is well")])
    return told


@pytest.fixture(params=["operator", "node"])
def whoever(request, a, op):
    return {"operator": op, "node": a}[request.param]


def test_whoever_resumes_gives_the_revision_of_the_pause(ledgers, a, op, whoever):
    (tick,) = due_ticks(ledgers, a)
    revision = pause(op)
    assert resume(whoever, revision - 1) == Steered("tidy", False, revision)
    assert claim(a, tick).verdict is Verdict.PAUSED
    told = resume(whoever, revision)
    assert told.done
    assert told.revision > revision
    assert (ledgers.pauses(), ledgers.revisions()) == ({}, {})
    assert ledgers.gone() == {"p:tidy": told.revision}
    assert a.changes(revision).changes == [Change(Kind.PAUSE, "tidy", told.revision, None)]
    assert claim(a, tick).verdict is Verdict.GRANTED
    assert resume(whoever, revision) == Steered("tidy", False, 0)


def test_of_two_who_resume_at_once_one_is_told_that_it_has_changed(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    revision = pause(op)
    seen = op.look(["tidy"])[0]
    remainder = Remainder(seen.record.mark, tick.at, {Reason.PAUSED: 1})
    told = all_at_once([a, op], lambda each: resume(each, revision, remainder))
    assert sorted(each.done for each in told) == [False, True]
    assert ledgers.totals() == {"skipped:paused": 1}


def test_what_was_held_back_is_skipped_and_catching_up_begins_with_the_end(ledgers, a, op):
    ticks = due_ticks(ledgers, a, count=5)
    revision = pause(op)
    (seen,) = op.look(["tidy"])
    remainder = Remainder(seen.record.mark, ticks[3].at, {Reason.PAUSED: 4})
    assert resume(op, revision, remainder).done
    record = ledgers.record("tidy")
    assert (record.mark, record.since, record.runs) == (ticks[3].at, ticks[3].at, 0)
    assert ledgers.totals() == {"skipped:paused": 4}
    answers = a.claim([Ask(tick, tick.at) for tick in ticks[3:]]).answers
    assert [each.verdict for each in answers] == [Verdict.SETTLED, Verdict.GRANTED]


def test_without_a_remainder_the_mark_stays_and_what_was_held_back_is_caught_up(ledgers, a, op):
    first, _ = due_ticks(ledgers, a, count=2)
    before = ledgers.record("tidy")
    assert resume(op, pause(op)).done
    assert ledgers.record("tidy") == before
    assert grant(a, first).previous == before.mark


def test_an_open_tick_that_nobody_holds_any_more_may_end_with_the_pause(ledgers, b, op):
    brief = ledgers.node(lease=1)
    *_, tick = due_ticks(ledgers, brief, count=3)
    held = grant(brief, tick)
    revision = pause(op)
    ledgers.pass_time(1)
    ends = [Ending(tick.at, held.fence, {Reason.SUPERSEDED: 2})]
    assert resume(op, revision, Remainder(tick.at, ledgers.now(), {}, ends)).done
    assert ledgers.open_ticks() == {}
    assert ledgers.totals() == {"skipped:paused": 1, "skipped:superseded": 2}
    assert ledgers.record("tidy").runs == 1, "on other brokers it may have been sent"
    assert brief.enqueue(held, [message(tick)], {}) is Closing.STALE
    assert b.claim([]).orphans == []


def test_an_open_tick_with_a_living_lease_stays_open(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    revision = pause(op)
    (seen,) = op.look(["tidy"])
    before = ledgers.records()
    assert resume(op, revision, remainder_of(seen)) == Steered("tidy", False, revision)
    assert ledgers.records() == before
    assert resume(op, revision, Remainder(tick.at, seen.now)).done
    assert ledgers.open_ticks() == {tick: held.deadline}
    assert a.settle([Settlement(held, SENT)]) == [Closing.DONE]


def test_a_mark_that_has_risen_meanwhile_leaves_all_as_it_is(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    revision = pause(op)
    (seen,) = op.look(["tidy"])
    a.repair({"tidy": tick.at}, "ann@ops", "a test")
    before = ledgers.records()
    assert not resume(op, revision, remainder_of(seen, {Reason.PAUSED: 1})).done
    assert ledgers.records() == before


def test_a_pause_by_hand_is_resumed_at_the_revision_that_the_feed_gave_it(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    ledgers.pause("tidy")
    (told,) = a.changes(0).changes
    assert told.text == PAUSE.encode()
    assert told.revision > 7
    assert op.look(["tidy"])[0].pause.revision == told.revision
    assert not resume(op, 7).done
    assert resume(op, told.revision).done
    assert claim(a, tick).verdict is Verdict.GRANTED


def test_a_pause_by_hand_that_no_node_has_seen_has_no_revision_and_can_be_resumed(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    ledgers.pause("tidy")
    assert op.look(["tidy"])[0].pause.revision == 0
    assert not resume(op, 7).done
    assert resume(op, 0).done
    assert not resume(op, 0).done
    assert not a.claim([]).stirred
    assert claim(a, tick).verdict is Verdict.GRANTED
