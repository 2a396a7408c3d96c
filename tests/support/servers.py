"""Redis servers in the shapes that tests need: alone, replicated, watched by three Sentinels.

No test and no judgement is in here, and no server that a test did not ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import redis

from celery_redlock_beat.testing.server import (
    TEST_ORDER,
    Server,
    ServerNotFound,
    find_server,
    free_port,
    wait_until,
)
from support.rabbitmq import RabbitMQ
from support.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

    from celery_redlock_beat.testing.binaries import Place

__all__ = [
    "RabbitMQ",
    "Sentinel",
    "SentinelTrio",
    "Server",
    "ServerNotFound",
    "binary_of",
    "find_server",
    "free_port",
    "have_server",
    "replica_of",
    "wait_for_replica",
    "wait_until",
]

SENTINEL_CONF = """\
port {port}
bind 127.0.0.1
dir "{directory}"
sentinel monitor {service} 127.0.0.1 {master} 2
sentinel down-after-milliseconds {service} {down_after}
sentinel failover-timeout {service} 3000
sentinel parallel-syncs {service} 1
{more}
"""
KINDS = ("redis", "valkey")


def binary_of(kind: str) -> Path:
    """Return a server of one of the two kinds; the test is skipped by name where there is none."""
    places: tuple[Place, ...] = ("environment", "path") if kind == "redis" else ("bundled",)
    require(f"a server of {kind}", have_server(places))
    return find_server(places)


def have_server(order: Sequence[Place] = TEST_ORDER) -> bool:
    """Tell whether there is a Redis or Valkey server to start, in one of these places."""
    try:
        find_server(order)
    except ServerNotFound:
        return False
    return True


def replica_of(master: Server, **options: Any) -> Server:
    """Return a server, not yet started, that replicates ``master``."""
    extra: Sequence[str] = options.pop("extra", ())
    follow = ("--replicaof", "127.0.0.1", str(master.port), "--repl-diskless-sync-delay", "0")
    return Server(extra=(*follow, *extra), **options)


def wait_for_replica(replica: Server, limit: float = 20.0) -> None:
    """Wait until ``replica`` has its copy and follows its master."""
    with replica.client() as client:
        wait_until(
            lambda: client.info("replication").get("master_link_status") == "up",
            limit,
            "the replica's link",
        )


class Sentinel(Server):
    """One Sentinel process that watches ``master`` under the name ``service``.

    ``secret`` is the password of master and replica; ``password`` is its own. ``more`` are further
    lines of its configuration.
    """

    def __init__(
        self,
        master: Server,
        service: str,
        down_after: int,
        secret: str = "",
        more: Sequence[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._secret = secret
        self._more = more
        self._master = master
        self._service = service
        self._down_after = down_after

    def command(self, binary: Path, port: int) -> list[str]:
        """Write the configuration, which Sentinel itself goes on changing, and name it."""
        conf = self.directory / "sentinel.conf"
        if not conf.exists() or f"port {port}\n" not in conf.read_text():
            conf.write_text(
                SENTINEL_CONF.format(
                    port=port,
                    directory=self.directory,
                    service=self._service,
                    master=self._master.port,
                    down_after=self._down_after,
                    more="\n".join(self._further_lines()),
                )
            )
        return [str(binary), str(conf), "--sentinel"]

    def _further_lines(self) -> Iterator[str]:
        yield from self._more
        if self._secret:
            yield f"sentinel auth-pass {self._service} {self._secret}"
        if self._password:
            yield f"requirepass {self._password}"


class SentinelTrio:
    """A master, a replica, and three Sentinels that agree on them; a context manager.

    ``password`` is that of the data servers, ``own_password`` that of the Sentinels.
    """

    def __init__(
        self,
        service: str = "mymaster",
        down_after: int = 500,
        appendonly: bool = False,
        *,
        binary: Path | None = None,
        password: str | None = None,
        own_password: str | None = None,
    ) -> None:
        self.service = service
        secret = ("--masterauth", password) if password else ()
        extra = ("--repl-diskless-sync-delay", "0", *secret)
        self._data = {"appendonly": appendonly, "password": password, "binary": binary}
        self._own = {"secret": password or "", "password": own_password, "binary": binary}
        self._secret = secret
        self.master = Server(extra=extra, **self._data)
        self.replica: Server
        self.sentinels: list[Sentinel] = []
        self._down_after = down_after
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """The URL for Celery, whose ``master_name`` transport option is ``service``."""
        return ";".join(f"sentinel://127.0.0.1:{each.port}/0" for each in self.sentinels)

    @property
    def hosts(self) -> str:
        """The Sentinels as a URL of several hosts names them."""
        return ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)

    @property
    def transport_options(self) -> dict[str, Any]:
        """What ``broker_transport_options`` needs besides the URL."""
        return {"master_name": self.service}

    def master_port(self) -> int:
        """Ask the Sentinels which port is the master's now."""
        for sentinel in self.sentinels:
            if sentinel.alive:
                with sentinel.client() as client:
                    # Not redis-py's own method: that of 6.4 raises.
                    question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service)
                    return int(client.execute_command(*question)[1])
        raise LookupError("no Sentinel is alive")

    def current(self) -> Server:
        """Return the server that is the master now, by the Sentinels' word and by its own."""
        by_port = {self.master.port: self.master, self.replica.port: self.replica}
        server = by_port[self.master_port()]
        with server.client() as client:
            if client.info("replication")["role"] != "master":
                raise LookupError("the Sentinels and the server do not agree yet")
        return server

    def master_url(self) -> str:
        """Return the URL of the present master itself, for redis-py."""
        return self.current().url

    def client(self) -> redis.Redis:
        """Return a client of the present master."""
        return self.current().client()

    def wait_for_master(self, other_than: Server | None = None, limit: float = 30.0) -> Server:
        """Wait until there is a master, and if asked, another one than ``other_than``."""

        def answer() -> Server | None:
            try:
                server = self.current()
            except (LookupError, redis.RedisError):
                return None
            return None if server is other_than else server

        found = wait_until(answer, limit, "a new master")
        assert found is not None
        return found

    def failover(self, limit: float = 30.0) -> Server:
        """Have the Sentinels exchange master and replica; return the new master."""
        before = self.current()
        with self.sentinels[0].client() as client:
            client.sentinel_failover(self.service)
        return self.wait_for_master(other_than=before, limit=limit)

    def _agreed(self) -> bool:
        for sentinel in self.sentinels:
            with sentinel.client() as client:
                state = client.info("sentinel").get("master0", {})
                if (state.get("slaves"), state.get("sentinels")) != (1, 3):
                    return False
        return True

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.master)
            self.replica = replica_of(self.master, extra=self._secret, **self._data)
            stack.enter_context(self.replica)
            wait_for_replica(self.replica)
            for _ in range(3):
                sentinel = Sentinel(self.master, self.service, self._down_after, **self._own)
                self.sentinels.append(stack.enter_context(sentinel))
            wait_until(self._agreed, 30.0, "three Sentinels that know each other", interval=0.05)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
