"""The ledger's clock on a node: samples in, time out."""

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ticks import SECOND

NOON = 1_800_000_000 * SECOND


def test_it_is_unknown_until_the_ledger_has_told_it():
    clock = LedgerClock(monotonic=lambda: 0)
    assert not clock.is_known
    clock.observe(0, 100, NOON)
    assert clock.is_known


def test_it_runs_on_with_the_monotonic_clock():
    now = 1000
    clock = LedgerClock(monotonic=lambda: now)
    clock.observe(900, 1000, NOON)
    first = clock.now()
    now += 7 * SECOND
    assert clock.now() - first == 7 * SECOND


def test_it_trusts_the_shortest_round_trip():
    clock = LedgerClock(monotonic=lambda: 0)
    clock.observe(-200_000, 0, NOON - 30_000)  # off by 70 ms, within its round trip
    clock.observe(-200, 0, NOON - 100)
    assert clock.now() == NOON
    clock.observe(-200_000, 0, NOON - 30_000)
    assert clock.now() == NOON


def test_a_server_clock_that_jumps_is_followed_at_once():
    clock = LedgerClock(monotonic=lambda: 0)
    clock.observe(-200, 0, NOON)
    clock.observe(-2000, 0, NOON + 3600 * SECOND)
    assert abs(clock.now() - (NOON + 3600 * SECOND)) < 2000
