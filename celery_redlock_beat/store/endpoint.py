"""One Redis as kombu would reach it: server, database, user, TLS, Sentinel; no network in here.

kombu reads the URL and the transport options; what must be ours (timeouts, no hidden retries) is
set on top.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kombu.transport import redis as kombu_redis
from kombu.utils.url import url_to_parts
from redis import ConnectionPool, Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.store.sentinel import no_master

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kombu import Connection

    from celery_redlock_beat.store.urls import Node

LOOPBACK = {"localhost": "127.0.0.1", "::1": "127.0.0.1", "": "127.0.0.1"}


class _Silent:
    """Answers the ping that a kombu channel begins its life with."""

    connection = None

    def ping(self) -> bool:
        return True


class _Offline:
    """Mixed into a Redis channel: it can be made without a server."""

    client = _Silent()


@dataclass(frozen=True, repr=False)
class Endpoint:
    """Where a Redis is and how to enter; never shown, since it holds the password.

    ``nodes`` and ``master`` are Sentinel's, and empty without it.
    """

    params: Mapping[str, Any]
    prefix: str = ""
    nodes: tuple[Node, ...] = ()
    master: str = ""
    sentinel_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its URL without any password."""
        user = f"{self.params['username']}@" if self.params.get("username") else ""
        db = self.params.get("db", 0)
        if self.master:
            hosts = ";".join(f"sentinel://{user}{host}:{port}/{db}" for host, port in self.nodes)
            return f"{hosts} ({self.master})"
        if "path" in self.params:
            return f"redis+socket://{user}{self.params['path']}?virtual_host={db}"
        scheme = "rediss" if any(str(name).startswith("ssl_") for name in self.params) else "redis"
        return f"{scheme}://{user}{self.params['host']}:{self.params['port']}/{db}"

    def is_same(self, other: Endpoint) -> bool:
        """Answer whether both name one server, database and user."""
        if self.master or other.master:
            ours, theirs = ({_normal(node) for node in each.nodes} for each in (self, other))
            if self.master != other.master or ours.isdisjoint(theirs):
                return False
        elif self._address() != other._address():
            return False
        return self._entrance() == other._entrance()

    def connect(self, timeout: float) -> Redis:
        """Return a new client, not connected yet, with a pool of its own."""
        pool = self._sentinel_pool(timeout) if self.master else self._pool(timeout)
        provider = self.params.get("credential_provider")
        told = {"credential_provider": provider} if provider is not None else {}
        client = Redis(connection_pool=pool, **told)
        client.auto_close_connection_pool = True
        return client

    def _pool(self, timeout: float) -> ConnectionPool:
        return ConnectionPool(**bounded(self.params, timeout))

    def _sentinel_pool(self, timeout: float) -> ConnectionPool:
        params = bounded(self.params, timeout)
        for name in ("host", "port"):
            params.pop(name, None)
        nodes = bounded(self.sentinel_options.get("sentinel_kwargs") or {}, timeout)
        make: Any = Sentinel  # it has no types
        sentinel = make(
            self.nodes,
            min_other_sentinels=self.sentinel_options.get("min_other_sentinels") or 0,
            sentinel_kwargs=nodes,
            **params,
        )
        pool: ConnectionPool = sentinel.master_for(self.master, Redis).connection_pool
        return pool

    def _address(self) -> object:
        if "path" in self.params:
            return self.params["path"]
        return _normal((self.params["host"], self.params["port"]))

    def _entrance(self) -> tuple[int, str, object]:
        user = self.params.get("username") or "default"
        return self.params.get("db", 0), user, type(self.params.get("credential_provider"))


def is_redis(connection: Connection) -> bool:
    """Answer whether a kombu connection is of a Redis transport."""
    try:
        channel = getattr(connection.get_transport_cls(), "Channel", None)
    except (ImportError, KeyError):  # a transport that is not installed is no Redis
        return False
    return isinstance(channel, type) and issubclass(channel, kombu_redis.Channel)


def endpoint(connection: Connection, setting: str) -> Endpoint:
    """Read a kombu connection of a Redis transport; ``setting`` is named if that is impossible."""
    channel = _offline_channel(connection)
    try:
        params = channel._connparams()  # noqa: SLF001  no public way leads to them
    except (ValueError, TypeError):
        # Their texts may quote what stands in the place of a database: parts of a password.
        raise unreadable(setting) from None
    prefix = str(getattr(channel, "global_keyprefix", "") or "")
    if not isinstance(channel, kombu_redis.SentinelChannel):
        return Endpoint(params, prefix)
    options = {
        name: getattr(channel, name, None) for name in ("min_other_sentinels", "sentinel_kwargs")
    }
    master = getattr(channel, "master_name", None)
    if not master:
        raise SettingError(no_master(setting))
    return Endpoint(params, prefix, _sentinels(connection, params), str(master), options)


def unreadable(setting: str) -> SettingError:
    """Return the error for a URL that cannot be read; it does not quote it."""
    return SettingError(
        f"{setting} cannot be read as a URL: percent-encode what is special in user and password, "
        "end it with the number of a database, as in 'redis://:p%40ss@host:6379/0', "
        "and put only options that kombu knows behind a '?'"
    )


def _offline_channel(connection: Connection) -> Any:
    base = connection.get_transport_cls()
    channel = type("OfflineChannel", (_Offline, base.Channel), {"__module__": __name__})
    return channel(base(client=connection))


def _sentinels(connection: Connection, params: Mapping[str, Any]) -> tuple[Node, ...]:
    urls = [url_to_parts(url) for url in connection.alt]
    nodes = [(url.hostname, url.port or 26379) for url in urls if url.scheme == "sentinel"]
    return tuple(nodes) or ((params["host"], params["port"]),)


def bounded(params: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Set what must be ours: finite waits, no hidden retries, the protocol that kombu speaks."""
    names = ["socket_timeout"] if "path" in params else ["socket_timeout", "socket_connect_timeout"]
    waits = {name: min(float(params.get(name) or timeout), timeout) for name in names}
    own = {"retry": Retry(NoBackoff(), 0), "protocol": 2, **waits}
    left_out = ("retry_on_timeout", "retry_on_error", "max_connections", "health_check_interval")
    return {**{name: value for name, value in params.items() if name not in left_out}, **own}


def _normal(node: Node) -> Node:
    host = (node[0] or "").lower()
    return LOOPBACK.get(host, host), int(node[1])
