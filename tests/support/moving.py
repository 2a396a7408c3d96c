"""A primary whose replica falls behind and is promoted, and nodes that hear of it late."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from support.proxy import Proxy
from support.servers import Server, replica_of, wait_for_replica


class MovingPrimary:
    """A primary, its replica, and one entrance per client, which leads to the primary.

    ``fail_over`` has the replica miss the last moments, kills the primary, promotes the replica,
    and has each entrance lead there after a while of its own. A context manager.
    """

    def __init__(self, entrances: int) -> None:
        self.primary = Server()
        self._replica: Server | None = None
        self._link: Proxy | None = None
        self._stack = ExitStack()
        self._entrances = entrances
        self.entrances: list[Proxy] = []

    def fall_behind(self) -> None:
        """Have the replica miss all from now on, until it is promoted."""
        assert self._link is not None
        self._link.half_open()

    def fail_over(self, behind: float, late: Sequence[float]) -> None:
        """Fail over to a replica that is so many seconds behind; each entrance follows so late."""
        assert self._link is not None
        assert self._replica is not None
        self._link.half_open()
        time.sleep(behind)
        self._stop_leading()
        old, self.primary = self.primary, self._replica
        old.kill()
        with self.primary.client() as client:
            client.replicaof("NO", "ONE")
        following = [
            threading.Timer(seconds, self._lead, [entrance])
            for entrance, seconds in zip(self.entrances, late, strict=True)
        ]
        for each in following:
            each.start()
        for each in following:
            each.join()
        self._follow()

    def _stop_leading(self) -> None:
        for entrance in self.entrances:
            entrance.cut()

    def _lead(self, entrance: Proxy) -> None:
        entrance.target = ("127.0.0.1", self.primary.port)
        entrance.restore()

    def _follow(self) -> None:
        if self._link is not None:
            self._link.cut()
        self._link = self._stack.enter_context(Proxy(self.primary.port))
        replica = replica_of(self.primary, extra=("--replicaof", "127.0.0.1", str(self._link.port)))
        self._replica = self._stack.enter_context(replica)
        wait_for_replica(self._replica)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.primary)
            self.entrances = [
                stack.enter_context(Proxy(self.primary.port)) for _ in range(self._entrances)
            ]
            self._stack = stack.pop_all()
        self._follow()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
