"""Read URLs that name several servers: Sentinel's, and a Cluster's; no network in here.

No error quotes a URL, or a part of it that may be of a password.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from celery_redlock_beat.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Node = tuple[str, int]

SENTINEL = re.compile(r"(?:(?:redis|valkey)(s?)[+-])?sentinel")
CLUSTER = re.compile(r"(?:redis|valkey)(s?)[+-]?cluster")
ONE_SERVER = re.compile(r"(?:redis|valkey)(s?)|redis\+socket|socket|unix")
SENTINEL_PORT = 26379
REDIS_PORT = 6379
HOW_SENTINEL = "redis+sentinel://host1:26379,host2:26379,host3:26379/mymaster/0"
HOW_CLUSTER = "redis+cluster://host1:6379,host2:6379,host3:6379"
CERTIFICATES = {
    "required": ssl.CERT_REQUIRED,
    "optional": ssl.CERT_OPTIONAL,
    "none": ssl.CERT_NONE,
}
# As they are written for lettuce, asynq, RedBeat and others, without case and separators.
MASTER = {
    "mastername",
    "master",
    "servicename",
    "service",
    "sentinelmaster",
    "sentinelmastername",
    "sentinelmasterid",
    "sentinelservice",
    "sentinelservicename",
}
DATABASE = {"db", "database", "virtualhost"}
SENTINEL_USER = {"sentinelusername", "sentineluser"}
SENTINEL_PASSWORD = {"sentinelpassword", "sentinelpass"}


@dataclass(frozen=True, repr=False)
class ServerList:
    """What a URL of several servers says; never shown, since it holds the password.

    ``path`` has the segments behind the hosts; ``tls`` are redis-py's own options, empty without
    TLS.
    """

    nodes: tuple[Node, ...]
    user: str = ""
    password: str = ""
    path: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    tls: Mapping[str, Any] = field(default_factory=dict)

    def url_of(self, scheme: str, node: Node, db: int) -> str:
        """Return the URL of one of the servers as kombu writes it."""
        host = f"[{node[0]}]" if ":" in node[0] else quote(node[0], safe="")
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        user = f"{quote(self.user, safe='')}{secret}@" if self.user or secret else ""
        return f"{scheme}://{user}{host}:{node[1]}/{db}"


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in lower case."""
    return url.partition("://")[0].strip().lower()


def is_sentinel(url: str) -> bool:
    """Answer whether a URL names sentinels, in any spelling."""
    return SENTINEL.fullmatch(scheme_of(url)) is not None


def is_cluster(url: str) -> bool:
    """Answer whether a URL names nodes of a Cluster, in any spelling."""
    return CLUSTER.fullmatch(scheme_of(url)) is not None


def is_redis_url(url: str) -> bool:
    """Answer whether a URL is of a Redis in any shape."""
    return any(each.fullmatch(scheme_of(url)) for each in (ONE_SERVER, SENTINEL, CLUSTER))


def is_tls(url: str) -> bool:
    """Answer whether a URL's scheme means TLS."""
    return any(
        found[1]
        for each in (ONE_SERVER, SENTINEL, CLUSTER)
        if (found := each.fullmatch(scheme_of(url)))
    )


def read_list(url: str, setting: str, tls: Mapping[str, Any] | None = None) -> ServerList:
    """Read a URL of several servers: ``h1:1,h2:2/path``, or whole URLs with ``;`` between them.

    ``tls`` counts where a URL of TLS has no options of its own. Raises ``SettingError``, which
    names the setting and shows how to write it.
    """
    cluster = is_cluster(url)
    how, port = (HOW_CLUSTER, REDIS_PORT) if cluster else (HOW_SENTINEL, SENTINEL_PORT)
    scheme = scheme_of(url)
    places, query, fragment = _split(url)
    try:
        nodes, secrets, paths = _hosts(places, scheme, port)
    except ValueError:
        # Python's own text quotes what it takes for a port: the password, if that has a slash.
        raise _unreadable(setting, how) from None
    if len(secrets) > 1:
        raise SettingError(
            f"{setting} has several users or passwords: write that of the data servers once"
            + ("" if cluster else ", and the sentinels' own as '?sentinel_password='")
        )
    user, password = next(iter(secrets), ("", ""))
    options = dict(parse_qsl(query, keep_blank_values=True))
    if fragment:
        options = {"master_name": unquote(fragment), **options}
    tls = tls_options(options, setting, is_tls(url), tls)
    options = {name: value for name, value in options.items() if not name.startswith("ssl_")}
    # Celery takes the first of several URLs: what only a later one says would count for nothing.
    told = {path or "0" for path in paths} if scheme == "sentinel" else {*filter(None, paths)}
    if len(told) > 1:
        raise SettingError(
            f"{setting} has several servers with different endings: write the same one behind each,"
            f" or one behind all, as in '{how}'"
        )
    path = tuple(unquote(each) for each in next(iter(told), "").split("/") if each)
    return ServerList(nodes, user, password, path, options, tls)


def tls_options(
    query: Mapping[str, str],
    setting: str,
    tls: bool,  # noqa: FBT001  what the scheme says
    otherwise: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the options of TLS in a URL's query; unless they say otherwise, all is verified.

    Without any, they are those given as ``otherwise`` if the scheme means TLS, and else empty.
    """
    given: dict[str, Any] = {name: query[name] for name in query if name.startswith("ssl_")}
    if not given and not tls:
        return {}
    if not given and otherwise:
        return dict(otherwise)
    level = str(given.get("ssl_cert_reqs", "required")).lower().removeprefix("cert_")
    if level not in CERTIFICATES:
        raise SettingError(
            f"{setting} has an ssl_cert_reqs that is not understood: write one of "
            + ", ".join(CERTIFICATES)
        )
    named = str(given.get("ssl_check_hostname", level == "required")).lower()
    checks = named not in {"false", "no", "0"} and level != "none"
    return given | {"ssl_cert_reqs": CERTIFICATES[level], "ssl_check_hostname": checks}


def option(options: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the option that has one of these names, whatever its case and separators."""
    wanted = set(names)
    return next((value for name, value in options.items() if _plain(name) in wanted), "")


def refuse_others(options: Mapping[str, str], known: Iterable[str], setting: str, how: str) -> None:
    """Raise ``SettingError`` for an option that nobody would read."""
    names = set(known)
    for name in options:
        if _plain(name) not in names:
            shown = name if re.fullmatch(r"\w{1,40}", name) else "one of its options"
            raise SettingError(
                f"{setting} has {shown!r} behind its '?', which is not understood: "
                f"write it such as '{how}', with options of TLS such as 'ssl_ca_certs' there"
            )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _split(url: str) -> tuple[list[str], str, str]:
    rest, _, fragment = url.strip().partition("#")
    rest, _, query = rest.partition("?")
    places: list[str] = []
    for part in filter(None, (part.strip() for part in rest.split(";"))):
        if "://" in part or not places:
            places.append(part)
        else:
            places[-1] += f",{part}"
    return places, query, fragment


def _hosts(
    places: list[str], scheme: str, default: int
) -> tuple[tuple[Node, ...], set[tuple[str, str]], list[str]]:
    nodes: list[Node] = []
    secrets: set[tuple[str, str]] = set()
    paths: list[str] = []
    for place in places:
        own, apart, rest = place.rpartition("://")
        if apart and own.lower() != scheme:
            raise ValueError(own)
        authority, _, path = rest.partition("/")
        paths.append(path.strip("/"))
        for each in authority.split(","):
            secret, at, address = each.strip().rpartition("@")
            parts = urlsplit(f"//{address}")
            if not parts.hostname or parts.path or parts.query or parts.fragment:
                raise ValueError(address)
            nodes.append((unquote(parts.hostname), parts.port or default))
            user, _, password = secret.partition(":")
            if at:
                secrets.add((unquote(user), unquote(password)))
    return tuple(dict.fromkeys(nodes)), secrets, paths


def _unreadable(setting: str, how: str) -> SettingError:
    return SettingError(
        f"{setting} cannot be read as a list of servers: write it such as '{how}', and "
        "percent-encode what is special in user and password"
    )
