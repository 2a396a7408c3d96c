"""Which Redis a run uses, as an option or an app names it; nothing in here connects by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.addresses import SPELLINGS, redis_at
from celery_redlock_beat.store.client import MEMORY, URL
from celery_redlock_beat.store.endpoint import Endpoint, is_redis
from celery_redlock_beat.store.sentinel import Spelling, as_kombu_writes_it
from celery_redlock_beat.store.urls import is_cluster, is_redis_url, is_sentinel, scheme_of

if TYPE_CHECKING:
    from celery import Celery
    from redis import Redis

OPTION = "--url"
WAY_OUT = f"name one, as in {OPTION} redis://localhost:6379/0"
TIMEOUT = 5.0
FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True, repr=False, eq=False)
class Target:
    """A Redis as settings name it; never shown, since it holds the password.

    ``tls`` are the TLS options of the app, and ``setting`` is what an error names.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tls: Mapping[str, Any] | None = None
    setting: str = OPTION

    @classmethod
    def of_ledger(cls, app: Celery) -> Target:
        """Return where the ledger of an app is; raise ``SettingError`` for impossible settings."""
        settings, conf = Settings.from_app(app), app.conf
        broker = cls.of_broker(app)
        if settings.url:
            own = dict(getattr(settings, "transport_options", None) or {})
            shared = broker or cls("")
            return cls(settings.url, own or shared.options, shared.tls, URL)
        if broker is not None:
            return broker
        options = dict(conf.result_backend_transport_options or {})
        tls = _tls(conf.redis_backend_use_ssl)
        return cls(str(conf.result_backend), options, tls, "result_backend")

    @classmethod
    def of_broker(cls, app: Celery) -> Target | None:
        """Return the broker of an app, if that is a Redis."""
        conf = app.conf
        if not is_redis(app.connection_for_write()):
            return None
        url = conf.broker_write_url or conf.broker_url
        url = url if isinstance(url, str) else ";".join(url)
        options = dict(conf.broker_transport_options or {})
        return cls(url, options, _tls(conf.broker_use_ssl), "broker_url")

    @cached_property
    def endpoint(self) -> Endpoint:
        """What the URL and the options say; raises ``SettingError`` for what cannot be read."""
        if self.url.startswith(MEMORY):
            raise SettingError(f"{self.setting} is {MEMORY}: there is no server to try; {WAY_OUT}")
        if not is_redis_url(self.url):
            raise SettingError(f"{self.setting} is no Redis URL; {WAY_OUT}")
        anyway = bool(self.tls) and self.setting != URL
        return redis_at(self.url, self.setting, self.options, self.tls, anyway=anyway)

    @property
    def is_cluster(self) -> bool:
        """Whether it is a Redis Cluster, which can hold the ledger but no messages."""
        return is_cluster(self.url)

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, where a plain TCP connection leads to one server."""
        if scheme_of(self.url) not in {"redis", "valkey"} or ";" in self.url or self.tls:
            return None
        params = self.endpoint.params
        return str(params["host"]), int(params["port"])

    def connect(self) -> Redis:
        """Return a new client, not connected yet, that gives up after some seconds."""
        return self.endpoint.connect(TIMEOUT)

    def as_broker(self, port: int | None = None) -> Spelling:
        """Return how Celery writes it; with a ``port``, behind a proxy on this machine."""
        if is_sentinel(self.url):
            return as_kombu_writes_it(self.url, self.setting, self.options, self.tls)
        url = self.through(port)
        for written, understood in SPELLINGS.items():
            if url.startswith(written):
                url = f"{understood}{url.removeprefix(written)}"
        if url.startswith("redis+socket://"):
            url = url.replace("?db=", "?virtual_host=").replace("&db=", "&virtual_host=")
        return Spelling(url, self.options, self.tls or {})

    def through(self, port: int | None) -> str:
        """Return its URL; with a ``port``, that of the proxy on it."""
        if port is None:
            return self.url
        parts = urlsplit(self.url)
        secret, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{secret}{at}127.0.0.1:{port}"))


def literal(value: Any, what: str) -> Any:
    """Return a value that Python can read back from its ``repr``, files with their whole path.

    Raises ``SettingError`` where there is none.
    """
    if isinstance(value, Mapping):
        return {
            key: str(Path(each).absolute()) if key in FILES and each else literal(each, what)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple | set):
        return type(value)(literal(each, what) for each in value)
    if isinstance(value, Enum):
        return literal(value.value, what)
    if value is None or isinstance(value, str | bytes | bool | int | float):
        return value
    kind = type(value).__name__
    raise SettingError(f"{kind!r} in the {what} cannot be handed to other processes; {WAY_OUT}")


def _tls(setting: Any) -> Mapping[str, Any] | None:
    if isinstance(setting, Mapping):
        return dict(setting) or None
    return {"ssl_cert_reqs": "required"} if setting else None
