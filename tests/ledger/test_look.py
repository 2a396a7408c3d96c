"""All that the ledger knows of an entry, in one moment; to look changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from celery_redlock_beat.ledger import Settlement
from celery_redlock_beat.ledger.steering import LastOutcome, Look, OpenTick
from celery_redlock_beat.ticks import SECOND, SENT, Tick
from ledger.places import MINUTE, due_ticks, grant, register, stored


@pytest.fixture(params=["operator", "node"])
def whoever(request, a, op):
    return {"operator": op, "node": a}[request.param]


def test_an_entry_that_nobody_knows_is_told_as_such(ledgers, whoever):
    (found,) = whoever.look(["tidy"])
    assert found == Look("tidy", found.now, unwanted=[], open=[])
    assert ledgers.now() - SECOND <= found.now <= ledgers.now()


def test_all_that_is_known_is_told_and_nothing_changes(ledgers, a, op, whoever):
    revision = stored(op)
    first, second, third = due_ticks(ledgers, a, count=3)
    a.settle([Settlement(grant(a, first), SENT)])
    held = [grant(a, tick) for tick in (second, third)]
    later = Tick("tidy", ledgers.now() + MINUTE)
    op.skip([later])
    (paused,) = op.pause(["tidy"], "why", "ann")
    before = ledgers.records()
    (found,) = whoever.look(["tidy"])
    assert ledgers.records() == before
    assert found.record == ledgers.record("tidy")
    assert (found.revision, found.document) == (revision, b'{"task": "t"}')
    assert (found.pause.revision, found.pause.note, found.pause.who) == (paused, "why", "ann")
    assert found.unwanted == [later.at]
    assert found.open == [
        OpenTick(each.tick, a.node, each.fence, 1, each.previous, each.deadline)
        for each in sorted(held, key=lambda each: each.deadline)
    ]
    assert (found.last.tick, found.last.outcome) == (first.at, "sent")
    assert found.unreadable is False


def test_an_open_tick_that_nobody_has_is_told_without_an_owner(ledgers, a, op):
    record = register(a, "tidy", run_on_start=True)
    (found,) = op.look(["tidy"])[0].open
    assert (found.owner, found.attempt, found.deadline) == ("", 0, record.mark)


def test_entries_come_in_the_order_asked_also_in_many_calls(ledgers, a, op):
    names = [f"entry {number}" for number in range(250)]
    for name in names[::100]:
        register(a, name, f"of {name}")
    assert [each.entry for each in op.look(names)] == names
    assert [each.entry for each in op.look(names) if each.record] == names[::100]
    assert op.look([]) == []


def test_it_is_told_also_while_a_recovery_runs(ledgers, a, op):
    revision = stored(op)
    ledgers.restart()
    assert op.look(["tidy"])[0].revision == revision
    assert ledgers.node(joined=False).look(["tidy"])[0].revision == revision


@pytest.mark.parametrize("name", ["entries", "changes", "last"])
def test_a_foreign_type_hides_what_it_would_tell_and_nothing_else(served, name):
    node, op = served.node(), served.operator()
    stored(op)
    (tick,) = due_ticks(served, node)
    grant(node, tick)
    served.client.delete(served.keys[name])
    served.client.set(served.keys[name], "of somebody else")
    (found,) = op.look(["tidy"])
    assert [each.tick for each in found.open] == [tick]
    assert found.record == served.record("tidy")
    assert (found.revision == 0) == (name == "changes")
    assert (found.document == b"") == (name == "entries")


def test_what_nobody_can_read_is_told_as_such(served):
    node, op = served.node(), served.operator()
    stored(op)
    served.client.hset(served.keys["marks"], "e:tidy", "12 monkeys")
    served.client.hset(served.keys["last"], "tidy", "sent, I think")
    served.client.hset(served.keys["marks"], "s:tidy", "never 12 x")
    served.client.hset(served.keys["paused"], "tidy", b"\xff?")
    (found,) = op.look(["tidy"])
    assert (found.record, found.unreadable, found.last) == (None, True, None)
    assert found.unwanted == [12]
    assert found.pause.until is None
    assert replace(node.look(["tidy"])[0], now=found.now) == found


def test_the_last_outcome_tells_who_brought_it_about_whatever_the_name(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    a.node = "a node of several words"
    a.settle([Settlement(held, SENT)])
    (found,) = a.look(["tidy"])
    at = found.last.at
    assert found.last == LastOutcome(at, tick.at, "sent", a.node, held.fence, 1, at - tick.at)
