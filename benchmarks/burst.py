"""Many crontabs due in the same minute: how long until the last message is in the queue."""

from __future__ import annotations

import time
from dataclasses import dataclass

from beats import SCHEDULERS, Beat, running

from celery_redlock_beat.testing.server import Server

ENTRIES = 1000
LIMIT = 50.0
MARGIN = 12.0
"""Seconds that a beat needs to start and to know all entries before the minute begins."""


@dataclass
class Burst:
    """``sent`` messages within ``seconds`` of the full minute."""

    name: str
    sent: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.sent / self.seconds


def measure() -> list[Burst]:
    """Measure each beat at a full minute of its own, and what the server can take at most."""
    bursts = [_burst(name, name) for name in SCHEDULERS]
    without = _burst("redlock, without a history", "redlock", redlock_beat_history=0)
    return [*bursts, without, *_raw()]


def _burst(name: str, scheduler: str, **settings: object) -> Burst:
    if 60 - time.time() % 60 < MARGIN:
        time.sleep(60 - time.time() % 60)
    with running(scheduler, "crontab()", ENTRIES, **settings) as beat:
        minute = (time.time() // 60 + 1) * 60
        time.sleep(max(0.0, minute - time.time()))
        return _count(name, beat, minute)


def _count(name: str, beat: Beat, minute: float) -> Burst:
    sent, at = 0, minute
    with beat.server.client() as client:
        while sent < ENTRIES and time.time() < minute + LIMIT:
            now_sent = int(client.llen("celery"))
            if now_sent != sent:
                sent, at = now_sent, time.time()
            time.sleep(0.005)
    return Burst(name, sent, max(at - minute, 0.001))


def _raw() -> list[Burst]:
    message = b"x" * 900  # about what a message without arguments weighs
    with Server() as server, server.client() as client:
        started = time.perf_counter()
        for _ in range(ENTRIES):
            client.lpush("celery", message)
        single = time.perf_counter() - started
        pipe = client.pipeline(transaction=False)
        started = time.perf_counter()
        for _ in range(ENTRIES):
            pipe.lpush("celery", message)
        pipe.execute()
        piped = time.perf_counter() - started
    return [
        Burst("raw: one LPUSH each", ENTRIES, single),
        Burst("raw: LPUSH in a pipeline", ENTRIES, piped),
    ]
