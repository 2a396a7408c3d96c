"""A message is pushed and its tick settled in one step, or not at all."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import DeliveryImpossible
from celery_redlock_beat.ledger import Closing, Command, Settlement, Verdict
from celery_redlock_beat.ticks import Reason, skipped
from ledger.places import (
    MOMENT,
    QUEUE,
    claim,
    due_ticks,
    grant,
    message,
    messages,
    reply_lost,
)


def test_a_message_is_pushed_and_its_tick_settled_as_sent(ledgers, a, b):
    *_, tick = due_ticks(ledgers, a, count=3)
    held = grant(a, tick)
    assert a.enqueue(held, [message(tick)], {Reason.SUPERSEDED: 2}) is Closing.DONE
    assert messages(ledgers) == {tick: 1}
    assert ledgers.totals() == {"sent": 1, "skipped:superseded": 2}
    assert ledgers.open_ticks() == {}
    assert ledgers.record("tidy").runs == 1
    assert claim(b, tick).verdict is Verdict.SETTLED


def test_the_newest_message_is_at_the_head_where_kombu_pushes(ledgers, a):
    for tick in due_ticks(ledgers, a, count=3):
        a.enqueue(grant(a, tick), [message(tick)], {})
    ticks = [text.split(b":")[0] for text in ledgers.queue()]
    assert ticks == sorted(ticks, reverse=True)


def test_every_command_of_a_message_is_done_in_order(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    heard = ledgers.listen("/0.fanout")
    commands = [
        Command("LPUSH", "first", b"\x00\xff not text"),
        Command("LPUSH", "second", "tëxt"),
        Command("LPUSH", "first", 7),
        Command("PUBLISH", "/0.fanout", b"to all"),
        Command("PEXPIRE", "second", 3_600_000),
    ]
    assert a.enqueue(grant(a, tick), commands, {}) is Closing.DONE
    assert ledgers.queue("first") == [b"7", b"\x00\xff not text"]
    assert ledgers.queue("second") == ["tëxt".encode()]
    assert heard() == [b"to all"]
    if ledgers.kind != "memory":
        assert 0 < ledgers.client.pttl("second") <= 3_600_000
        assert ledgers.client.pttl("first") == -1


def test_whoever_lost_the_reply_is_answered_already_and_nothing_is_pushed_again(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    with reply_lost(a):
        a.enqueue(held, [message(tick)], {})
    before = ledgers.records()
    assert a.enqueue(held, [message(tick)], {}) is Closing.ALREADY
    assert ledgers.records() == before


def test_a_grant_that_was_taken_over_pushes_nothing(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    lost = grant(a, tick)
    ledgers.pass_time(1)
    held = grant(b, tick)
    before = ledgers.records()
    assert a.enqueue(lost, [message(tick)], {Reason.WINDOW: 1}) is Closing.STALE
    assert ledgers.records() == before
    assert b.enqueue(held, [message(tick)], {}) is Closing.DONE
    assert a.enqueue(lost, [message(tick)], {}) is Closing.STALE
    assert messages(ledgers) == {tick: 1}


def test_a_tick_that_another_node_skipped_is_not_pushed(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    lost = grant(a, tick)
    ledgers.pass_time(1)
    b.settle([Settlement(grant(b, tick), skipped(Reason.GRACE))])
    assert a.enqueue(lost, [message(tick)], {}) is Closing.STALE
    assert messages(ledgers) == {}


def test_a_lease_that_is_over_pushes_as_long_as_nobody_took_over(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.pass_time(MOMENT)
    assert a.enqueue(held, [message(tick)], {}) is Closing.DONE
    assert claim(b, tick).verdict is Verdict.SETTLED


def test_a_paused_entry_pushes_nothing_and_its_tick_stays_open(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.pause("tidy")
    before = ledgers.records()
    assert a.enqueue(held, [message(tick)], {Reason.WINDOW: 1}) is Closing.PAUSED
    assert ledgers.records() == before
    assert ledgers.open_ticks() == {tick: held.deadline}
    ledgers.unpause("tidy")
    assert a.enqueue(held, [message(tick)], {}) is Closing.DONE


def test_what_is_done_is_done_also_if_the_entry_was_paused_meanwhile(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    a.enqueue(held, [message(tick)], {})
    ledgers.pause("tidy")
    assert a.enqueue(held, [message(tick)], {}) is Closing.ALREADY


def test_a_queue_that_is_not_a_list_pushes_nothing_anywhere_and_the_tick_stays_open(ledgers, a):
    *_, tick = due_ticks(ledgers, a, count=3)
    held = grant(a, tick)
    ledgers.occupy("taken")
    before = ledgers.records()
    commands = [message(tick), Command("PUBLISH", "news", b"x"), message(tick, "taken")]
    heard = ledgers.listen("news")
    with pytest.raises(DeliveryImpossible, match="'taken'"):
        a.enqueue(held, commands, {Reason.SUPERSEDED: 2})
    assert ledgers.records() == before
    assert heard() == []
    assert ledgers.open_ticks() == {tick: held.deadline}
    assert a.enqueue(held, [message(tick)], {Reason.SUPERSEDED: 2}) is Closing.DONE


def test_a_message_without_commands_is_settled_and_nothing_is_pushed(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    assert a.enqueue(grant(a, tick), [], {}) is Closing.DONE
    assert ledgers.queue(QUEUE) == []
    assert ledgers.totals() == {"sent": 1}
