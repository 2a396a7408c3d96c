"""RedBeat, ours and back again, node by node under load: nothing doubled, nothing lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import SECOND
from support.proxy import Proxy
from support.servers import Server
from support.switching import CRONTABS, INTERVALS, REDBEAT, Switch, parts

MINUTE = 60 * SECOND
PERIOD = SECOND
SLACK = 2 * SECOND
"""How late the first tick after a clean change may be."""


@pytest.fixture
def switch(tmp_path, redis_server):
    with Switch(tmp_path, redis_server) as switch:
        yield switch


def three_of(switch, scheduler):
    for place in range(3):
        switch.start(place, scheduler)


def roll(switch, scheduler):
    """Replace node by node; return when the last of the old ones was gone."""
    gone = 0
    for place in range(3):
        gone = switch.stop(place)
        switch.start(place, scheduler)
        if place < 2:
            switch.wait_for(timedelta(seconds=4))
    return gone


@pytest.mark.timeout(400)
def test_three_nodes_change_to_ours_and_back_again(switch):
    three_of(switch, REDBEAT)
    wait_until(lambda: len(switch.by_entry()) == 50, 90, "RedBeat to send every entry")
    gone_first = roll(switch, "redlock")
    switch.wait_for(timedelta(seconds=65))
    gone_second = roll(switch, REDBEAT)
    switch.wait_for(timedelta(seconds=65))
    sent = switch.by_entry()
    assert set(sent) == {*INTERVALS, *CRONTABS}
    for name in INTERVALS:
        turns = parts(sent[name])
        assert [turn[0].tick is None for turn in turns] == [True, False, True], name
        before, ours, after = turns
        ticks = [each.tick for each in ours]
        # Ours goes on one period after the last run, tick by tick, and RedBeat after the last tick.
        assert before[-1].at - SECOND < ticks[0] - PERIOD <= before[-1].at, name
        assert ticks == [ticks[0] + PERIOD * number for number in range(len(ticks))], name
        assert after[0].at >= ticks[-1] + PERIOD, name
        assert ours[0].at <= gone_first + SLACK, name
        assert after[0].at <= max(gone_second, ticks[-1] + PERIOD) + SLACK, name
    for name in CRONTABS:
        minutes = [(each.tick or each.at) // MINUTE for each in sent[name]]
        assert minutes == list(range(minutes[0], minutes[0] + len(minutes))), name
    logs = "".join(path.read_text() for path in switch.directory.glob("*redlock.log"))
    assert logs.count("The last node leaves: RedBeat's lock") == 1
    assert "nothing is sent until it gives that back" in logs


@pytest.mark.timeout(120)
def test_the_lock_of_a_redbeat_that_crashed_is_waited_for_and_never_stolen(switch):
    redbeat = switch.start(0, REDBEAT)
    wait_until(lambda: len(switch.by_entry()) >= 40, 60, "RedBeat to send")
    ours = switch.start(1, "redlock")
    ours.wait_for_log("nothing is sent until it gives that back, or it ends, in [5-8] s")
    switch.quiet()
    redbeat.kill()
    with switch.server.client() as client:
        token, left = client.get("redbeat::lock"), client.pttl("redbeat::lock")
        assert left > 4000
        killed = switch.now()
        wait_until(lambda: client.get("redbeat::lock") != token, 20, "the lock to end")
        assert switch.now() >= killed + (left - 200) * 1000
    wait_until(lambda: switch.sent_by_ours() >= set(INTERVALS), 10, "ours to send")
    for name in INTERVALS:
        before, ours_sent = parts(switch.by_entry()[name])
        ticks = [each.tick for each in ours_sent]
        assert before[-1].at - SECOND < ticks[0] - PERIOD <= before[-1].at
        assert ticks == [ticks[0] + PERIOD * number for number in range(len(ticks))]


@pytest.mark.timeout(120)
def test_after_all_of_ours_were_killed_redbeat_repeats_nothing_that_it_was_told(switch):
    """What was sent after the last pass it cannot know: at most the runs of that moment."""
    nodes = [switch.start(place, "redlock") for place in range(2)]
    wait_until(lambda: len(switch.by_entry()) >= 40, 60, "ours to send")
    switch.wait_for(timedelta(seconds=3))
    switch.start(2, REDBEAT)
    switch.wait_for(timedelta(seconds=5))
    assert all(each.tick for each in switch.watch.arrived)
    switch.quiet()
    for node in nodes:
        node.kill()
    wait_until(lambda: not all(each.tick for each in switch.watch.arrived), 60, "RedBeat to send")
    switch.quiet()
    for name in INTERVALS:
        ours, after = parts(switch.by_entry()[name])
        assert after[0].at >= ours[-1].tick + PERIOD


@pytest.mark.timeout(120)
def test_a_node_that_slept_through_the_end_of_its_lock_sends_nothing_when_it_wakes(
    tmp_path, redis_server
):
    with Switch(tmp_path, redis_server, {"redlock_beat_lease": 2}) as switch:
        ours = switch.start(0, "redlock")
        wait_until(lambda: switch.sent_by_ours() >= set(INTERVALS), 60, "ours to send")
        switch.start(1, REDBEAT)
        switch.wait_for(timedelta(seconds=4))
        ours.freeze()
        wait_until(lambda: switch.sent_by_redbeat() >= set(INTERVALS), 60, "RedBeat to send")
        ours.thaw()
        switch.wait_for(timedelta(seconds=5))
        switch.stop(1)
        before = {name: each[-1].at for name, each in switch.by_entry().items()}
        wait_until(lambda: switch.sent_since(before) >= set(INTERVALS), 20, "ours to send again")
        for name in INTERVALS:
            first, theirs, second = parts(switch.by_entry()[name])
            assert theirs[0].at >= first[-1].tick + PERIOD
            assert second[0].tick > theirs[-1].at
        assert ours.alive


@pytest.mark.timeout(120)
def test_while_redbeats_redis_is_away_nothing_is_sent_and_then_all_of_it(tmp_path, redis_server):
    """The lock is on a server of its own, behind a network that fails."""
    with Server() as other, Proxy(other.port) as proxy:
        health = tmp_path / "health"
        config = {
            "redbeat_redis_url": f"redis://127.0.0.1:{proxy.port}/0",
            "redlock_beat_lease": 2,
            "redlock_beat_health_file": str(health),
        }
        with Switch(tmp_path, redis_server, config) as switch:
            ours = switch.start(0, "redlock")
            wait_until(lambda: switch.sent_by_ours() >= set(INTERVALS), 60, "ours to send")
            proxy.cut()
            ours.wait_for_log("RedBeat's Redis is away, nothing is sent until it is back")
            wait_until(lambda: "Redis is away" in health.read_text(), 20, "the node to be red")
            count = len(switch.watch.arrived)
            switch.wait_for(timedelta(seconds=4))
            assert len(switch.watch.arrived) <= count + len(switch.by_entry())
            proxy.restore()
            ours.wait_for_log("RedBeat's Redis is back")
            wait_until(lambda: '"ready": true' in health.read_text(), 20, "the node to be green")
            switch.wait_for(timedelta(seconds=4))
            for name in INTERVALS:
                ticks = [each.tick for each in switch.by_entry()[name]]
                assert ticks == [ticks[0] + PERIOD * number for number in range(len(ticks))]
