"""What entries cost that are kept in Redis: to load, to wait with, and to change one of them."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from beats import cpu_seconds
from stores import PROJECT, Store, stores
from traffic import Meter, Traffic

from celery_redlock_beat.testing.server import Server
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.verify.nodes import BeatNode

if TYPE_CHECKING:
    import redis

SIZES = (0, 1000, 10_000, 100_000)
EVERY = 0.1
"""Seconds between the ticks of an entry that shows, by its messages, that a node has it."""
LIMIT = 300.0
SETTLE = 5.0
SPAN = 10.0
CHANGES = 20
PASSES = 10
PAUSE = 0.37
"""Seconds between new entries: no multiple of how often a node looks."""
QUEUE = "celery"
LEDGER = "{redlock:stored}:"


@dataclass
class Cost:
    """What so many entries cost, in seconds and bytes.

    ``filled``: to store them all; ``kept``: in Redis, each; ``raw``: to read the same bytes in one
    HGETALL; ``loaded``: from the start of a node until it sends for the one that was stored last;
    ``held``: the longest that the server did nothing else meanwhile; ``resident``: the memory of
    the node; ``passing``: one pass with nothing due; ``change``: what a node does to follow one;
    ``latency``: from the call that stores a new entry until its first message is in the queue.
    """

    name: str
    entries: int
    filled: float = 0.0
    kept: float = 0.0
    raw: float | None = None
    loaded: float = 0.0
    held: float = 0.0
    resident: int = 0
    cpu: float = 0.0
    idle: Traffic = field(default_factory=Traffic)
    passing: float | None = None
    change: Traffic = field(default_factory=Traffic)
    latency: float = 0.0


def measure() -> Iterator[Cost]:
    """Measure each store at each size, one after the other."""
    for kind in stores():
        for size in SIZES:
            yield _measure(kind, size)


def _measure(kind: type[Store], size: int) -> Cost:
    cost = Cost(kind.name, size)
    with Server(extra=("--slowlog-log-slower-than", "100")) as server, server.client() as client:
        store = kind(server.url)
        store.put("first", 3600.0)  # what is there once for all is not counted
        _fill(cost, store, client)
        alone = _changes(store, client)
        store.put("marker", EVERY)
        with _node(cost, kind, server, client) as node:
            store.remove("marker")
            time.sleep(SETTLE)
            client.delete(QUEUE)
            cost.resident = _resident(node.pid)
            _wait(cost, node, client)
            both = _changes(store, client)
            cost.change = (both - alone - cost.idle * SPAN) / CHANGES
            cost.passing = _passing(client)
            cost.latency = statistics.median(_latencies(store, server, node))
    return cost


def _fill(cost: Cost, store: Store, client: redis.Redis) -> None:
    before, began = client.info("memory")["used_memory"], time.monotonic()
    store.fill(cost.entries)
    cost.filled = time.monotonic() - began
    if cost.entries:
        cost.kept = (client.info("memory")["used_memory"] - before) / cost.entries
    if client.exists(f"{LEDGER}entries"):
        began = time.monotonic()
        client.hgetall(f"{LEDGER}entries")
        cost.raw = time.monotonic() - began


@contextmanager
def _node(cost: Cost, kind: type[Store], server: Server, client: redis.Redis) -> Iterator[BeatNode]:
    """Start a node; yield it when it has sent for the entry that was stored last."""
    with tempfile.TemporaryDirectory(prefix="stored-") as folder:
        text = PROJECT.format(broker=server.url, settings=kind.settings(server.url))
        Path(folder, "stored.py").write_text(text, "utf-8")
        client.slowlog_reset()
        began = time.monotonic()
        options = {"scheduler": kind.scheduler, "module": "stored", "loglevel": "warning"}
        with BeatNode(Path(folder), **options) as node:
            _wait_for_a_message(server, node)
            cost.loaded = time.monotonic() - began
            slow = (each["duration"] / SECOND for each in client.slowlog_get(1000))
            cost.held = max(slow, default=0.0)
            yield node


def _wait(cost: Cost, node: BeatNode, client: redis.Redis) -> None:
    """Measure a span in which nothing happens."""
    cpu, meter = cpu_seconds(node.pid), Meter(client)
    time.sleep(SPAN)
    cost.cpu = (cpu_seconds(node.pid) - cpu) / SPAN
    cost.idle = meter.read() / SPAN


def _changes(store: Store, client: redis.Redis) -> Traffic:
    """Change one entry some times, evenly, and return all that it cost, whoever was there."""
    store.put("changed", 3600.0)
    time.sleep(1)
    meter, began = Meter(client), time.monotonic()
    for number in range(1, CHANGES + 1):
        store.change("changed", number)
        time.sleep(max(0.0, began + number * SPAN / CHANGES - time.monotonic()))
    spent = meter.read()
    store.remove("changed")
    return spent


def _latencies(store: Store, server: Server, node: BeatNode) -> Iterator[float]:
    """Yield how long it takes until a new entry sends, of which a tick is due very soon."""
    for number in range(CHANGES):
        began = time.monotonic()
        store.put(f"new-{number}", EVERY)
        _wait_for_a_message(server, node)
        yield time.monotonic() - began
        store.remove(f"new-{number}")
        time.sleep(PAUSE)
        with server.client() as client:
            client.delete(QUEUE)


def _wait_for_a_message(server: Server, node: BeatNode) -> None:
    with server.client(socket_timeout=None) as client:
        if client.blpop(QUEUE, LIMIT) is None:
            raise node.failed_to("send")


def _passing(client: redis.Redis) -> float | None:
    """Return how long a pass takes, as the node itself tells, if it does."""
    passes = []
    for _ in range(PASSES):
        time.sleep(1.1)
        told = client.hgetall(f"{LEDGER}beats")
        passes += [json.loads(each)["pass"] for each in told.values()]
    return statistics.median(passes) if passes else None


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no memory")
