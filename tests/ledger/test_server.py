"""What only a real server can do to its clients."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger import Closing, Release, Settlement, Verdict, redis_scripts
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import SENT
from ledger.places import (
    HOLD_DOWN,
    MOMENT,
    NAMESPACE,
    QUEUE,
    claim,
    due_ticks,
    grant,
    join,
    message,
    messages,
    patient_nodes,
)


def test_scripts_that_the_server_forgot_are_sent_again(served):
    flush = served.client.script_flush
    flush()
    a = served.node()
    flush()
    first, second = due_ticks(served, a, count=2)
    flush()
    held = grant(a, first)
    flush()
    a.release([held], 0, Release.UNTRIED)
    held = grant(a, first)
    flush()
    assert a.enqueue(held, [message(first)], {}) is Closing.DONE
    held = grant(a, second)
    flush()
    assert a.settle([Settlement(held, SENT)]) == [Closing.DONE]
    assert messages(served) == {first: 1}


def test_where_info_is_refused_the_fence_alone_decides(served):
    served.client.execute_command(
        "ACL", "SETUSER", "plain", "reset", "on", ">pw", "~*", "&*", "+@all", "-info"
    )
    user = {"username": "plain", "password": "pw"}
    a, b = served.node(user=user), served.node(user=user)
    assert served.identity() == "unknown"
    first, second = due_ticks(served, a, count=2)
    assert a.enqueue(grant(a, first), [message(first)], {}) is Closing.DONE
    served.restart()
    assert claim(b, first).verdict is Verdict.SETTLED
    old = served.snapshot()
    grant(a, second)
    served.restore(old)
    b.claim([])
    with pytest.raises(LedgerRecovering):
        a.claim([])
    join(a)
    with pytest.raises(LedgerRecovering):
        b.claim([])
    served.client.execute_command("ACL", "DELUSER", "plain")


def test_a_push_in_several_calls_counts_only_when_it_is_complete(served):
    first, second, _ = patient_nodes(served)
    served.restart()
    first.recover(Testimony())
    served.pass_time(HOLD_DOWN)
    running, call = [], second._call

    def watched(*args, **more):
        told = call(*args, **more)
        running.append(served.client.hexists(served.keys["marks"], "recovering"))
        return told

    second._call = watched
    second.recover(Testimony([Memory(f"entry {number}", 1, sure=1) for number in range(501)]))
    assert running == [True, False]


def test_a_node_that_waits_only_looks_until_the_recovery_is_over_or_another_one(served):
    a = served.node(joined=False, hold_down=1000 * MOMENT)
    memories = [Memory(f"entry {number}", 1) for number in range(501)]
    asked = []
    call = a._call

    def watched(verb, args, *more, **options):
        asked.append(len(args))
        return call(verb, args, *more, **options)

    a._call = watched
    assert a.recover(Testimony(memories)).wait > 0
    assert a.recover(Testimony(memories)).wait > 0
    assert [number > 100 for number in asked] == [True, False, False]
    served.restart()
    served.lose_pauses()
    told = a.recover(Testimony(memories))
    assert told.wait > 0
    assert told.lost == ["paused"]
    assert [number > 100 for number in asked[3:]] == [False, True, False]
    served.pass_time(1000 * MOMENT)
    del asked[:]
    a.recover(Testimony(memories))
    assert [number > 100 for number in asked] == [False, False]
    a.claim([])
    assert served.record("entry 500").mark == 1
    served.client.hdel(served.keys["marks"], "e:entry 500")
    a.recover(Testimony(memories))
    assert served.record("entry 500").mark == 1, "after any other call all is told again"


def test_after_a_fork_it_is_another_node_on_a_connection_of_its_own(served, monkeypatch):
    a = served.node()
    (tick,) = due_ticks(served, a)
    grant(a, tick)
    parent, connection = a.node, a._client
    monkeypatch.setattr(redis_scripts, "os", SimpleNamespace(getpid=lambda: 1))
    with pytest.raises(LedgerRecovering):
        a.claim([])
    assert (a.node != parent, a._client is not connection) == (True, True)
    join(a)
    assert claim(a, tick).verdict is Verdict.HELD


def test_every_ledger_key_carries_the_tag_of_the_namespace_and_none_but_nodes_expires(served):
    a = served.node()
    first, second = due_ticks(served, a, count=2)
    a.enqueue(grant(a, first), [message(first)], {})
    grant(a, second)
    keys = {key.decode() for key in served.client.scan_iter()} - {QUEUE}
    assert all(key.startswith(f"{{redlock:{NAMESPACE}}}:") for key in keys)
    assert {key for key in keys if served.client.pttl(key) >= 0} == {served.keys["nodes"]}
