"""An operator changes entries all the time, at their very ticks, and while nodes are killed."""

from __future__ import annotations

import logging
import time
from functools import partial

import pytest

from celery_redlock_beat.ticks import SECOND
from support.at_work import AtWork
from support.deeds import RETURNED, Kind
from support.lengths import times
from support.nodes import BeatNode
from support.proxy import Proxy
from support.servers import Server
from support.steered import SteeredTrial

STORED = [f"stored-{number:02d}" for number in range(50)]
HELD = [f"held-{number}" for number in range(4)]
logger = logging.getLogger(__name__)


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.mark.timeout(400)
def test_changes_all_the_time_and_nodes_that_die_cost_no_tick_and_bring_nothing_back(
    server, tmp_path
):
    with SteeredTrial(tmp_path, server, code=HELD) as trial:
        work = AtWork(trial.operator, STORED, HELD, seed=41)
        began = trial.now()
        work.start()
        for place in range(times(4, 6)):
            victim = trial.nodes[place % 3]
            time.sleep(times(2, 8))  # and about two seconds until it is back
            trial.next_burst()
            victim.kill()
            trial.begin([victim])
        ended = trial.now()
        work.end()
        trial.go_on(8)  # pauses that end by themselves are over, and leases of the dead
        found = trial.conclude_steered()
    assert dict(found.faults) == {}
    assert found.changes > 20 * (ended - began) / SECOND
    assert found.sent > found.changes / 2


def test_what_is_removed_or_paused_in_the_very_moment_of_its_tick_is_sent_once_or_not_at_all(
    server, tmp_path
):
    entries = STORED + [f"more-{number}" for number in range(10)]
    with SteeredTrial(tmp_path, server) as trial:
        operator = trial.operator
        for entry in entries:
            operator.add(entry)
        for number, entry in enumerate(entries):
            if number % 6 == 0:
                tick = wait_until_before_a_second(trial, 0.004)
            (operator.remove if number % 2 else operator.pause)(entry)
            assert trial.now() - tick < SECOND / 2
        hits = [deed for deed in operator.deeds if deed.kind in {Kind.REMOVE, Kind.PAUSE}]
        for entry in entries[::2]:
            operator.resume(entry)
        found = trial.conclude_steered()
    assert dict(found.faults) == {}
    fates = [_was_sent_at_that_tick(trial, deed) for deed in hits]
    logger.info("%d of %d were sent for that tick", sum(fates), len(fates))
    assert any(fates), "some were sent just before"


def _was_sent_at_that_tick(trial, deed):
    tick = round(deed.moment.returned / SECOND) * SECOND
    return tick in {each.tick.at for each in trial.collector.of(deed.entry)}


def wait_until_before_a_second(trial, seconds):
    """Wait until it is so long before the next whole second by the server's clock; return that."""
    tick = (trial.now() // SECOND + 1) * SECOND
    ahead = tick - round(seconds * SECOND)
    if trial.now() > ahead:
        return wait_until_before_a_second(trial, seconds)
    while (now := trial.operator.now()) < ahead:
        time.sleep(min(0.01, (ahead - now) / SECOND / 2))
    return tick


def test_an_entry_that_is_added_50_ms_before_its_tick_is_sent_for_that_tick(server, tmp_path):
    with SteeredTrial(tmp_path, server, untouched={}) as trial:
        operator = trial.operator
        operator.add("warm up", 3.0)
        hits = 0
        for number in range(10):
            tick = wait_until_before_a_second(trial, 0.05)
            deed = operator.add(f"new {number}", 2.0 if tick % (2 * SECOND) == 0 else 1.0)
            if deed.moment.returned < tick:
                hits += 1
                message = trial.sent_for(deed.entry, tick)
                assert message.tick.at == tick
                assert message.at - tick < SECOND
            operator.remove(deed.entry)
        found = trial.conclude_steered()
    assert dict(found.faults) == {}
    assert hits > 5


def test_each_change_is_in_force_on_every_node_within_a_second(server, tmp_path):
    talkative = partial(BeatNode, loglevel="debug")
    with SteeredTrial(tmp_path, server, make_node=talkative) as trial:
        operator, slowest = trial.operator, 0.0
        for number in range(10):
            name = f"entry {number % 3}"
            known = operator.knows(name).terms
            deed = operator.edit(name, 2.0) if known else operator.add(name)
            revision = operator.control.get(name).revision
            slowest = max(slowest, _all_have_it(trial, rf"{name}: .*revision {revision}$", deed))
        seen = [len(node.log) for node in trial.nodes]
        deed = operator.remove("entry 0")
        slowest = max(slowest, _all_have_it(trial, "entry 0: it was removed", deed, seen))
        for place in range(3):
            slowest = max(slowest, _resumes_alone(trial, place))
        found = trial.conclude_steered()
    logger.info("the slowest change was in force after %.3f s", slowest)
    assert dict(found.faults) == {}
    assert slowest < 1


def _all_have_it(trial, words, deed, since=(0, 0, 0)):
    """Wait until each node has said that it took a change in; return after how many seconds."""
    for node, place in zip(trial.nodes, since, strict=True):
        node.wait_for_log(words, since=place)
    return (trial.now() - deed.moment.returned) / SECOND


def _resumes_alone(trial, place):
    """Return how late the first message of a resumed entry is where one node alone is awake."""
    others = [node for node in trial.nodes if node is not trial.nodes[place]]
    operator, name = trial.operator, "entry 1"
    operator.pause(name)
    trial.go_on(1)
    for node in others:
        node.freeze()
    try:
        resumed = operator.resume(name).moment.returned
        message = trial.sent_for(name, resumed)
        return (message.at - message.tick.at) / SECOND
    finally:
        for node in others:
            node.thaw()


@pytest.mark.needs_rabbitmq
@pytest.mark.parametrize("delivery", ["auto", "at_most_once"])
@pytest.mark.parametrize("deed", ["pause", "remove"])
def test_on_another_broker_what_was_under_way_comes_and_nothing_else(
    redis_server, rabbitmq, tmp_path, deed, delivery
):
    rabbitmq.delete_queues("celery")
    config = {"redlock_beat_url": redis_server.url, "redlock_beat_delivery": delivery}
    with (
        Proxy(rabbitmq.port) as line,
        SteeredTrial(
            tmp_path,
            redis_server,
            url=rabbitmq.url.replace(f":{rabbitmq.port}", f":{line.port}"),
            broker_url=rabbitmq.url,
            config=config,
            untouched={},
        ) as trial,
    ):
        operator, entries = trial.operator, [f"entry {number}" for number in range(3)]
        for entry in entries:
            operator.add(entry, 0.5, "all")
            trial.sent_for(entry, 0)
        line.delay(0.1)  # a message takes longer than the nodes need to ask for many
        for node in trial.nodes:
            node.freeze()
        time.sleep(8)
        before = len(trial.collector.arrivals)
        for node in trial.nodes:
            node.thaw()
        trial.wait_for(lambda came: len(came) > before + 6)
        assert len(trial.books().open) > 2 * len(entries), "nodes have many in hand"
        for entry in entries:
            getattr(operator, deed)(entry)
        line.restore()
        returned = trial.now()
        trial.until(lambda: trial.now() > returned + 3 * SECOND, "what may be under way")
        late = _pushed_after(trial, entries)
        for node in trial.nodes:
            assert trial.end(node) < 10
    logger.info("%s", late)
    assert max(late.values()) <= 1


def _pushed_after(trial, entries):
    """Count by entry the messages behind the mark of the last deed on it."""
    marks = {deed.mark(RETURNED): deed.entry for deed in trial.operator.deeds}
    late = dict.fromkeys(entries, 0)
    for each in trial.collector.arrivals:
        if each.task_id in marks:
            late[marks[each.task_id]] = 0
        elif each.tick:
            late[each.tick.entry] += 1
    return late
