"""Whatever comes about is written down once, in the call that brings it about; it stops nothing."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import Ask, Closing, Settlement, Verdict
from celery_redlock_beat.ledger.steering import Ending, Remainder, Removal, Resumption, Shot, Step
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import IN_DOUBT, SENT, Reason, Tick, skipped
from ledger.places import (
    MINUTE,
    MOMENT,
    claim,
    due_ticks,
    grant,
    message,
    register,
    reply_lost,
    stored,
)


def told(place, **expected):
    """Return the last record, which must say so."""
    record = place.history()[-1]
    assert {key: record[key] for key in expected} == {
        key: str(value) for key, value in expected.items()
    }
    return record


def test_a_message_is_one_record(ledgers, a):
    *_, tick = due_ticks(ledgers, a, count=9)
    held = grant(a, tick)
    passed = {Reason.SUPERSEDED: 5, Reason.WINDOW: 3}
    with reply_lost(a):
        a.enqueue(held, [message(tick)], passed)
    assert a.enqueue(held, [message(tick)], passed) is Closing.ALREADY
    (record,) = ledgers.history()
    late = record.pop("late")
    assert 0 <= int(late) <= ledgers.now() - tick.at
    assert record == {
        "entry": "tidy",
        "tick": str(tick.at),
        "outcome": "sent",
        "node": a.node,
        "fence": str(held.fence),
        "attempt": "1",
        "previous": str(held.previous),
        "passed": "superseded 5,window 3",
        "detail": "",
    }
    last = a.look(["tidy"])[0].last
    assert (last.tick, last.outcome, last.node) == (tick.at, "sent", a.node)
    assert (last.fence, last.attempt, last.lateness) == (held.fence, 1, int(late))
    assert last.at == tick.at + int(late)


def test_a_settlement_is_one_record_with_what_more_there_is_to_say(ledgers, b):
    brief = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, brief)
    lost = grant(brief, tick)
    ledgers.pass_time(1)
    held = grant(b, tick)
    brief.settle([Settlement(lost, SENT)])
    assert ledgers.history() == []
    b.settle([Settlement(held, skipped(Reason.ERROR), detail="KeyError: größe")])
    told(ledgers, outcome="skipped:error", attempt=2, detail="KeyError: größe")
    assert len(ledgers.history()) == 1


def test_lateness_counts_from_when_the_tick_was_due(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    ledgers.pass_time(MOMENT)
    due_at = ledgers.now() - 5
    held = claim(a, tick, due_at=due_at).grant
    a.settle([Settlement(held, SENT)])
    last = a.look(["tidy"])[0].last
    assert last.lateness == last.at - due_at
    told(ledgers, late=last.lateness)


def test_the_last_outcome_is_kept_per_entry(ledgers, a):
    for entry in ("tidy", "other"):
        for tick in due_ticks(ledgers, a, entry, count=2):
            a.settle([Settlement(grant(a, tick), SENT)])
    marks = {entry: ledgers.record(entry).mark for entry in ("tidy", "other")}
    assert {each.entry: each.last.tick for each in a.look(["tidy", "other"])} == marks


class TestADeed:
    def test_of_an_operator_is_one_record_each(self, ledgers, a):
        op = ledgers.operator("ann of the ops")
        revision = stored(op)
        told(ledgers, entry="tidy", outcome="added", node="ann of the ops", detail="")
        (tick,) = due_ticks(ledgers, a)
        later = Tick("tidy", ledgers.now() + MINUTE)
        op.skip([later], "a holiday")
        told(ledgers, outcome="to_be_skipped", tick=later.at, detail="a holiday")
        (paused,) = op.pause(["tidy"], "why")
        assert '"note": "why"' in told(ledgers, outcome="paused")["detail"]
        remainder = Remainder(tick.at - 1, tick.at, {Reason.PAUSED: 1})
        op.resume([Resumption("tidy", paused, remainder, "well again")])
        told(ledgers, outcome="resumed", detail="well again", passed="paused 1")
        told(ledgers, previous=tick.at - 1, tick=tick.at)
        op.fire(Shot("tidy", "id", note="by hand"), Step.RESERVE)
        op.fire(Shot("tidy", "id", note="by hand"), Step.DONE)
        told(ledgers, outcome="fired", detail="by hand", entry="tidy")
        op.remove([Removal("tidy", revision, None, "no longer")])
        told(ledgers, outcome="removed", detail="no longer")
        assert len(ledgers.history()) == 6

    def test_that_ends_open_ticks_is_a_record_for_each_of_them_too(self, ledgers, a, op):
        revision = stored(op)
        first, second = due_ticks(ledgers, a, count=2)
        ends = [Ending(tick.at, grant(a, tick).fence) for tick in (first, second)]
        op.remove([Removal("tidy", revision, Remainder(second.at, second.at, {}, ends))])
        outcomes = [(each["outcome"], int(each["tick"])) for each in ledgers.history()[1:]]
        assert outcomes == [
            ("skipped:removed", first.at),
            ("skipped:removed", second.at),
            ("removed", second.at),
        ]
        assert all(each["node"] == "ann@ops" for each in ledgers.history())
        assert op.look(["tidy"])[0].last is None, "what is removed is forgotten but here"

    def test_that_was_refused_is_none(self, ledgers, a, op):
        revision = stored(op)
        op.remove([Removal("tidy", revision + 1)])
        op.resume([Resumption("tidy", 5)])
        op.skip([Tick("tidy", 1), Tick("other", 1)])
        op.fire(Shot("tidy", "id"), Step.RESERVE)
        op.fire(Shot("tidy", "id"), Step.FAILED)
        assert len(ledgers.history()) == 1


class TestARecovery:
    def test_writes_down_what_it_closes(self, ledgers, a, b):
        one, two = due_ticks(ledgers, a, count=2)
        held = grant(a, one)
        grant(a, two)
        ledgers.restart()
        known = [Memory("tidy", two.at, closed=two.at, still_open=(one.at,))]
        a.recover(Testimony(known, settled=[Settlement(held, SENT)]))
        assert [(each["tick"], each["outcome"]) for each in ledgers.history()] == [
            (str(one.at), "sent"),
            (str(two.at), IN_DOUBT.text),
        ]
        told(ledgers, attempt=1, previous=one.at)

    def test_writes_down_each_tick_in_doubt(self, ledgers, a):
        *_, tick = due_ticks(ledgers, a, count=2)
        ledgers.flush()
        (doubt,) = a.recover(Testimony([Memory("tidy", tick.at, sure=tick.at - 1)])).doubts
        a.resolve({doubt: [tick.at]})
        told(ledgers, tick=tick.at, outcome=IN_DOUBT.text, fence=0, attempt=0, node=a.node)
        assert a.look(["tidy"])[0].last.outcome == IN_DOUBT.text


class TestItsLength:
    def test_is_about_what_was_asked_for(self, ledgers):
        node = ledgers.node(history=100)
        for _ in range(6):
            ticks = due_ticks(ledgers, node, count=100)
            answers = node.claim([Ask(tick, tick.at) for tick in ticks]).answers
            node.settle([Settlement(each.grant, SENT) for each in answers])
        assert 100 <= len(ledgers.history()) <= 300
        assert ledgers.totals() == {"sent": 600}
        told(ledgers, tick=ticks[-1].at)

    def test_of_none_keeps_none_but_the_last_outcome(self, ledgers):
        node, op = ledgers.node(history=0), ledgers.operator(history=0)
        stored(op)
        (tick,) = due_ticks(ledgers, node)
        node.enqueue(grant(node, tick), [message(tick)], {})
        assert ledgers.history() == []
        assert op.look(["tidy"])[0].last.outcome == "sent"


@pytest.mark.parametrize("name", ["history", "last"])
def test_a_foreign_type_of_it_stops_nothing(served, name):
    node, op = served.node(), served.operator()
    served.client.set(served.keys[name], "of somebody else")
    stored(op)
    first, second = due_ticks(served, node, count=2)
    assert node.enqueue(grant(node, first), [message(first)], {}) is Closing.DONE
    assert node.settle([Settlement(grant(node, second), SENT)]) == [Closing.DONE]
    op.pause(["tidy"])
    assert op.fire(Shot("other", "id"), Step.DONE)
    assert served.totals() == {"sent": 2, "fired": 1}
    assert served.client.get(served.keys[name]) == b"of somebody else"
    assert bool(served.history() if name == "last" else op.look(["tidy"])[0].last)


def test_a_record_that_nobody_can_read_is_told_once_until_there_is_another_outcome(served):
    node = served.node()
    register(node, "torn")
    served.pass_time(1)
    served.client.hset(served.keys["marks"], "e:torn", "12 monkeys")
    tick = Tick("torn", served.now() - 1)
    for _ in range(3):
        assert claim(node, tick).verdict is Verdict.UNREADABLE
    (record,) = served.history()
    assert (record["entry"], record["outcome"]) == ("torn", "unreadable")
    assert node.look(["torn"])[0].last.outcome == "unreadable"
