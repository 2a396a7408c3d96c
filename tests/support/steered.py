"""A trial whose entries an operator changes: nodes, messages, his record, and the judge's word."""

from __future__ import annotations

import json
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import redis
from celery import Celery
from kombu import Connection

from celery_redlock_beat.control import Control
from celery_redlock_beat.verify.sources import micros
from support.at_work import TASK, Operator
from support.deeds import Terms, lives_of
from support.every_second import FIVE
from support.passages import history
from support.steered_judge import Findings, judge_books, judge_messages
from support.trial import LIMIT, NAMESPACE, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from celery_redlock_beat.ticks import Micros
    from support.collector import Arrival
    from support.deeds import Life
    from support.servers import Server

HISTORY = 1_000_000
logger = logging.getLogger(__name__)


class SteeredTrial(Trial):
    """Three nodes, entries from code that nobody touches, and an operator.

    ``code`` names further ones, due every second, that he may pause. His own messages are in the
    queue of the nodes, so that its order tells what came after what he did.
    """

    def __init__(
        self,
        directory: Path,
        server: Server,
        *,
        untouched: Mapping[str, str] = FIVE,
        code: Collection[str] = (),
        config: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        policies = {**untouched, **dict.fromkeys(code, "latest")}
        self.config = {"redlock_beat_history": HISTORY, **(config or {})}
        super().__init__(directory, server, policies=policies, config=self.config, **more)
        self._code = policies
        self._untouched = frozenset(untouched)

    @cached_property
    def operator(self) -> Operator:
        """The operator; he connects when he is first asked for."""
        operator = Operator(Control(self.app()), self._time, self._put)
        self._stack.push(operator.__exit__)
        for entry, catch_up in self._code.items():
            operator.take_over(entry, _terms(catch_up))
        return operator

    def app(self) -> Celery:
        """Return an app that is configured as those of the nodes are."""
        app = Celery(NAMESPACE, broker=self.broker_url, set_as_current=False)
        schedule = {
            entry: {"task": TASK, "schedule": 1.0, "catch_up": catch_up}
            for entry, catch_up in self._code.items()
        }
        app.conf.update(self.config, beat_schedule=schedule)
        return app

    def sent_for(self, entry: str, at: Micros, limit: float = LIMIT) -> Arrival:
        """Wait for the message of an entry's first tick from an instant on; return it."""

        def come(came: Sequence[Arrival]) -> Iterator[Arrival]:
            own = (each for each in came if each.tick and each.tick.entry == entry)
            return (each for each in own if each.tick and each.tick.at >= at)

        return next(come(self.wait_for(lambda came: any(come(came)), limit)))

    def said_by_all(self, words: str, since: Callable[[int], int] = lambda _: 0) -> None:
        """Wait until each node that lives has said something; ``since`` is a place in each log."""
        for place, node in enumerate(self.nodes):
            if node.alive:
                node.wait_for_log(words, LIMIT, since(place))

    def lives(self) -> dict[str, Life]:
        """Return what became of each entry by the operator's hand, until now."""
        code = {entry: (_terms(policy), self.since[entry]) for entry, policy in self._code.items()}
        return lives_of(self.operator.deeds, code, self.now())

    def judge_messages(self) -> Findings:
        """Judge what came, also where the ledger has lost data meanwhile."""
        found = Findings(changes=len(self.operator.deeds))
        judge_messages(self.collector.arrivals, self.operator.deeds, self.lives(), NAMESPACE, found)
        return found

    def conclude_steered(self) -> Findings:
        """Account for the entries that nobody touched, and judge all of them, with the books."""
        self.go_on(2)
        last = self.now()
        assert self.conclude(law=False).faults == {}
        found = self.judge_messages()
        with self.server.client() as client:
            passages = history(client, NAMESPACE)
        judge_books(self.collector.arrivals, self.lives(), passages, self.books(), last, found)
        logger.info("%s", found)
        return found

    @cached_property
    def _line(self) -> redis.Redis:
        """A connection that is kept, since the operator is in a hurry."""
        queue_is_here = self.broker_url.startswith("redis")
        client = redis.Redis.from_url(self.broker_url if queue_is_here else self.server.url)
        self._stack.callback(client.close)
        return client

    def _time(self) -> Micros:
        return micros(self._line.time())

    def _put(self, own_id: str) -> None:
        """Put a message of our own into the queue; returns when the broker has it."""
        headers, key = {"id": own_id}, self.place.queue_key
        if self.broker_url.startswith("redis"):
            message = {"headers": headers, "properties": {"delivery_tag": own_id}}
            self._line.lpush(key, json.dumps(message))
        else:
            options = {"confirm_publish": True}
            with Connection(self.broker_url, transport_options=options) as connection:
                connection.Producer().publish({}, routing_key=key, headers=headers)

    def __enter__(self) -> Self:
        super().__enter__()
        self.entries = self._untouched  # that all are known was waited for; now only these are
        return self


def _terms(catch_up: str) -> Terms:
    return Terms(1.0, 1, catch_up, 0)


__all__ = ["HISTORY", "SteeredTrial"]
