"""A ledger on a real server, one node that claims by hand, and an operator's control of the app."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from celery import Celery
from celery.schedules import crontab

from celery_redlock_beat import Control
from celery_redlock_beat.ledger import Ask, Claimed, Grant, Registration, Settlement
from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SENT, Micros, Tick
from ledger.places import MINUTE, NAMESPACE, RedisPlace, claim

HOUR = 60 * MINUTE
HALF_AN_HOUR_AWAY = (datetime.now(UTC).minute + 30) % 60  # no test runs over one of its ticks
HOURLY = {"task": "shop.report", "schedule": crontab(minute=HALF_AN_HOUR_AWAY)}
OTHERWISE = crontab(minute=(HALF_AN_HOUR_AWAY + 15) % 60)
CODE = {"pulse": {"task": "shop.pulse", "schedule": 3600, "tags": ["health"]}}


class Case:
    """``app`` has an entry from code, ``control`` is Anna's, ``node`` knows no entry by itself."""

    def __init__(self, server: Any, *, broker: str | None = None, **conf: Any) -> None:
        self.place = RedisPlace(server, "redis")
        self.client, self.keys = self.place.client, ledger_keys(NAMESPACE)
        self.node = self.place.node()
        self.node.claim([])
        self.app = app_on(server.url, broker or server.url, **conf)
        self.control = Control(self.app, who="anna@here")

    def close(self) -> None:
        self.control.close()
        self.place.close()

    def registers(self, name: str, fingerprint: str = "as it is") -> None:
        """Have the node make an entry from code known."""
        self.node.register([Registration(name, fingerprint)])

    def set_mark(self, name: str, mark: Micros, since: Micros = 0) -> None:
        """Set an entry's mark, as if it had not been asked for since."""
        key = f"e:{name}"
        _, _, fence, runs, fingerprint = (
            self.client.hget(self.keys["marks"], key).decode().split(" ", 4)
        )
        text = f"{mark} {since} {fence} {runs} {fingerprint}"
        self.client.hset(self.keys["marks"], key, text)

    def grant(self, name: str, at: Micros) -> Grant:
        """Have the node claim a tick."""
        answer = claim(self.node, Tick(name, at))
        assert answer.grant is not None, answer
        return answer.grant

    def sends(self, name: str, at: Micros, passed: dict[Any, int] | None = None) -> None:
        """Have the node claim and settle a tick."""
        self.node.settle([Settlement(self.grant(name, at), SENT, passed or {})])

    def tells(self, ledger: Any = None, **told: Any) -> Claimed:
        """Have a node tell of itself."""
        asks: list[Ask] = []
        return (ledger or self.node).claim(asks, 0, json.dumps(told))

    def ages_grant(self, name: str, at: Micros, ends: Micros) -> None:
        """Set the end of an open tick's lease."""
        self.place.set_lease(Tick(name, at), ends)

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages in the queue, the oldest first."""
        return [json.loads(each) for each in reversed(self.place.queue())]

    def actions(self, *names: str) -> list[str]:
        """Return what the history says, the newest first."""
        return [record.action for record in self.control.history(*names, number=100)]


def app_on(url: str, broker: str, **conf: Any) -> Celery:
    app = Celery(NAMESPACE, broker=broker, set_as_current=False)
    app.conf.update(
        redlock_beat_url=url,
        redlock_beat_socket_timeout=0.5,
        redlock_beat_poll=0.1,
        redlock_beat_hold_down=0.7,
        beat_schedule=CODE,
        result_expires=None,  # and so no entry of Celery's own
        **conf,
    )
    return app


def last_due(now: Micros) -> Micros:
    """Return the last tick of ``HOURLY``, which is half an hour ago."""
    at = now - now % HOUR + HALF_AN_HOUR_AWAY * MINUTE
    return at if at <= now else at - HOUR
