"""Find the Redis that holds the ledger, and whether the broker is the same; no network in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.store.addresses import parsed, redis_at
from celery_redlock_beat.store.endpoint import Endpoint, endpoint, is_redis
from celery_redlock_beat.store.redbeat import endpoint_of, place_of
from celery_redlock_beat.store.sentinel import check_broker
from celery_redlock_beat.store.urls import is_cluster, is_redis_url

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Connection
    from redis import Redis

    from celery_redlock_beat.settings import Settings

URL = "redlock_beat_url"
MEMORY = "memory://"
# What kombu reads, once unix:// and socket:// are written as redis+socket://.
SCHEMES = ("redis://", "rediss://", "sentinel://", "redis+socket://", "socket://", "unix://")


@dataclass(frozen=True, repr=False)
class Server:
    """The server that holds the ledger.

    ``is_broker`` tells that the broker is the same server, database and user, so that a message
    and its settlement can be one step; otherwise ``why_not`` says why. ``is_redbeats`` tells that
    only RedBeat's settings say where it is.
    """

    label: str
    why_not: str = ""
    prefix: str = ""
    is_memory: bool = False
    is_redbeats: bool = False
    _endpoint: Endpoint | None = None
    _timeout: float = 1.0

    @property
    def is_broker(self) -> bool:
        """Whether the broker is the same server, database and user."""
        return not self.why_not

    def connect(self) -> Redis:
        """Return a new client, not connected yet, with a pool of its own.

        It gives up after the socket timeout and retries nothing by itself.
        """
        if self._endpoint is None:
            msg = f"{URL} is {MEMORY}: the ledger is in this process, and there is no server"
            raise SettingError(msg)
        return self._endpoint.connect(self._timeout)

    def __repr__(self) -> str:
        return f"<Server {self.label}>"


def check_broker_url(app: Celery) -> None:
    """Refuse a ``broker_url`` that nobody could connect to, before others quote its password.

    Raises ``SettingError``.
    """
    for setting in ("broker_url", "broker_write_url"):
        check_broker(setting, app.conf.get(setting))
    try:
        parsed("broker_url", app.connection).get_transport_cls()
    except KeyError as error:
        told = " ".join(map(str, error.args))  # the str of a KeyError has quotes of its own
        msg = f"broker_url has to begin with a scheme such as redis:// or amqp:// ({told})"
        raise SettingError(msg) from None
    except ImportError:
        return  # Celery itself says well what to install


def locate(app: Celery, settings: Settings) -> Server:
    """Return the ledger's server: ``redlock_beat_url``, else the broker.

    Where neither is a Redis, it is that of RedBeat, if one is set, or else the result backend.
    Raises ``SettingError`` if none of them is a Redis, or if one cannot be read.
    """
    if settings.url and settings.url.startswith(MEMORY):
        label = f"{MEMORY} (for tests: no other node can see it)"
        return Server(label, why_not="the ledger is in this process's memory", is_memory=True)
    redbeat = None
    broker, why_not = _broker(app)
    if settings.url:
        found = _from_url(app, settings)
        if broker is not None and not broker.is_same(found):
            why_not = f"{URL} names another server, database or user than the broker"
            if is_cluster(settings.url):
                why_not = f"{URL} names a Redis Cluster, and the broker is none"
    elif broker is not None:
        found = broker
    else:
        redbeat = _from_redbeat(app)
        found = redbeat or _from_backend(app)
    # With another broker than ours, its URLs do not matter: it is no Redis, or not this one.
    prefix = broker.prefix if broker is not None and not why_not else found.prefix
    return Server(
        found.label,
        why_not,
        prefix,
        is_redbeats=redbeat is not None,
        _endpoint=found,
        _timeout=settings.socket_timeout,
    )


def _broker(app: Celery) -> tuple[Endpoint | None, str]:
    """Return the broker if it is a Redis, and why messages cannot be pushed by the ledger."""
    own = app.conf.broker_write_url != app.conf.broker_url
    setting = "broker_write_url" if own else "broker_url"
    connection = parsed(setting, app.connection_for_write)
    if not is_redis(connection):
        return None, f"the broker is {_transport_name(connection)}, not Redis"
    found = endpoint(connection, setting)
    if not found.master and len(connection.alt or ()) > 1:
        return found, "the broker has several URLs, and workers may be at any of them"
    return found, ""


def _from_url(app: Celery, settings: Settings) -> Endpoint:
    options = dict(getattr(settings, "transport_options", None) or {})
    tls = None
    if is_redis(parsed("broker_url", app.connection_for_write)):
        # The name of Sentinel's master, its keywords, TCP keepalive, the CA: likely the same.
        options = options or dict(app.conf.broker_transport_options or {})
        tls = app.conf.broker_use_ssl
    return redis_at(settings.url or "", URL, options, tls if isinstance(tls, Mapping) else None)


def _from_redbeat(app: Celery) -> Endpoint | None:
    place = place_of(app)
    return None if place.is_at_broker else endpoint_of(app, place)


def _from_backend(app: Celery) -> Endpoint:
    url = app.conf.result_backend
    if not isinstance(url, str) or not is_redis_url(url) or is_cluster(url):
        msg = (
            f"{URL} is not set, and neither the broker nor the result backend is a Redis: "
            f"set it, as in {URL} = 'redis://localhost:6379/0'"
        )
        raise SettingError(msg)
    options = dict(app.conf.result_backend_transport_options or {})
    tls = app.conf.redis_backend_use_ssl
    return redis_at(url, "result_backend", options, tls, anyway=bool(tls))


def _transport_name(connection: Connection) -> str:
    name = connection.transport_cls
    return name if isinstance(name, str) else getattr(name, "__name__", "unknown")
