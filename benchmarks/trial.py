"""One contender through one fault: its nodes, its broker, a supervisor, and what came of it."""

from __future__ import annotations

import re
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from broker import Broker
from contenders import PERIOD, tasks
from judge import Verdict, judge

from celery_redlock_beat.testing.server import wait_until
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.verify.collector import Collector
from celery_redlock_beat.verify.nodes import BeatNode
from celery_redlock_beat.verify.sources import RedisSource

if TYPE_CHECKING:
    from contenders import Contender

    from celery_redlock_beat.verify.arrivals import Arrival

START_LIMIT = 120.0
STARTED = "beat: Starting"
STEADY = 3
"""How many messages of each entry come, with all nodes up, before anything is measured."""
RECENT = 5.0
RESTART_AFTER = 1.0
"""Seconds until a process that ended by itself is started again, as a service manager would."""
LOOK = 0.05
TAIL = 2000


class TrialFailed(RuntimeError):
    """A contender did not send before anything was done to it; quotes its logs."""


class Trial:
    """A contender that runs; a context manager.

    ``exits`` counts the processes that ended by themselves.
    """

    def __init__(self, contender: Contender, *, replicated: bool) -> None:
        self.broker = Broker(replicated=replicated)
        self.exits = 0
        self._contender = contender
        self._nodes: list[BeatNode] = []
        self._killed: set[BeatNode] = set()
        self._stack = ExitStack()

    def wait_until_steady(self) -> None:
        """Wait until all nodes are up, and messages of each entry have come since then."""
        for node in self._nodes:
            node.wait_for_log(STARTED, START_LIMIT)
        up = len(self._collector.arrivals)

        def steady() -> bool:
            fresh = Counter(_task(each) for each in self._collector.arrivals[up:])
            return all(fresh[task] >= STEADY for task in tasks())

        try:
            wait_until(steady, START_LIMIT, "its messages", interval=LOOK)
        except TimeoutError as error:
            logs = [f"{node.name}:\n{node.log[-TAIL:]}" for node in self._nodes]
            raise TrialFailed("\n".join([f"{self._contender.name} {error}", *logs])) from None

    def kill_the_sender(self) -> None:
        """Kill the node that sends most; nobody starts it again."""
        node = self._sender()
        self._killed.add(node)
        node.kill()

    def freeze_the_sender(self, seconds: float) -> None:
        """Have the node that sends most stand still for a while."""
        node = self._sender()
        node.freeze()
        time.sleep(seconds)
        node.thaw()

    def supervise(self, seconds: float) -> None:
        """Start again whatever ends by itself, and count it."""
        until = time.monotonic() + seconds
        down: dict[BeatNode, float] = {}
        while (now := time.monotonic()) < until:
            for node in self._nodes:
                if node.alive or node in self._killed:
                    continue
                if node not in down:
                    self.exits += 1
                    down[node] = now + RESTART_AFTER
                elif now >= down[node]:
                    del down[node]
                    node.start()
            time.sleep(LOOK)

    def verdict(self, start: float, end: float) -> Verdict:
        """Judge what came between two moments, in seconds since the epoch."""
        came = self._collector.arrivals
        moments = {
            task: [each.at / SECOND for each in came if _task(each) == task] for task in tasks()
        }
        verdicts = (judge(each, PERIOD, start, end) for each in moments.values())
        return sum(verdicts, Verdict())

    def _sender(self) -> BeatNode:
        """Return the node that sent most of late, as the messages name their origin."""
        since = (time.time() - RECENT) * SECOND
        sent = Counter(_pid(each) for each in self._collector.arrivals if each.at >= since)
        return max(self._nodes, key=lambda node: sent[node.pid])

    def _start(self, stack: ExitStack) -> None:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
        stack.enter_context(self.broker)
        source = RedisSource(self.broker.connect, "celery")
        self._collector = stack.enter_context(Collector(source))
        text = self._contender.project(self.broker.url)
        (directory / "peers.py").write_text(text, "utf-8")
        for number in range(self._contender.nodes):
            name = f"node-{number + 1}"
            args = ("-s", f"{name}.schedule")
            node = BeatNode(
                directory, name, scheduler=self._contender.scheduler, args=args, module="peers"
            )
            self._nodes.append(stack.enter_context(node))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _task(arrival: Arrival) -> str:
    return str(arrival.headers.get("task", ""))


def _pid(arrival: Arrival) -> int:
    found = re.match(r"gen(\d+)@", str(arrival.headers.get("origin", "")))
    return int(found[1]) if found else 0
