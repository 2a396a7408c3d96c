from __future__ import annotations

import json
import time
from datetime import timedelta
from itertools import count

import pytest

from celery_redlock_beat.ticks import SECOND, Tick, to_datetime
from support.collector import Arrival, Collector
from support.judge import grid, judge, judge_all, totals
from support.proxy import Proxy

T0 = 1_700_000_000 * SECOND
numbers = count()


def came(second: float, *, entry="a", late=0.01, task_id=None) -> Arrival:
    at = T0 + round(second * SECOND)
    return Arrival(Tick(entry, at), task_id or f"{entry}-{at}", 1, at + round(late * SECOND))


def message(second: int, push: str | None = None) -> str:
    instant = to_datetime(T0 + second * SECOND).isoformat()
    headers = {"id": f"id-{second}", "redlock_entry": "a", "redlock_tick": instant}
    tag = push or f"push-{next(numbers)}"
    return json.dumps({"headers": headers, "properties": {"delivery_tag": tag}, "body": ""})


# --- the grid and the verdict


def test_the_grid_is_counted_from_the_epoch_with_both_ends():
    assert grid(10, 5 * SECOND, 30 * SECOND) == (10 * SECOND, 20 * SECOND, 30 * SECOND)
    assert grid(10, 10 * SECOND, 10 * SECOND) == (10 * SECOND,)
    assert grid(10, 11 * SECOND, 19 * SECOND) == ()


def test_the_grid_can_have_a_phase_and_fractions():
    assert grid(10, 0, 20 * SECOND, phase=3) == (3 * SECOND, 13 * SECOND)
    assert grid(0.25, 0, SECOND // 2) == (0, 250_000, 500_000)
    assert grid(timedelta(minutes=1), 1, 61 * SECOND) == (60 * SECOND,)


def test_a_run_without_faults_is_clean():
    verdict = judge([came(0), came(1), came(2)], "a", 1)
    assert verdict.clean
    assert verdict.once
    assert len(verdict.due) == len(verdict.sent) == 3
    assert verdict.latest == 10_000
    assert str(verdict) == "a: 3 of 3 due were sent"


def test_a_tick_that_never_came_is_lost():
    verdict = judge([came(0), came(3)], "a", 1)
    assert verdict.lost == (T0 + SECOND, T0 + 2 * SECOND)
    assert verdict.once
    assert not verdict.clean
    assert "lost: 2 (2023-11-14T22:13:21+00:00, 2023-11-14T22:13:22+00:00)" in str(verdict)


def test_an_explicit_window_sees_what_is_missing_at_its_ends():
    window = {"first": T0, "last": T0 + 3 * SECOND}
    verdict = judge([came(-5), came(1), came(2)], "a", 1, **window)
    assert verdict.lost == (T0, T0 + 3 * SECOND)
    assert len(verdict.sent) == 2


def test_nothing_in_a_window_is_all_lost_and_without_a_window_nothing():
    assert len(judge([], "a", 1, first=T0, last=T0 + SECOND).lost) == 2
    assert judge([], "a", 1).clean


def test_a_tick_that_came_twice_is_doubled_whatever_its_id():
    same = judge([came(0), came(0)], "a", 1)
    assert (same.doubled, same.other_id) == ((T0,), ())
    other = judge([came(0), came(0, task_id="x")], "a", 1)
    assert (other.doubled, other.other_id) == ((T0,), (T0,))
    assert not same.once
    assert not other.once


def test_a_message_before_its_instant_is_early_even_by_a_microsecond():
    assert judge([came(0, late=-0.000001)], "a", 1).early == (T0,)
    assert not judge([came(0, late=0)], "a", 1).early


def test_an_instant_that_was_not_due_is_off_the_grid():
    verdict = judge([came(0), came(0.5), came(1)], "a", 1)
    assert verdict.off_grid == (T0 + SECOND // 2,)
    assert not verdict.clean


def test_the_due_instants_can_be_given():
    assert judge([came(0), came(5)], "a", [T0, T0 + 5 * SECOND]).clean


def test_entries_are_judged_apart():
    verdicts = judge_all([came(0), came(2), came(0, entry="b")], {"a": 1, "b": 1})
    assert verdicts["a"].lost == (T0 + SECOND,)
    assert verdicts["b"].clean


# --- the collector


def test_messages_are_recorded_with_ids_and_the_servers_time(shared_redis):
    with shared_redis.client() as client, Collector(shared_redis.url) as collector:
        client.lpush("celery", message(0), message(1))
        arrivals = collector.wait_until(2)
    assert [each.task_id for each in arrivals] == ["id-0", "id-1"]
    assert arrivals[1].tick == Tick("a", T0 + SECOND)
    assert arrivals[0].at / SECOND == pytest.approx(time.time(), abs=5)
    assert collector.of("a") == arrivals
    assert collector.of("b") == []


def test_what_came_twice_is_recorded_twice(shared_redis):
    with shared_redis.client() as client, Collector(shared_redis.url) as collector:
        client.lpush("celery", message(0, push="one"), message(0, push="one"))
        collector.wait_until(lambda it: len(it.arrivals) == 2)
        assert collector.ticks() == {Tick("a", T0)}
        assert judge(collector.arrivals, "a", 1).doubled == (T0,)


def test_messages_of_a_stock_beat_have_no_tick(shared_redis):
    with shared_redis.client() as client, Collector(shared_redis.url, "other") as collector:
        client.lpush("other", json.dumps({"headers": {"id": "x"}, "properties": {}}))
        (arrival,) = collector.wait_until(lambda it: it.arrivals)
    assert (arrival.tick, arrival.task_id) == (None, "x")


def test_waiting_has_a_limit_and_tells_what_there_was(shared_redis):
    with Collector(shared_redis.url) as collector, pytest.raises(TimeoutError, match="0 messages"):
        collector.wait_until(1, timeout=0.1)


def test_no_message_is_missed_or_counted_twice_when_the_collector_loses_replies(shared_redis):
    with (
        shared_redis.client() as client,
        Proxy(shared_redis.port) as line,
        Collector(line.url) as collector,
    ):
        line.drop_replies(0.15, seed=1)
        for second in range(10):
            client.lpush("celery", message(second))
        collector.wait_until(10)
        assert line.dropped
        assert judge(collector.arrivals, "a", 1).clean


def test_a_killed_server_costs_no_message(redis_server):
    with Collector(redis_server.url) as collector:
        for second in range(6):
            with redis_server.client() as client:
                client.lpush("celery", message(second))
            if second % 2:
                redis_server.kill()
                redis_server.start()
        collector.wait_until(6)
        assert judge(collector.arrivals, "a", 1).clean


def test_messages_that_a_server_forgot_to_have_handed_out_are_not_counted_again(shared_redis):
    with shared_redis.client() as client, Collector(shared_redis.url) as collector:
        client.lpush("celery", message(0), message(1, push="moved"))
        collector.wait_until(2)
        client.pipeline().delete("celery.collected").lpush(
            "celery", message(1, push="moved"), message(2)
        ).execute()
        collector.wait_until(3)
        assert judge(collector.arrivals, "a", 1).clean
        client.lpush("celery", message(1, push="moved"))  # once more is once too often
        collector.wait_until(lambda it: len(it.arrivals) == 4)


def test_a_flushed_server_goes_on(shared_redis):
    with shared_redis.client() as client, Collector(shared_redis.url) as collector:
        client.lpush("celery", message(0), message(1))
        collector.wait_until(2)
        client.flushall()
        client.lpush("celery", message(2))
        collector.wait_until(3)


def test_totals_are_read_as_numbers(shared_redis):
    with shared_redis.client() as client:
        assert totals(client, "shop") == {}
        client.hset("{redlock:shop}:totals", mapping={"sent": 3, "skipped:grace": 1})
        assert totals(client, "shop") == {"sent": 3, "skipped:grace": 1}
