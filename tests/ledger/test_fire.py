"""A message beside the schedule: once per id, while its entry is not paused, or not at all."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import DeliveryImpossible, LedgerUnavailable
from celery_redlock_beat.ledger import Command
from celery_redlock_beat.ledger.steering import Firing, Shot, Step
from ledger.places import QUEUE, all_at_once, register

DONE, ALREADY, PAUSED = Firing
SHOT = Shot("tidy", "an-id")
PUSH = Command("LPUSH", QUEUE, b"a message")


def test_a_message_is_pushed_once_per_id_and_the_schedule_does_not_move(ledgers, a, op):
    record = register(a, "tidy")
    assert op.fire(SHOT, Step.PUSH, [PUSH]) is DONE
    assert op.fire(SHOT, Step.PUSH, [PUSH]) is ALREADY
    assert op.fire(Shot("tidy", "another"), Step.PUSH, [PUSH]) is DONE
    assert ledgers.queue() == [b"a message"] * 2
    assert ledgers.totals() == {"fired": 2}
    assert ledgers.record("tidy") == record
    assert ledgers.open_ticks() == {}


def test_of_operators_at_once_with_one_id_one_sends(ledgers, op):
    operators = [op, *(ledgers.operator() for _ in range(5))]
    told = all_at_once(operators, lambda each: each.fire(SHOT, Step.PUSH, [PUSH]))
    assert sorted(told) == [ALREADY] * 5 + [DONE]
    assert ledgers.queue() == [b"a message"]


def test_every_command_of_a_message_is_done_in_order(ledgers, op):
    heard = ledgers.listen("/0.fanout")
    commands = [
        Command("LPUSH", "first", b"1"),
        Command("PUBLISH", "/0.fanout", b"to all"),
        Command("LPUSH", "first", b"2"),
        Command("PEXPIRE", "first", 3_600_000),
    ]
    assert op.fire(SHOT, Step.PUSH, commands) is DONE
    assert ledgers.queue("first") == [b"2", b"1"]
    assert heard() == [b"to all"]


def test_on_other_brokers_it_is_reserved_published_and_then_done(ledgers, op):
    other = ledgers.operator("bob@ops")
    assert op.fire(SHOT, Step.RESERVE) is DONE
    assert other.fire(SHOT, Step.RESERVE) is ALREADY
    assert ledgers.totals() == {}
    assert op.fire(SHOT, Step.DONE) is DONE
    assert other.fire(SHOT, Step.RESERVE) is ALREADY
    assert ledgers.totals() == {"fired": 1}
    assert ledgers.queue() == []


def test_what_could_not_be_published_may_be_tried_again(ledgers, op):
    assert op.fire(SHOT, Step.RESERVE) is DONE
    assert op.fire(SHOT, Step.FAILED) is DONE
    assert ledgers.totals() == {}
    assert ledgers.operator().fire(SHOT, Step.RESERVE) is DONE


def test_a_paused_entry_is_fired_only_by_force(ledgers, op):
    op.pause(["tidy"])
    before = ledgers.records()
    assert op.fire(SHOT, Step.PUSH, [PUSH]) is PAUSED
    assert op.fire(SHOT, Step.RESERVE) is PAUSED
    assert ledgers.records() == before
    assert op.fire(Shot("tidy", "an-id", force=True), Step.PUSH, [PUSH]) is DONE
    assert ledgers.queue() == [b"a message"]
    assert op.fire(SHOT, Step.PUSH, [PUSH]) is ALREADY, "which is told before the pause"


def test_what_was_reserved_before_a_pause_is_noted_as_sent(ledgers, op):
    op.fire(SHOT, Step.RESERVE)
    op.pause(["tidy"])
    assert op.fire(SHOT, Step.DONE) is DONE
    assert ledgers.totals() == {"fired": 1}


def test_a_queue_that_is_not_a_list_pushes_nothing_anywhere_and_is_not_remembered(ledgers, op):
    ledgers.occupy("taken")
    before = ledgers.records()
    commands = [PUSH, Command("LPUSH", "taken", b"a message")]
    with pytest.raises(DeliveryImpossible, match="'taken'"):
        op.fire(SHOT, Step.PUSH, commands)
    assert ledgers.records() == before
    assert op.fire(SHOT, Step.PUSH, [PUSH]) is DONE


def test_what_a_server_refuses_to_push_is_not_remembered_as_sent(served):
    served.node()
    served.client.execute_command(
        "ACL", "SETUSER", "plain", "reset", "on", ">pw", "~*", "&*", "+@all", "-lpush"
    )
    with pytest.raises(LedgerUnavailable, match="forbids our user"):
        served.operator(user={"username": "plain", "password": "pw"}).fire(SHOT, Step.PUSH, [PUSH])
    served.client.execute_command("ACL", "DELUSER", "plain")
    assert served.operator().fire(SHOT, Step.PUSH, [PUSH]) is DONE


def test_an_id_is_remembered_for_a_day_and_a_reservation_for_half_a_minute(served):
    served.node()
    op = served.operator()
    op.fire(SHOT, Step.RESERVE)
    op.fire(Shot("tidy", "sent"), Step.PUSH, [PUSH])
    left = {
        member.decode(): round((ends - served.now()) / 1_000_000)
        for member, ends in served.client.zrange(served.keys["fired"], 0, -1, withscores=True)
    }
    assert left == {"an-id": 30, "sent": 86_400}
    served.client.zadd(served.keys["fired"], {"an-id": 1, "sent": 1})
    assert op.fire(SHOT, Step.RESERVE) is DONE
    assert served.client.zrange(served.keys["fired"], 0, -1) == [b"an-id"]


def test_a_pause_whose_time_is_over_holds_nothing_back(ledgers, op):
    op.pause(["tidy"], until=ledgers.now() - 1)
    assert op.fire(Shot("tidy", "an id"), Step.RESERVE) is Firing.DONE
