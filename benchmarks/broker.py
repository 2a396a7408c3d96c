"""A Redis that keeps its data on disk, behind an entrance of its own, and what can befall it.

Nodes know the entrance only, as they would know a name that moves.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from celery_redlock_beat.testing.server import Server, wait_until
from celery_redlock_beat.verify.proxy import Proxy

if TYPE_CHECKING:
    import redis

LINK_LIMIT = 30.0


class Broker:
    """A server, and a replica if asked for; a context manager."""

    def __init__(self, *, replicated: bool = False) -> None:
        self._replicated = replicated
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        return self._entrance.url

    def connect(self) -> redis.Redis:
        """Return a client of whatever server has the data now, past the entrance."""
        return self._primary.client(single_connection_client=True)

    def restart(self, away: float) -> None:
        """Stop the server, and start it on the same data after so many seconds."""
        self._entrance.cut()
        self._primary.stop()
        time.sleep(away)
        self._primary.start()
        self._entrance.restore()

    def flush(self) -> None:
        """Lose all data, and stay up."""
        with self.connect() as client:
            client.flushall()

    def fail_over(self, behind: float, away: float) -> None:
        """Kill the server; a replica so far behind takes its place after so many seconds."""
        self._link.half_open()
        time.sleep(behind)
        self._entrance.cut()
        old, self._primary = self._primary, self._replica
        old.kill()
        with self.connect() as client:
            client.replicaof("NO", "ONE")
        time.sleep(away)
        self._entrance.target = ("127.0.0.1", self._primary.port)
        self._entrance.restore()

    def _replicate(self, stack: ExitStack) -> None:
        self._link = stack.enter_context(Proxy(self._primary.port))
        follow = ("--replicaof", "127.0.0.1", str(self._link.port))
        at_once = ("--repl-diskless-sync-delay", "0")
        self._replica = stack.enter_context(_server(*follow, *at_once))
        with self._replica.client() as client:
            wait_until(
                lambda: client.info("replication").get("master_link_status") == "up",
                LINK_LIMIT,
                "the replica to follow",
            )

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._primary = stack.enter_context(_server("--repl-diskless-sync-delay", "0"))
            if self._replicated:
                self._replicate(stack)
            self._entrance = stack.enter_context(Proxy(self._primary.port))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _server(*extra: str) -> Server:
    return Server(appendonly=True, fsync="everysec", extra=extra)
