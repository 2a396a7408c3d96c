"""A real Redis Cluster of three shards, each with a replica; it moves slots and loses masters.

No test and no judgement is in here. Its processes end as every server's of the tests do.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.crc import key_slot
from redis.retry import Retry

from support.certificates import TlsServer
from support.servers import Server, free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SLOTS = 16384
SHARDS = 3
BUS = 10_000  # how far the port of the cluster's own talk is from the other
HIGHEST = 20_000  # so that it, too, is below every system's range for outgoing connections
OPTIONS = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")


class ClusterServer(Server):
    """One node, alone at first."""

    def __init__(self, node_timeout: int, **options: Any) -> None:
        slow = ("--cluster-node-timeout", str(node_timeout))
        sync = ("--repl-diskless-sync-delay", "0")
        super().__init__(port=_port(), extra=(*OPTIONS, *slow, *sync), **options)

    @property
    def met_at(self) -> int:
        """The port that other nodes know it by."""
        return self.port

    def ask(self, *words: object) -> Any:
        """Send one command and return the answer."""
        with self.client() as client:
            return client.execute_command(*words)

    @property
    def node_id(self) -> str:
        """What the cluster calls it."""
        return _text(self.ask("CLUSTER", "MYID"))

    def facts(self) -> dict[str, str]:
        """Return what it says of the cluster's state."""
        told = self.ask("CLUSTER", "INFO")
        if isinstance(told, dict):
            return told
        lines = _text(told).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


class TlsClusterServer(ClusterServer, TlsServer):
    """One node that speaks TLS, also with the other nodes."""

    def command(self, binary: Path, port: int) -> list[str]:
        """Return the command line of the server."""
        self.tls_port = self.tls_port or _port()
        return [*super().command(binary, port), "--tls-cluster", "yes"]

    @property
    def met_at(self) -> int:
        """The port that other nodes know it by."""
        return self.tls_port


class Cluster:
    """Three masters and a replica of each; a context manager.

    A master that dies is replaced after about ``node_timeout`` milliseconds, and a second or two.
    With an ``authority`` and the certificate that is ``shown``, it speaks TLS.
    """

    def __init__(
        self, binary: Path, node_timeout: int = 1500, *, replicas: bool = True, **options: Any
    ) -> None:
        kind = TlsClusterServer if "authority" in options else ClusterServer
        self._make = partial(kind, node_timeout, binary=binary, **options)
        self.masters = [self._make() for _ in range(SHARDS)]
        self.replicas = [self._make() for _ in range(SHARDS if replicas else 0)]
        self._stack = ExitStack()

    @property
    def nodes(self) -> list[ClusterServer]:
        """All of its servers, dead ones too."""
        return [*self.masters, *self.replicas]

    @property
    def hosts(self) -> str:
        """Its nodes as a URL names them."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def url(self) -> str:
        """The URL of one of its servers alone, of which only the clock can be used."""
        return self.nodes[-1].url

    def client(self) -> RedisCluster:
        """Return a client of redis-py's own, which follows redirections."""
        alive = [node for node in self.nodes if node.alive]
        settings: Any = {"socket_timeout": 5, "socket_connect_timeout": 5, "protocol": 2}
        known = [ClusterNode("127.0.0.1", node.port) for node in alive]
        return RedisCluster(startup_nodes=known, retry=Retry(NoBackoff(), 3), **settings)

    def owner(self, slot: int, limit: float = 20.0) -> ClusterServer:
        """Return the master of a slot, by its own word and by that of every server alive."""
        found = wait_until(lambda: self._agreed_owner(slot), limit, f"an owner of slot {slot}")
        assert found is not None
        return found

    def wait_for_other_owner(
        self, slot: int, than: ClusterServer, limit: float = 30.0
    ) -> ClusterServer:
        """Wait until another server than this one is the master of a slot."""

        def other() -> ClusterServer | None:
            found = self._agreed_owner(slot)
            return None if found is than else found

        found = wait_until(other, limit, f"a new owner of slot {slot}")
        assert found is not None
        return found

    def add_master(self) -> ClusterServer:
        """Start one more master, which has no slots."""
        node = self._make()
        self._stack.enter_context(node)
        self.masters.append(node)
        self._meet([node])
        wait_until(lambda: node.facts()["cluster_state"] == "ok", 30.0, "a node that takes part")
        return node

    def begin_move(self, slot: int, target: ClusterServer) -> ClusterServer:
        """Begin to move a slot; return the server that it is moved from."""
        source = self.owner(slot)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.node_id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.node_id)
        return source

    def move_keys(self, slot: int, source: ClusterServer, target: ClusterServer) -> int:
        """Move all keys of a slot that is being moved; return how many there were."""
        moved = 0
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10):
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            moved += len(keys)
        return moved

    def end_move(self, slot: int, source: ClusterServer, target: ClusterServer) -> None:
        """Tell all masters where the slot is now."""
        target.ask("CLUSTER", "SETSLOT", slot, "NODE", target.node_id)
        with suppress(redis.ResponseError):  # it gave its last slot, and is a replica by now
            source.ask("CLUSTER", "SETSLOT", slot, "NODE", target.node_id)
        wait_until(lambda: self._agreed_owner(slot) is target, 30.0, "word of the slot's new owner")

    def _agreed_owner(self, slot: int) -> ClusterServer | None:
        told = {self._told_owner(node, slot) for node in self.nodes if node.alive}
        ports = {node.port: node for node in self.nodes}
        return ports.get(next(iter(told)) or 0) if len(told) == 1 else None

    @staticmethod
    def _told_owner(node: ClusterServer, slot: int) -> int | None:
        with suppress(redis.RedisError):
            for first, last, master, *_ in _ranges(node.ask("CLUSTER", "SLOTS")):
                if first <= slot <= last:
                    return int(master[1])
        return None

    def _meet(self, nodes: Sequence[ClusterServer]) -> None:
        first = self.masters[0]
        for node in nodes:
            if node is not first:
                first.ask("CLUSTER", "MEET", "127.0.0.1", node.met_at)
        known = len([each for each in self.nodes if each.alive])

        def all_know_all() -> bool:
            each = (int(node.facts()["cluster_known_nodes"]) for node in self.nodes if node.alive)
            return all(number >= known for number in each)

        wait_until(all_know_all, 30.0, "nodes that know each other", interval=0.05)

    def _give_slots(self) -> None:
        for place, node in enumerate(self.masters):
            first, last = place * SLOTS // SHARDS, (place + 1) * SLOTS // SHARDS - 1
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", place + 1)

    def _is_whole(self) -> bool:
        if any(node.facts()["cluster_state"] != "ok" for node in self.nodes):
            return False
        for replica in self.replicas:
            with replica.client() as client:
                if client.info("replication").get("master_link_status") != "up":
                    return False
        return True

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node)
            self._give_slots()
            self._meet(self.nodes)
            for master, replica in zip(self.masters, self.replicas, strict=False):
                replica.ask("CLUSTER", "REPLICATE", master.node_id)
            wait_until(self._is_whole, 30.0, "a cluster that is whole", interval=0.05)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def slot_of(namespace: str) -> int:
    """Return the slot of all keys of a ledger."""
    return int(key_slot(f"redlock:{namespace}".encode()))


def _ranges(told: Any) -> Any:
    if isinstance(told, dict):  # redis-py before 8 turns the answer round
        return [(*span, each["primary"]) for span, each in told.items()]
    return told


def _port() -> int:
    while True:
        port = free_port()
        with socket.socket() as probe, suppress(OSError):
            if port < HIGHEST:
                probe.bind(("127.0.0.1", port + BUS))
                return port


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
