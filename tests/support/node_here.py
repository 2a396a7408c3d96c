"""A real node inside the test's own process, with short times; its messages go nowhere else.

For what a test wants to know at once, without a process of its own: tests of chaos start those.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

from celery import Celery

from celery_redlock_beat import RedlockScheduler
from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger.redis import RedisLedger
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.client import Server, locate

NAME = "proj"
QUICK = {
    "redlock_beat_socket_timeout": 0.5,
    "redlock_beat_poll": 0.05,
    "redlock_beat_hold_down": 0.6,
    "redlock_beat_lease": 1,
}
LIMIT = 20.0


class NodeHere:
    """A scheduler that passes when it is told to; a context manager.

    It has one entry that is due ten times per second. ``url`` is the ledger's.
    """

    def __init__(self, url: str | None, broker: str = "memory://", **conf: Any) -> None:
        self.app = Celery(NAME, broker=broker, set_as_current=False)
        schedule = {"often": {"task": "proj.noop", "schedule": 0.1}}
        self.app.conf.update(redlock_beat_url=url, beat_schedule=schedule, **{**QUICK, **conf})
        self.scheduler = RedlockScheduler(app=self.app)

    @property
    def sent(self) -> int:
        """How many messages it has sent."""
        return int(self.scheduler.schedule["often"].total_run_count)

    def go_on(self, messages: int = 2, limit: float = LIMIT) -> None:
        """Pass until so many more messages were sent."""
        wanted = self.sent + messages
        self.pass_until(lambda: self.sent >= wanted, limit)

    def pass_until(self, condition: Callable[[], object], limit: float = LIMIT) -> None:
        """Pass until a condition is met."""
        deadline = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < deadline, f"after {limit:g} s, {self.sent} messages were sent"
            time.sleep(min(self.scheduler.tick(), 0.05))

    def pass_for(self, seconds: float) -> None:
        """Pass for so long, whatever comes of it."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(min(self.scheduler.tick(), 0.05))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.scheduler.close()


def located(url: str | None, broker: str = "memory://", **conf: Any) -> Server:
    """Return the ledger's server, as a node would find it."""
    app = Celery(NAME, broker=broker, set_as_current=False)
    app.conf.update(redlock_beat_url=url, **{**QUICK, **conf})
    return locate(app, Settings.from_app(app))


def ledger_at(url: str | None, **conf: Any) -> RedisLedger:
    """Return the ledger at a URL; it may still have to recover."""
    server = located(url, **conf)
    namespace = conf.get("redlock_beat_namespace", NAME)
    return RedisLedger(server.connect, LedgerClock(), namespace, prefix=server.prefix)
