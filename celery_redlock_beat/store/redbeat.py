"""Where RedBeat's data is, in the dialect of its settings; no network, and no data of its own.

RedBeat says several servers and all else beside the URL, in ``redbeat_redis_options``; what it does
not say itself, it takes from the broker's settings.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.setting_names import spelt_in
from celery_redlock_beat.setting_values import checked, parse_url
from celery_redlock_beat.store.addresses import parsed, redis_at
from celery_redlock_beat.store.endpoint import endpoint, is_redis
from celery_redlock_beat.store.urls import (
    REDIS_PORT,
    SENTINEL_PORT,
    ServerList,
    is_cluster,
    is_sentinel,
    is_tls,
)

if TYPE_CHECKING:
    from celery import Celery

    from celery_redlock_beat.store.endpoint import Endpoint
    from celery_redlock_beat.store.urls import Node

PREFIX = "redbeat_"
URL = "redbeat_redis_url"
OPTIONS = "redbeat_redis_options"
OF_SERVERS = ("cluster", "sentinels", "service_name", "sentinel_kwargs", "startup_nodes")
"""The options by which RedBeat itself finds its servers."""
PASSED_ON = (
    "credential_provider",
    "client_name",
    "db",
    "health_check_interval",
    "password",
    "socket_connect_timeout",
    "socket_keepalive",
    "socket_keepalive_options",
    "socket_timeout",
    "ssl",
    "username",
)
"""The options of redis-py that a connection of ours follows, and those that begin with ``ssl_``."""


@dataclass(frozen=True, repr=False)
class RedBeatPlace:
    """What RedBeat's settings say of its server; never shown, since it holds the password.

    ``url`` is ``None`` where only the broker's settings say where it is. ``setting`` is where it
    was written. ``is_own`` tells that the options were meant for RedBeat, not for the broker.
    """

    url: str | None
    setting: str = URL
    options: Mapping[str, Any] = field(default_factory=dict)
    is_own: bool = False
    tls: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_at_broker(self) -> bool:
        """Whether only the broker's settings say where it is."""
        return self.url is None


def place_of(app: Celery) -> RedBeatPlace:
    """Read where RedBeat's data is; raise ``SettingError`` for what RedBeat could not read."""
    found = spelt_in(app, PREFIX)
    key, url = found.get("redis_url", (URL, None))
    url = checked(key, url, parse_url)
    broker = app.conf.broker_url
    if url is None and isinstance(broker, str) and (is_cluster(broker) or _is_dialect(broker)):
        key, url = "broker_url", broker
    own = found.get("redis_options")
    spelt, options = own or ("broker_transport_options", app.conf.broker_transport_options)
    if options is not None and not isinstance(options, Mapping):
        kind = type(options).__name__
        raise SettingError(f"{spelt} is of type {kind}: write a dict, as {{'socket_timeout': 1}}")
    _, tls = found.get("redis_use_ssl", ("", app.conf.broker_use_ssl))
    tls = dict(tls) if isinstance(tls, Mapping) else {}
    return RedBeatPlace(url, key, dict(options or {}), own is not None, tls)


def endpoint_of(app: Celery, place: RedBeatPlace) -> Endpoint:
    """Return where to connect to; raise ``SettingError`` if that cannot be read."""
    if place.url is None:
        connection = parsed("broker_url", app.connection)
        if not is_redis(connection):
            raise SettingError(
                f"{URL} is not set, and the broker is no Redis: set it to where RedBeat's data is, "
                f"as in {URL} = 'redis://localhost:6379/1'"
            )
        return _with_options(endpoint(connection, "broker_url"), place)
    if place.options.get("cluster") or is_cluster(place.url):
        return _with_options(_cluster(place.url, place), place)
    if is_sentinel(place.url) and place.options.get("sentinels"):
        return _with_options(_sentinel(place), place)
    master = place.options.get("service_name") or place.options.get("master_name")
    options = {"master_name": master, "sentinel_kwargs": place.options.get("sentinel_kwargs")}
    said = {name: value for name, value in options.items() if value}
    return _with_options(redis_at(place.url, place.setting, said, _verified(place)), place)


def _is_dialect(url: str) -> bool:
    """Answer whether it is RedBeat's way to write Sentinel, which is no broker of Celery's."""
    return is_sentinel(url) and not url.startswith("sentinel:")


def _verified(place: RedBeatPlace) -> dict[str, Any]:
    """Return the options of TLS, which are wanted even where nobody says so, as by RedBeat."""
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED, **place.tls}


def _sentinel(place: RedBeatPlace) -> Endpoint:
    told = place.options
    nodes = _nodes(place, "sentinels", SENTINEL_PORT)
    listed = ServerList(nodes, str(told.get("username") or ""), str(told.get("password") or ""))
    db = _number(place, "db", told.get("db") or 0)
    url = ";".join(listed.url_of("sentinel", node, db) for node in nodes)
    options = {
        "master_name": told.get("service_name", "master"),
        "sentinel_kwargs": told.get("sentinel_kwargs"),
    }
    tls = _verified(place) if place.tls else None
    return redis_at(url, place.setting, options, tls, anyway=tls is not None)


def _cluster(url: str, place: RedBeatPlace) -> Endpoint:
    told = place.options
    user, password = (
        quote(str(told.get(name) or ""), safe="") for name in ("username", "password")
    )
    at = f"{user}:{password}@" if user or password else ""
    scheme = "rediss+cluster" if is_tls(url) or told.get("ssl") else "redis+cluster"
    hosts = ",".join(_written(node) for node in _nodes(place, "startup_nodes", REDIS_PORT))
    if not hosts:
        hosts, at = url.partition("://")[2], ""
    tls = _verified(place) | {name: told[name] for name in told if name.startswith("ssl_")}
    return redis_at(f"{scheme}://{at}{hosts}", place.setting, {}, tls)


def _written(node: Node) -> str:
    host = f"[{node[0]}]" if ":" in node[0] else quote(node[0], safe="")
    return f"{host}:{node[1]}"


def _nodes(place: RedBeatPlace, option: str, port: int) -> tuple[Node, ...]:
    """Return servers that are given as pairs, or as dicts; ports may be texts."""
    nodes = []
    for each in place.options.get(option) or ():
        parts = (each.get("host"), each.get("port", port)) if isinstance(each, Mapping) else each
        if not isinstance(parts, list | tuple) or len(parts) != 2 or not isinstance(parts[0], str):  # noqa: PLR2004
            raise SettingError(
                f"{OPTIONS} has {option!r} with something that is no server: write each as "
                f"('192.168.1.1', {port}), or as {{'host': '192.168.1.1', 'port': {port}}}"
            )
        nodes.append((parts[0], _number(place, option, parts[1])))
    return tuple(nodes)


def _number(place: RedBeatPlace, option: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        where = OPTIONS if place.is_own else "broker_transport_options"
        raise SettingError(f"{where} has {option!r} with what is no number: write one") from None


def _with_options(found: Endpoint, place: RedBeatPlace) -> Endpoint:
    """Add what was said for redis-py: what the URL says counts more, as in redis-py itself."""
    if not place.is_own:
        return found
    said = {name: value for name, value in found.params.items() if value is not None}
    has_tls = any(name.startswith("ssl_") for name in said)
    passed = {
        name: value
        for name, value in place.options.items()
        if (name in PASSED_ON and name != "ssl") or (has_tls and name.startswith("ssl_"))
    }
    if "db" in passed and not found.master and not urlsplit(place.url or "").path.strip("/"):
        said["db"] = _number(place, "db", passed["db"])
    params = {**found.params, **passed, **said}
    if passed.get("credential_provider") is not None:
        params = {name: params[name] for name in params.keys() - {"username", "password"}}
    return replace(found, params=params)
