"""Records that are not ours, or that nobody can read: told by name, and left alone."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import LedgerUnavailable
from celery_redlock_beat.ledger import Ask, Closing, Registration, Release, Settlement, Verdict
from celery_redlock_beat.ledger.steering import (
    Change,
    Definition,
    Kind,
    Removal,
    Resumption,
    Shot,
    Step,
)
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import SENT, Tick
from ledger.places import MINUTE, claim, due_ticks, grant, message, register, stored

OURS = {
    "marks": "hash",
    "open": "zset",
    "grants": "hash",
    "settled": "zset",
    "totals": "hash",
    "paused": "hash",
    "nodes": "zset",
    "heard": "hash",
    "present": "zset",
    "audit": "stream",
    "gone": "zset",
    "beats": "hash",
    "fired": "zset",
}
NEEDED_BY_ALL = {"marks", "open", "grants", "paused"}
VERBS = {
    "register": lambda node, held: node.register([Registration("new", "daily")]),
    "attend": lambda node, held: node.attend(["tidy"]),
    "claim": lambda node, held: node.claim([Ask(Tick("tidy", held.tick.at + 1), 0)]),
    "settle": lambda node, held: node.settle([Settlement(held, SENT)]),
    "enqueue": lambda node, held: node.enqueue(held, [message(held.tick)], {}),
    "release": lambda node, held: node.release([held], 0, Release.UNTRIED),
    "recover": lambda node, held: node.recover(Testimony([Memory("tidy", held.tick.at)])),
    "repair": lambda node, held: node.repair({"tidy": held.tick.at}, "ann", "why"),
    "restore": lambda node, held: node.restore([Change(Kind.PAUSE, "tidy", 9, b"9 0 {}")]),
    "changes": lambda node, held: node.changes(0),
    "resume": lambda node, held: node.resume([Resumption("other", 9)]),
    "look": lambda node, held: node.look(["tidy"]),
    "depart": lambda node, held: node.depart("{}"),
}
OF_OPERATORS = {
    "store": lambda op: op.store([Definition("{}", Registration("new", "daily"))]),
    "remove": lambda op: op.remove([Removal("stored", op.look(["stored"])[0].revision)]),
    "pause": lambda op: op.pause(["tidy"]),
    "skip": lambda op: op.skip([Tick("tidy", op.look(["tidy"])[0].now + MINUTE)]),
    "fire": lambda op: op.fire(Shot("tidy", "id"), Step.PUSH, [message(Tick("tidy", 1))]),
    "begin": lambda op: op.begin(),
}


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("verb", [*VERBS, *OF_OPERATORS])
def test_a_key_of_a_foreign_type_is_named_and_nothing_is_done_by_halves(served, verb, name):
    node = served.node()
    (tick,) = due_ticks(served, node)
    held = grant(node, tick)
    op = served.operator()
    stored(op, "stored")
    served.client.delete(served.keys[name])
    served.client.set(served.keys[name], "of somebody else")
    before = served.records()
    refused = None
    try:
        OF_OPERATORS[verb](op) if verb in OF_OPERATORS else VERBS[verb](node, held)
    except LedgerUnavailable as exc:
        refused = str(exc)
    assert served.client.get(served.keys[name]) == b"of somebody else"
    if refused:
        told = f"{served.keys[name]!r} is ours, and holds a string instead of a {OURS[name]}"
        assert told in refused
        assert "delete or rename it" in refused
        assert served.records() == before
    else:
        assert name not in NEEDED_BY_ALL


@pytest.mark.parametrize("verb", [*VERBS, *OF_OPERATORS])
def test_another_format_is_told_and_left_alone(served, verb):
    node = served.node()
    (tick,) = due_ticks(served, node)
    held = grant(node, tick)
    served.client.hset(served.keys["marks"], "format", "2")
    before = served.records()
    with pytest.raises(LedgerUnavailable, match="kept in format 2, which this release"):
        OF_OPERATORS[verb](served.operator()) if verb in OF_OPERATORS else VERBS[verb](node, held)
    assert served.records() == before


def test_an_unreadable_record_stops_no_other_entry_and_is_not_written_over(served):
    node = served.node()
    for entry in ("torn", "sound"):
        register(node, entry)
    served.pass_time(1)
    served.client.hset(served.keys["marks"], "e:torn", "12 monkeys")
    torn, sound = (Tick(entry, served.now() - 1) for entry in ("torn", "sound"))
    answers = node.claim([Ask(torn, torn.at), Ask(sound, sound.at)]).answers
    assert [answer.verdict for answer in answers] == [Verdict.UNREADABLE, Verdict.GRANTED]
    told = node.register([Registration("torn", "daily"), Registration("sound", "every µs")])
    assert (told[0], told[1].entry) == (None, "sound")
    node.recover(Testimony([Memory("torn", served.now()), Memory("sound", sound.at)]))
    assert served.client.hget(served.keys["marks"], "e:torn") == b"12 monkeys"
    node.repair({"torn": sound.at}, "ann", "torn")
    node.recover(Testimony())
    assert claim(node, Tick("torn", served.now() - 1)).verdict is Verdict.GRANTED


def test_an_unreadable_grant_stops_no_other_tick_and_is_not_written_over(served):
    node = served.node()
    first, second = due_ticks(served, node, count=2)
    held = grant(node, first)
    member = f"{first.at}:tidy"
    served.client.hset(served.keys["grants"], member, "closed, I think")
    served.client.zadd(served.keys["open"], {member: 1, "no tick at all": 1})
    assert node.claim([]).orphans == []
    assert claim(node, first).verdict is Verdict.UNREADABLE
    assert node.settle([Settlement(held, SENT)]) == [Closing.STALE]
    assert node.enqueue(held, [message(first)], {}) is Closing.STALE
    grant(node, second)
    assert served.client.hget(served.keys["grants"], member) == b"closed, I think"


def test_a_total_that_is_no_number_does_not_stop_what_it_counts(served):
    node = served.node()
    (tick,) = due_ticks(served, node)
    served.client.hset(served.keys["totals"], "sent", "very many")
    assert node.enqueue(grant(node, tick), [message(tick)], {}) is Closing.DONE
    assert served.open_ticks() == {}
    assert len(served.queue()) == 1


@pytest.mark.parametrize("field", ["fence", "hold_down"])
def test_an_unreadable_number_of_the_ledger_itself_is_no_obstacle(served, field):
    node = served.node()
    one, two = due_ticks(served, node, count=2)
    held = grant(node, one)
    served.client.hset(served.keys["marks"], field, "?")
    node.recover(Testimony([Memory("tidy", one.at, sure=one.at)]))
    served.restart()
    node.recover(Testimony([Memory("tidy", one.at, sure=one.at)]))
    assert grant(node, two).fence > held.fence


def test_who_may_not_count_may_not_send(served):
    served.client.execute_command(
        "ACL", "SETUSER", "plain", "reset", "on", ">pw", "~*", "&*", "+@all", "-hincrby"
    )
    node = served.node(user={"username": "plain", "password": "pw"})
    (tick,) = due_ticks(served, node)
    held = grant(node, tick)
    with pytest.raises(LedgerUnavailable, match="forbids our user"):
        node.enqueue(held, [message(tick)], {})
    assert served.queue() == []
    assert set(served.open_ticks()) == {tick}
    served.client.execute_command("ACL", "DELUSER", "plain")


def test_a_strange_member_of_the_feed_stops_nobody(served):
    node, op = served.node(), served.operator()
    revision = stored(op)
    served.client.zadd(served.keys["changes"], {"?": 1, b"e:\xff": 2})
    served.client.hset(served.keys["entries"], b"\xff\xfe", b"\xff")
    told = [each for each in node.changes(0).changes if each.text is not None]
    assert [(each.name, each.text) for each in told[1:]] == [("\udcff\udcfe", b"\xff")]
    assert told[0].revision == revision
    assert not node.claim([]).stirred
    served.flush()
    node.recover(Testimony())
    node.restore(told)
    assert served.client.hget(served.keys["entries"], b"\xff\xfe") == b"\xff"
    assert [each.text for each in node.changes(0).changes] == [each.text for each in told]


@pytest.mark.parametrize(
    ("key", "member", "score"),
    [("open", "7:tidy", "-inf"), ("open", b"5:\xff", 1), ("nodes", "abc", "inf")],
)
def test_a_strange_member_stops_nobody(served, key, member, score):
    node = served.node()
    (tick,) = due_ticks(served, node)
    served.client.zadd(served.keys[key], {member: score})
    node.claim([])
    assert node.enqueue(grant(node, tick), [message(tick)], {}) is Closing.DONE
    served.restart()
    node.recover(Testimony([Memory("tidy", tick.at, sure=tick.at)]))


@pytest.mark.parametrize("fence", ["nan", "inf", "-inf", "1e300", "-5"])
def test_a_fence_that_is_no_fence_is_begun_anew(served, fence):
    node = served.node()
    one, two = due_ticks(served, node, count=2)
    held = grant(node, one)
    served.client.hset(served.keys["marks"], "fence", fence)
    node.recover(Testimony([Memory("tidy", one.at, sure=one.at)]))
    assert grant(node, two).fence > held.fence


def test_garbage_in_what_was_heard_does_not_stop_a_recovery(served):
    node = served.node()
    register(node, "tidy")
    mark = served.now()
    served.client.hset(served.keys["heard"], mapping={"e:tidy": "?", "x:tidy": "?", "d:1": "?"})
    served.restart()
    node.recover(Testimony([Memory("tidy", mark, sure=mark)]))
    node.claim([])


def test_a_total_that_is_full_does_not_stop_what_it_counts(served):
    node = served.node()
    (tick,) = due_ticks(served, node)
    served.client.hset(served.keys["totals"], "sent", str(2**63 - 1))
    assert node.enqueue(grant(node, tick), [message(tick)], {}) is Closing.DONE
