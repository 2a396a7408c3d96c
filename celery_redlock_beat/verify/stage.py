"""What one run consists of: a project, nodes on it, a way to cut each off; it starts no node."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from celery_redlock_beat.verify.checker import Rules
from celery_redlock_beat.verify.collector import Collector
from celery_redlock_beat.verify.nodes import BeatNode, Node
from celery_redlock_beat.verify.project import write_project
from celery_redlock_beat.verify.proxy import Proxy
from celery_redlock_beat.verify.rig import Place, Rig
from celery_redlock_beat.verify.schedule import LATE, PERIODS, schedule_source
from celery_redlock_beat.verify.sources import RedisSource
from celery_redlock_beat.verify.target import literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis import Redis

    from celery_redlock_beat.verify.target import Target

Proxies = Mapping[int, Sequence[Proxy]]
MODULE = "redlock_verify_project"
CONFIG = "REDLOCK_VERIFY_CONFIG"
FROM_ENVIRONMENT = f"""
import ast
import os

app.conf.update(ast.literal_eval(os.environ[{CONFIG!r}]))
"""  # so that no password is in a file
OTHERS = (
    "APP",
    "BROKER_URL",
    "RESULT_BACKEND",
    "LOADER",
    "CONFIG_MODULE",
    "DJANGO_SETTINGS_MODULE",
)
"""What in the user's environment would win over the project of the nodes; so would CELERY_…."""


@dataclass(frozen=True)
class Stage:
    """Where the nodes of a run live: ledger and broker, a directory, and their place in Redis.

    The broker is the ledger's Redis, where nothing else is said.
    """

    ledger: Target
    broker: Target
    directory: Path
    place: Place
    nodes: int

    @contextmanager
    def proxies(self, *, wanted: bool) -> Iterator[Proxies]:
        """Give each node a proxy of its own to each server, if that is wanted."""
        with ExitStack() as stack:
            yield {
                number: [stack.enter_context(Proxy(port, host)) for host, port in self._addresses()]
                for number in range(self.nodes if wanted else 0)
            }

    def _addresses(self) -> Iterator[tuple[str, int]]:
        for target in dict.fromkeys((self.broker, self.ledger)):
            if target.address:
                yield target.address

    def rig(self, proxies: Proxies, look_up: Callable[[], None]) -> Rig:
        """Write the project, and return the rig for it."""
        config = {
            "redlock_beat_namespace": self.place.namespace,
            "task_default_queue": self.place.queue,
            "task_ignore_result": True,
        }
        schedule = schedule_source(f"{MODULE}.noop")
        write_project(
            self.directory, None, schedule, config=config, extra=FROM_ENVIRONMENT, module=MODULE
        )
        rig = Rig(
            [self._node(number, proxies.get(number, ())) for number in range(self.nodes)],
            Collector(RedisSource(self.broker.connect, self.place.queue_key)),
            self.ledger.connect,
            self.place,
            PERIODS,
            look_up=look_up,
        )
        rig.rules = Rules(LATE, self.place.namespace, resends=self.is_apart)
        return rig

    @property
    def is_apart(self) -> bool:
        """Whether broker and ledger are two servers, so that messages are published."""
        return self.broker is not self.ledger

    def _node(self, number: int, proxies: Sequence[Proxy]) -> Node:
        ports: list[int | None] = [proxy.port for proxy in proxies]
        ports = ports or [None]
        broker = self.broker.as_broker(ports[0])
        options = {**broker.transport_options, "global_keyprefix": self.place.prefix}
        config: dict[str, Any] = {
            "broker_transport_options": literal(options, "transport options"),
            **({"broker_use_ssl": literal(broker.tls, "TLS options")} if broker.tls else {}),
            **({"redlock_beat_url": self.ledger.through(ports[-1])} if self.is_apart else {}),
        }
        others = [*OTHERS, *(name for name in os.environ if name.startswith("CELERY_"))]
        env = {**dict.fromkeys(others, ""), "CELERY_BROKER_URL": broker.url, CONFIG: repr(config)}
        return BeatNode(self.directory, f"node {number + 1}", module=MODULE, env=env)


def probe(connect: Callable[[], Redis], place: Place) -> None:
    """Try what is needed most, on a key of our own; raises what redis-py raises if that fails."""
    key = f"{place.prefix}probe"
    with connect() as client:
        client.lpush(key, "")
        client.execute_command("BLMOVE", key, key, "RIGHT", "RIGHT", 1)
        client.eval("return redis.call('DEL', KEYS[1])", 1, key)


def server_name(connect: Callable[[], Redis]) -> str:
    """Ask a server what it is; raises what redis-py raises if it does not answer."""
    with connect() as client:
        client.ping()
        with suppress(RedisError):  # INFO may be forbidden
            info: Any = client.info("server")
            if isinstance(first := next(iter(info.values())), dict):
                info = first  # a Cluster's client may answer for each node
            valkey = info.get("valkey_version")
            name = f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"
            mode = info.get("redis_mode") or info.get("server_mode") or "standalone"
            return f"{name} ({mode})"
    return "A server that does not tell its version"
