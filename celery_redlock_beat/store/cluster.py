"""A Redis Cluster as the ledger uses it: each call has the keys of one slot, so one node answers.

redis-py's own client follows redirections; what must be ours is set on top: finite waits, no hidden
retries of what may have been done, and errors of the kinds that a single server's client raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.store.endpoint import Endpoint, bounded
from celery_redlock_beat.store.urls import DATABASE, HOW_CLUSTER, option, refuse_others

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from redis import Redis

    from celery_redlock_beat.store.urls import ServerList

# What kombu says of a single server, and redis-py's cluster either refuses or sets itself.
NOT_OF_A_CLUSTER = ("host", "port", "db", "connection_class", "retry")
# Before 6 its own attempts, three by default, were not those of "retry".
NO_ATTEMPTS: dict[str, Any] = {} if redis.VERSION >= (6,) else {"cluster_error_retry_attempts": 0}


class _Cluster(RedisCluster):
    """redis-py's client, patient for moments only, that also finds nodes without any slot."""

    RedisClusterRequestTTL = 4  # redirections; while a slot moves, the ledger tries again anyway

    def get_node(
        self, host: str | None = None, port: int | None = None, node_name: str | None = None
    ) -> ClusterNode | None:
        """Return a node, also one that got its first slot, or is getting it, since we looked."""
        parent: Any = super()
        found: ClusterNode | None = parent.get_node(host, port, node_name)
        if found is None and node_name:
            host, _, number = node_name.rpartition(":")
            found = self.nodes_manager.nodes_cache[node_name] = _node(host, int(number))
        return found


class ClusterClient:
    """A client that connects with its first command, and anew after all nodes were away.

    Any command of redis-py's cluster client can be called on it.
    """

    def __init__(self, make: Callable[[], RedisCluster]) -> None:
        self._make = make
        self._client: RedisCluster | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._ask(name, *args, **kwargs)

        return call

    @property
    def connection_pool(self) -> Self:
        """Where a single server's client is disconnected."""
        return self

    def disconnect(self) -> None:
        """Disconnect; the next command connects anew."""
        self.close()

    def close(self) -> None:
        """Disconnect; the next command connects anew."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _ask(self, name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            self._client = self._client or self._make()
            return getattr(self._client, name)(*args, **kwargs)
        except exceptions.RedisClusterException as exc:
            self.close()  # what it knows of the nodes is of no use: the URL's are asked again
            raise _root_of(exc) from exc
        except exceptions.ClusterError as exc:
            if isinstance(exc, exceptions.ResponseError):
                raise
            msg = "the slot is being moved to another node"  # all redirections are used up
            raise exceptions.TryAgainError(msg) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, repr=False)
class ClusterEndpoint(Endpoint):
    """Where a Cluster is and how to enter; ``nodes`` are those that are asked for the others."""

    @property
    def label(self) -> str:
        """Its URL without any password."""
        tls = "s" if _tls(self.params) else ""
        user = f"{self.params['username']}@" if self.params.get("username") else ""
        return f"redis{tls}+cluster://{user}" + ",".join(
            f"{host}:{port}" for host, port in self.nodes
        )

    def is_same(self, other: Endpoint) -> bool:  # noqa: ARG002  whatever it is
        """Answer that it is no broker: Celery has none in a Cluster."""
        return False

    def connect(self, timeout: float) -> Redis:
        """Return a new client, not connected yet."""
        params = {
            name: value
            for name, value in bounded(self.params, timeout).items()
            if name not in NOT_OF_A_CLUSTER and value is not None
        }
        if _tls(params):
            params["ssl"] = True

        # Our slot is one: the others may be missing.
        params |= {"retry": Retry(NoBackoff(), 0), "require_full_coverage": False, **NO_ATTEMPTS}

        def make() -> RedisCluster:
            return _Cluster(startup_nodes=[_node(*each) for each in self.nodes], **params)

        return cast("Redis", ClusterClient(make))


def check_list(listed: ServerList, setting: str) -> None:
    """Raise ``SettingError`` for what a Cluster does not have."""
    refuse_others(listed.options, DATABASE, setting, HOW_CLUSTER)
    told = {*listed.path, option(listed.options, DATABASE) or "0"}
    if told - {"0"}:
        raise SettingError(
            f"{setting} ends with more than its hosts, and a Redis Cluster has database 0 alone: "
            f"write it such as '{HOW_CLUSTER}'"
        )


def _node(host: str, port: int) -> ClusterNode:
    make: Any = ClusterNode  # it has no types
    node: ClusterNode = make(host, port)
    return node


def _tls(params: Mapping[str, Any]) -> bool:
    return any(str(name).startswith("ssl_") for name in params)


def _root_of(exc: BaseException) -> Exception:
    """Return what kept redis-py from a node: it tells only that no node could be asked."""
    inner = exc.__cause__ or exc.__context__
    while inner is not None:
        if isinstance(inner, (exceptions.RedisError, OSError)):
            return inner
        inner = inner.__cause__ or inner.__context__
    return exceptions.ClusterDownError(str(exc))
