"""A ledger as one node leaves it, for doctor to look at; it plants defects when it is told to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from celery import Celery

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger import Registration, Settlement
from celery_redlock_beat.ledger.redis_steering import RedisSteering
from celery_redlock_beat.ledger.steering import Definition
from celery_redlock_beat.ticks import SENT, Micros
from ledger.places import NAMESPACE, RedisPlace, due_ticks, grant, register

if TYPE_CHECKING:
    from support.servers import Server


GOOD = '{"task": "proj.add", "schedule": 30}'


class Patient:
    """A ledger as one node leaves it, with a tick that is settled and one that is open."""

    def __init__(self, server: Server) -> None:
        self.place = RedisPlace(server, "redis")
        self.client, self.keys = self.place.client, self.place.keys
        self.node = self.place.node()
        settled, held = due_ticks(self.place, self.node, "tidy", 2)
        self.node.settle([Settlement(grant(self.node, settled), SENT)])
        self.held = grant(self.node, held)
        register(self.node, "report")
        self.client.hdel(self.keys["marks"], "began")  # it has been at work for long
        self.operator = RedisSteering(self.place.connect, LedgerClock(), NAMESPACE, who="tests")
        self.app = Celery(NAMESPACE, broker=server.url, set_as_current=False)

    @property
    def member(self) -> str:
        return f"{self.held.tick.at}:{self.held.tick.entry}"

    @property
    def now(self) -> Micros:
        return self.place.now()

    def mark(self, entry: str, mark: Micros, since: Micros = 1) -> None:
        self.client.hset(self.keys["marks"], f"e:{entry}", f"{mark} {since} 7 0 every µs")

    def store(self, name: str = "nightly", document: str = GOOD, expected: int = 0) -> int:
        known = Registration(name, "every 30 s")
        (done,) = self.operator.store([Definition(document, known, expected)])
        assert done.done
        return done.revision

    def beat(self, **told: Any) -> str:
        """Have one more node tell of itself."""
        node = self.place.node()
        node.claim([], 0, json.dumps({"ready": True, "started": self.now, **told}))
        return node.node

    def dump(self) -> Any:
        return self.place.snapshot()
