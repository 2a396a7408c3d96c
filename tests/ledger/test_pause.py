"""From the answer to a pause on nothing of the entry is enqueued, until somebody resumes it."""

from __future__ import annotations

import json

from celery_redlock_beat.ledger import Answer, Closing, Orphan, Pause, Settlement, Verdict
from celery_redlock_beat.ledger.steering import Change, Kind, Resumption
from celery_redlock_beat.ticks import SENT, Tick
from ledger.places import (
    MINUTE,
    MOMENT,
    changes_nothing,
    claim,
    due_ticks,
    grant,
    message,
    messages,
    stored,
)


def pause(operator, **options):
    (revision,) = operator.pause(["tidy"], "since I say so", "ann", **options)
    return revision


def test_a_pause_is_kept_with_why_who_since_and_until_when(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    earliest, until = ledgers.now(), ledgers.now() + MINUTE
    revision = pause(op, until=until)
    (found,) = op.look(["tidy"])
    since = found.pause.since
    assert earliest <= since <= ledgers.now()
    assert found.pause == Pause("tidy", revision, "since I say so", "ann", since, until)
    kept = json.dumps({"note": "since I say so", "who": "ann", "since": since})
    assert ledgers.pauses() == {"tidy": f"{revision} {until} {kept}"}
    assert claim(a, tick).pause == found.pause
    assert pause(op) > revision
    assert op.look(["tidy"])[0].pause.until is None


def test_a_pause_is_a_change_of_the_feed(ledgers, a, op):
    revision = pause(op)
    claimed = a.claim([])
    assert (claimed.revision, claimed.stirred) == (revision, False)
    (told,) = a.changes(0).changes
    assert told == Change(Kind.PAUSE, "tidy", revision, ledgers.pauses()["tidy"].encode())
    later = pause(op)
    assert [each.revision for each in a.changes(0).changes] == [later]


def test_an_entry_that_nobody_knows_can_be_paused(ledgers, a, op):
    pause(op)
    (tick,) = due_ticks(ledgers, a)
    assert claim(a, tick).verdict is Verdict.PAUSED


def test_a_paused_entry_is_not_granted_whatever_the_node_has_heard(ledgers, a, op):
    revision = stored(op)
    (tick,) = due_ticks(ledgers, a)
    pause(op)
    answer = changes_nothing(ledgers, lambda: claim(a, tick, revision=revision))
    assert (answer.verdict, answer.grant) == (Verdict.PAUSED, None)


def test_what_was_granted_before_is_not_enqueued_and_stays_open(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    pause(op)
    before = ledgers.records()
    assert a.enqueue(held, [message(tick)], {}) is Closing.PAUSED
    assert ledgers.records() == before
    assert ledgers.open_ticks() == {tick: held.deadline}
    assert messages(ledgers) == {}


def test_what_is_out_can_be_settled(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    pause(op)
    assert a.settle([Settlement(held, SENT)]) == [Closing.DONE]


def test_a_pause_whose_time_is_over_holds_until_somebody_resumes_it(ledgers, op):
    brief = ledgers.node(lease=1)
    first, second = due_ticks(ledgers, brief, count=2)
    held = grant(brief, first)
    revision = pause(op, until=ledgers.now() + MOMENT)
    ledgers.pass_time(MOMENT)
    answer = claim(brief, second)
    assert answer == Answer(second, Verdict.PAUSED, first.at, pause=answer.pause, runs=1)
    assert answer.pause.is_over(ledgers.now())
    assert brief.enqueue(held, [message(first)], {}) is Closing.PAUSED
    assert brief.resume([Resumption("tidy", revision)])[0].done, "a node may, too"
    assert claim(brief, second).verdict is Verdict.GRANTED


def test_orphans_are_told_again_once_the_time_of_the_pause_is_over(ledgers, b, op):
    brief = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, brief)
    held = grant(brief, tick)
    pause(op, until=ledgers.now() + 50 * MOMENT)
    ledgers.pass_time(1)
    assert b.claim([]).orphans == []
    ledgers.pass_time(50 * MOMENT)
    assert b.claim([]).orphans == [Orphan(tick, held.deadline, 1)]


def test_a_pause_that_nobody_can_read_holds_for_ever(ledgers, b):
    brief = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, brief, "torn")
    grant(brief, tick)
    ledgers.pass_time(1)
    ledgers.pause("torn")
    assert b.claim([]).orphans == []
    assert claim(b, tick).verdict is Verdict.PAUSED


def test_many_are_paused_at_once(ledgers, a, op):
    names = [f"entry {number}" for number in range(120)]
    revisions = op.pause(names)
    assert revisions == sorted(set(revisions))
    assert ledgers.pauses().keys() == set(names)
    tick = Tick("entry 7", ledgers.now())
    assert claim(a, tick).verdict is Verdict.UNREGISTERED
