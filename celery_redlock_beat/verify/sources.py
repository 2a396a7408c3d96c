"""Read a queue in Redis so that no message is missed or counted twice, whatever fails meanwhile.

It judges nothing, and takes nothing from the queue that it does not keep.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.verify.arrivals import Arrival

if TYPE_CHECKING:
    from redis import Redis

POLL = 0.2  # how soon a source notices that it is to end
PAUSE = 0.05  # between attempts to reach a broker that is away

Receive = Callable[[Arrival], None]


class Source(ABC):
    """Somewhere that messages come from; ``run`` hands over each until ``ended`` is set."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.ready = threading.Event()

    @abstractmethod
    def run(self, receive: Receive, ended: threading.Event) -> None:
        """Hand each message to ``receive``; reconnect for as long as it takes."""

    @abstractmethod
    def put(self, message: str) -> None:
        """Put a message into the queue, behind all others."""


class RedisSource(Source):
    """Move messages from the queue to a list that is kept, so that no lost reply loses one.

    ``connect`` is asked for a client on every connection. A server that lost data may hand out
    again what it had handed out before: the messages that it forgot are not counted a second time,
    each once.
    """

    def __init__(self, connect: Callable[[], Redis], queue: str) -> None:
        super().__init__(queue)
        self.connect = connect
        self.kept = f"{queue}.collected"
        self._pushes: list[str] = []  # of the messages in the kept list, in its order
        self._again: set[str] = set()

    def run(self, receive: Receive, ended: threading.Event) -> None:
        """Follow the queue; a server that is away or refuses is asked again."""
        while not ended.is_set():
            with suppress(RedisError, LookupError, OSError), self.connect() as client:
                self._pull(client, receive)
                self.ready.set()
                while not ended.is_set():
                    client.execute_command("BLMOVE", self.queue, self.kept, "RIGHT", "RIGHT", POLL)
                    self._pull(client, receive)
            ended.wait(PAUSE)

    def put(self, message: str) -> None:
        """Push it as kombu would."""
        with self.connect() as client:
            client.lpush(self.queue, message)

    def _pull(self, client: Redis, receive: Receive) -> None:
        """Hand over what the kept list has beyond what was handed over."""
        known = len(self._pushes)
        transaction: Any = client.pipeline()
        questions = transaction.time().llen(self.kept).lrange(self.kept, known, -1)
        moment, length, fresh = questions.execute()
        if length < known:
            self._see_what_was_forgotten(client.lrange(self.kept, 0, -1))
            return
        for message in map(json.loads, fresh):
            self._pushes.append(push := _push_of(message))
            if push in self._again:
                self._again.discard(push)
            else:
                receive(Arrival.of(message["headers"], micros(moment), push))

    def _see_what_was_forgotten(self, kept: Any) -> None:
        there = [_push_of(json.loads(raw)) for raw in kept]
        both = zip(self._pushes, there, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
        self._again |= set(self._pushes[same:])
        del self._pushes[same:]


def micros(answer: Any) -> Micros:
    """Convert an answer of TIME."""
    seconds, rest = answer
    return int(seconds) * SECOND + int(rest)


def _push_of(message: dict[str, Any]) -> str:
    return str(message["properties"].get("delivery_tag", ""))
