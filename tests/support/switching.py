"""A fleet that changes from RedBeat to ours and back, and what each of the two has sent."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import SECOND, Micros, to_micros
from support.nodes import BeatNode, write_project

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from support.servers import Server

REDBEAT = "redbeat.RedBeatScheduler"
INTERVALS = {f"interval-{number}": 1.0 for number in range(40)}
CRONTABS = [f"crontab-{number}" for number in range(10)]
QUIET = 0.25


@dataclass(frozen=True)
class Arrived:
    """A message: its entry, its tick if it is one of ours, and when it came, in microseconds."""

    entry: str
    tick: Micros | None
    at: Micros


class Watch(threading.Thread):
    """Take all messages out of a queue as they come; a context manager."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.arrived: list[Arrived] = []
        self.client = server.client()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            taken = self.client.brpop(["celery"], timeout=0.2)
            if taken:
                self.arrived.append(_arrived(taken[1], self.client.time()))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()
        self.client.close()


def _arrived(message: bytes, time: tuple[int, int]) -> Arrived:
    document = json.loads(message)
    headers = document["headers"]
    told = headers.get("redlock_tick")
    entry = headers.get("redlock_entry") or headers["periodic_task_name"]
    tick = to_micros(datetime.fromisoformat(told)) if told else None
    return Arrived(entry, tick, time[0] * SECOND + time[1])


@dataclass
class Switch:
    """Three places for nodes, each with RedBeat or with ours; a context manager."""

    directory: Path
    server: Server
    config: Mapping[str, Any] = field(default_factory=dict)
    lock_timeout: int = 8

    def __post_init__(self) -> None:
        schedule = ", ".join(
            [
                *(
                    f"{name!r}: {{'task': noop.name, 'schedule': {every}, 'options': {{'headers': "
                    f"{{'periodic_task_name': {name!r}}}}}}}"
                    for name, every in INTERVALS.items()
                ),
                *(
                    f"{name!r}: {{'task': noop.name, 'schedule': crontab(), 'options': {{'headers':"
                    f" {{'periodic_task_name': {name!r}}}}}}}"
                    for name in CRONTABS
                ),
            ]
        )
        config = {
            "beat_max_loop_interval": 0.5,
            "redbeat_redis_url": self.server.url,
            "redbeat_redis_options": {},
            "redbeat_lock_timeout": self.lock_timeout,
            "redlock_beat_interlock": "redbeat",
            "redlock_beat_catch_up": "all",
            "result_expires": None,
            **self.config,
        }
        write_project(self.directory, self.server.url, f"{{{schedule}}}", config=config)
        self._stack = ExitStack()
        self.places: dict[int, BeatNode] = {}
        self.watch = Watch(self.server)
        self._made = 0

    def __enter__(self) -> Self:
        self._stack.enter_context(self.watch)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, place: int, scheduler: str) -> BeatNode:
        """Start a node at a place."""
        self._made += 1
        name = f"{self._made}-{scheduler.partition('.')[0]}"
        node = BeatNode(self.directory, name, scheduler=scheduler)
        self.places[place] = self._stack.enter_context(node)
        return node

    def stop(self, place: int) -> Micros:
        """Stop the node at a place as a deploy does, in a quiet moment; return when it was gone.

        RedBeat writes that it has run an entry, and sends it then: stopped in between, it loses
        the run, which is none of ours.
        """
        self.quiet()
        node = self.places.pop(place)
        node.ask_to_end()
        assert node.end(10) == "", node.log
        return self.now()

    def quiet(self) -> None:
        """Wait until nothing has come for a moment, right after something came."""
        arrived = self.watch.arrived
        count = len(arrived)

        def is_quiet() -> bool:
            since = self.now() - arrived[-1].at if arrived else 0
            return len(arrived) > count and QUIET * SECOND < since < 2 * QUIET * SECOND

        wait_until(is_quiet, 30, "a burst and a quiet moment after it")

    def now(self) -> Micros:
        """Return the server's time."""
        with self.server.client() as client:
            seconds, micros = client.time()
        return seconds * SECOND + micros

    def wait_for(self, span: timedelta) -> None:
        """Let the nodes do their work for a while."""
        until = self.now() + to_micros_of(span)
        wait_until(lambda: self.now() >= until, span.total_seconds() + 10, f"{span}")

    def sent_by_ours(self) -> set[str]:
        """Return the entries of which ours has sent something."""
        return {each.entry for each in list(self.watch.arrived) if each.tick}

    def sent_by_redbeat(self) -> set[str]:
        """Return the entries of which RedBeat has sent something."""
        return {each.entry for each in list(self.watch.arrived) if not each.tick}

    def sent_since(self, before: Mapping[str, Micros]) -> set[str]:
        """Return the entries of which something came later than at these instants."""
        return {each.entry for each in list(self.watch.arrived) if each.at > before[each.entry]}

    def by_entry(self) -> dict[str, list[Arrived]]:
        """Return what came, by entry, in order."""
        found: dict[str, list[Arrived]] = defaultdict(list)
        for each in list(self.watch.arrived):
            found[each.entry].append(each)
        return found


def to_micros_of(span: timedelta) -> Micros:
    """Return a span in microseconds."""
    return span // timedelta(microseconds=1)


def parts(arrived: Sequence[Arrived]) -> list[list[Arrived]]:
    """Return what one scheduler sent after the other, in turns."""
    turns: list[list[Arrived]] = []
    for each in arrived:
        if not turns or (turns[-1][-1].tick is None) != (each.tick is None):
            turns.append([])
        turns[-1].append(each)
    return turns
