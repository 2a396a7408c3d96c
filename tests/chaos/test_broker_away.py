"""The broker goes away, dawdles or babbles while the ledger is there, and the other way round."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler
from kombu import Exchange, Queue

from celery_redlock_beat.clock import wall_micros
from celery_redlock_beat.delivery import Delivered
from celery_redlock_beat.delivery.publish import Publish
from celery_redlock_beat.errors import DeliveryFailed
from celery_redlock_beat.ticks import SECOND, Tick
from support.every_second import FIVE
from support.judge import grid
from support.proxy import Proxy
from support.servers import Server, wait_until
from support.trial import LIMIT, NAMESPACE, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.ticks import Micros
    from support.account import Account
    from support.collector import Arrival

SHORT_LEASE = 1.2
OUTAGE = 2.5 * SHORT_LEASE
MIXED = {"one": "all", "two": "all", "three": "all", "newest": "latest", "newest too": "latest"}
AWAY = "The broker is away, nothing is sent until it is back: "
BACK = "The broker is back."
HOLD_DOWN = 3.0
CRONS = {"two", "four"}


@pytest.fixture
def other_redis() -> Iterator[Server]:
    """Start a server for the messages alone."""
    with Server(appendonly=True) as server:
        yield server


def live_through(
    trial: Trial,
    fault: Callable[[], object],
    cure: Callable[[], object],
    *,
    away: str = AWAY,
    back: str = BACK,
    lasts: float = OUTAGE,
    within: float = 2.0,
) -> None:
    """Break something in mid-work, and mend it after it was told; then all is sent again."""
    trial.next_burst()
    seen = {node: len(node.log) for node in trial.nodes}
    fault()
    for node in trial.nodes:
        node.wait_for_log(away, LIMIT, since=seen[node])
    told = wall_micros()
    time.sleep(lasts)
    ends = wall_micros()
    cure()
    assert trial.resumed_after(trial.now()) < within
    for node in trial.nodes:
        node.wait_for_log(back, LIMIT, since=seen[node])
        assert (node.log.count(away, seen[node]), node.log.count(back, seen[node])) == (1, 1)
    # By the time of the grant: what the broker had by then it may hand on late.
    assert [each for each in trial.collector.arrivals if told < granted_at(each) < ends] == []


def granted_at(arrival: Arrival) -> Micros:
    """Return the ledger's time at which the tick of a message was granted, or a little more."""
    return int(arrival.headers["redlock_fence"])


def check(trial: Trial, account: Account) -> None:
    """Look that all was sent, at least once, under its one id, and that the rest was counted."""
    # What a broker had taken without a word may be passed over as not sent, or sent again.
    assert account.faults_but("doubled", "uncounted") == {}
    attempts = defaultdict(list)
    for each in trial.collector.arrivals:
        if each.tick is not None:
            assert each.task_id == each.tick.task_id(NAMESPACE)
            attempts[each.tick].append(each.attempt)
            is_newest = granted_at(each) - each.tick.at < 1.1 * SECOND
            is_taken_over = each.attempt > 1
            assert is_newest or is_taken_over or MIXED[each.tick.entry] == "all", each
    assert all(len(set(each)) == len(each) for each in attempts.values()), "one message per grant"
    assert account.totals.keys() == {"sent", "skipped:superseded"}


def test_a_redis_that_only_carries_messages_goes_away_in_every_way(
    redis_server, other_redis, tmp_path
):
    config = {"redlock_beat_url": redis_server.url, "redlock_beat_lease": SHORT_LEASE}
    with (
        other_redis.client() as client,
        Proxy(other_redis.port) as line,
        Trial(
            tmp_path,
            redis_server,
            url=line.url,
            broker_url=other_redis.url,
            config=config,
            policies=MIXED,
        ) as trial,
    ):
        live_through(trial, other_redis.kill, other_redis.start)
        live_through(trial, other_redis.freeze, other_redis.thaw)
        live_through(
            trial,
            lambda: client.config_set("maxmemory", "100kb"),
            lambda: client.config_set("maxmemory", "0"),
            lasts=1,
        )
        live_through(trial, lambda: line.answer(b":12a\r\n"), line.restore, lasts=1)
        line.delay(0.3)
        trial.go_on(2)
        line.restore()
        _cut_after_publishing(trial, line)
        account = trial.conclude(exact=False)
    check(trial, account)
    assert account.count("doubled") >= 2


@pytest.mark.needs_rabbitmq
def test_a_rabbitmq_goes_away_in_every_way(redis_server, rabbitmq, tmp_path):
    rabbitmq.delete_queues("celery")
    config = {"redlock_beat_url": redis_server.url, "redlock_beat_lease": SHORT_LEASE}
    page = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbye"
    with (
        Proxy(rabbitmq.port) as line,
        Trial(
            tmp_path,
            redis_server,
            url=rabbitmq.url.replace(f":{rabbitmq.port}", f":{line.port}"),
            broker_url=rabbitmq.url,
            config=config,
            policies=MIXED,
        ) as trial,
    ):
        live_through(trial, rabbitmq.freeze, rabbitmq.thaw)
        live_through(trial, line.cut, line.restore, lasts=1)
        live_through(trial, line.half_open, line.restore, lasts=1)
        live_through(trial, lambda: line.answer(page, ends=True), line.restore, lasts=1)
        line.delay(0.3)
        trial.go_on(2)
        line.restore()
        _cut_after_publishing(trial, line)
        account = trial.conclude(exact=False)
    check(trial, account)
    assert account.count("doubled") >= 2


@pytest.mark.needs_rabbitmq
def test_a_ledger_that_is_away_for_longer_than_its_leases_keeps_the_broker_waiting(
    redis_server, rabbitmq, tmp_path
):
    rabbitmq.delete_queues("celery")
    config = {"redlock_beat_url": redis_server.url, "redlock_beat_lease": SHORT_LEASE}
    told = {
        "away": "The ledger is away",
        "back": "The ledger is back after",
    }
    with Trial(
        tmp_path, redis_server, broker_url=rabbitmq.url, config=config, policies=MIXED
    ) as trial:
        live_through(trial, redis_server.freeze, redis_server.thaw, **told)
        live_through(trial, redis_server.kill, redis_server.start, within=2 + HOLD_DOWN, **told)
        trial.wait_for_quiet()
        account = trial.conclude(exact=False)
    check(trial, account)


def test_ticks_that_are_late_beyond_their_grace_are_counted_and_the_others_sent(
    redis_server, other_redis, tmp_path
):
    grace = 2
    config = {"redlock_beat_url": redis_server.url, "beat_cron_starting_deadline": grace}
    with Trial(tmp_path, redis_server, broker_url=other_redis.url, config=config, nodes=2) as trial:

        def fault():
            trial.wait_for_quiet()  # so that no message is on its way
            other_redis.kill()

        live_through(trial, fault, other_redis.start, lasts=2 * grace)
        trial.go_on(1)
        trial.wait_for_quiet()  # in a second it is quiet again, and the nodes end
        account = trial.conclude(patience=1)
    assert account.faults_but("lost", "skipped") == {}
    came = {each.tick for each in trial.collector.arrivals if each.tick}
    due = {
        Tick(entry, at)
        for entry in FIVE
        for at in grid(1, trial.since[entry] + 1, max(tick.at for tick in came))
    }
    assert {tick.entry for tick in due - came} == CRONS
    assert len(due - came) == account.totals["skipped:grace"]
    for each in trial.collector.arrivals:
        if each.tick and each.tick.entry in CRONS:
            assert each.at - each.tick.at < (grace + 0.5) * SECOND


def _cut_after_publishing(trial: Trial, line: Proxy) -> None:
    """Close connections to the broker right after it took a message, before it could say so."""
    for _ in range(2):
        dropped = line.dropped
        line.drop_replies(matching=b"three", limit=1)  # of the entry of that name, and policy "all"
        wait_until(lambda before=dropped: line.dropped > before, LIMIT, "a lost confirmation")
        trial.wait_for_quiet()  # what an open tick has passed over is counted when it is closed


@pytest.mark.parametrize("noise", [b":12a\r\n", b"+OK\r\n"], ids=["unreadable", "another answer"])
def test_what_is_no_answer_of_a_broker_is_no_mistake_of_an_entry(other_redis, noise):
    with Proxy(other_redis.port) as line:
        app = Celery("shop", broker=line.url, set_as_current=False)
        app.conf.beat_schedule = {}
        app.conf.task_queues = [Queue("cats", Exchange("animals", type="topic"), "cat.*")]
        scheduler = Scheduler(app=app, lazy=True)
        options = {"exchange": "animals", "routing_key": "cat.tom", "queue": "cats"}
        entry = ScheduleEntry(name="e", task="t", schedule=1.0, options=options, app=app)
        delivery = Publish(
            app, lambda e, to: scheduler.apply_async(e, producer=to, advance=False), 5.0
        )
        assert delivery.deliver(None, entry, {}) is Delivered.PUBLISHED
        line.answer(noise)
        with pytest.raises(DeliveryFailed):
            delivery.deliver(None, entry, {})
        assert not delivery.ready()
        line.restore()
        wait_until(delivery.ready, LIMIT, "the broker")
        assert delivery.deliver(None, entry, {}) is Delivered.PUBLISHED
        delivery.close()
    with other_redis.client() as client:
        assert client.llen("cats") == 2
