"""From a Redis URL in any spelling to where the server is, through kombu's eyes; no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from kombu import Connection

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.store import sentinel
from celery_redlock_beat.store.cluster import ClusterEndpoint, check_list
from celery_redlock_beat.store.endpoint import Endpoint, endpoint, unreadable
from celery_redlock_beat.store.urls import (
    HOW_CLUSTER,
    HOW_SENTINEL,
    is_cluster,
    is_redis_url,
    is_sentinel,
    is_tls,
    read_list,
    tls_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SPELLINGS = {
    "valkey://": "redis://",
    "valkeys://": "rediss://",
    "unix://": "redis+socket://",
    "socket://": "redis+socket://",
}


def redis_at(
    url: str,
    setting: str,
    options: Mapping[str, Any],
    tls: Mapping[str, Any] | None,
    *,
    anyway: bool = False,
) -> Endpoint:
    """Read the URL of a Redis in any shape; ``setting`` is where it was written.

    ``tls`` counts where a URL of TLS has no options of its own, or where there is TLS ``anyway``.
    Raises ``SettingError``.
    """
    if not is_redis_url(url):
        msg = (
            f"{setting} is no Redis URL: it has to begin with one of redis://, rediss:// (for TLS),"
            f" redis+socket://, or be such as '{HOW_SENTINEL}' or '{HOW_CLUSTER}'"
        )
        raise SettingError(msg)
    if is_cluster(url):
        listed = read_list(url, setting, tls)
        check_list(listed, setting)
        scheme = "rediss" if listed.tls else "redis"
        first = _kombu_at(listed.url_of(scheme, listed.nodes[0], 0), setting, options, listed.tls)
        return ClusterEndpoint(first.params, first.prefix, listed.nodes)
    if is_sentinel(url):
        spelt = sentinel.as_kombu_writes_it(url, setting, options, tls)
        own = spelt.tls or (tls if anyway else None)
        return _kombu_at(spelt.url, setting, spelt.transport_options, own)
    place, own = _without_tls_options(_as_kombu_writes_it(url), setting, tls)
    return _kombu_at(place, setting, options, own or (tls if anyway else None))


def _kombu_at(
    url: str, setting: str, options: Mapping[str, Any], tls: Mapping[str, Any] | None
) -> Endpoint:
    """Let kombu read a URL that it knows how to read."""

    def connect() -> Connection:
        return Connection(url, transport_options=dict(options), ssl=dict(tls) if tls else False)

    return endpoint(parsed(setting, connect), setting)


def _without_tls_options(
    url: str, setting: str, tls: Mapping[str, Any] | None
) -> tuple[str, Mapping[str, Any]]:
    """Return a URL without its options of TLS, and these; kombu would verify less than we do."""
    place, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    own = tls_options(dict(pairs), setting, is_tls(url), tls)
    others = [(name, value) for name, value in pairs if not name.startswith("ssl_")]
    if len(others) == len(pairs):
        return url, own
    return f"{place}?{urlencode(others)}" if others else place, own


def _as_kombu_writes_it(url: str) -> str:
    for written, understood in SPELLINGS.items():
        if url.startswith(written):
            url = f"{understood}{url.removeprefix(written)}"
    if url.startswith("redis+socket://"):
        url = url.replace("?db=", "?virtual_host=").replace("&db=", "&virtual_host=")
    return url


def parsed(setting: str, connect: Callable[[], Connection]) -> Connection:
    """Return what ``connect`` makes of a URL; raise ``SettingError`` if that cannot be read."""
    try:
        return connect()
    except (ValueError, TypeError):
        # Python's own text quotes what it takes for a port: the password, if that has a slash.
        raise unreadable(setting) from None
