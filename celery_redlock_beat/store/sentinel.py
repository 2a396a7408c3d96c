"""From the ways in which people write Sentinel's URL to the one that kombu reads; no network."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kombu.transport import TRANSPORT_ALIASES

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.store.urls import (
    DATABASE,
    HOW_CLUSTER,
    HOW_SENTINEL,
    MASTER,
    SENTINEL_PASSWORD,
    SENTINEL_USER,
    ServerList,
    is_cluster,
    is_sentinel,
    option,
    read_list,
    refuse_others,
    scheme_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

LIST_IN_CELERYS_WORDS = "sentinel://host1:26379;sentinel://host2:26379;sentinel://host3:26379"
HOW_AS_BROKER = (
    f"write broker_url = '{LIST_IN_CELERYS_WORDS}', each with the number of a database behind it "
    "if that is not 0, and broker_transport_options = {'master_name': 'mymaster'}"
)
# Several hosts in one URL, the name of a master as a path, and anything behind a "?".
MISREAD = re.compile(r",|[?#]|//[^/]*/[^/]*[^\d/]")


@dataclass(frozen=True, repr=False)
class Spelling:
    """How kombu wants it written: its URL, transport options and TLS; holds the password."""

    url: str
    transport_options: Mapping[str, Any] = field(default_factory=dict)
    tls: Mapping[str, Any] = field(default_factory=dict)


def as_kombu_writes_it(
    url: str, setting: str, options: Mapping[str, Any], tls: Mapping[str, Any] | None = None
) -> Spelling:
    """Read Sentinel's URL with the name of its master in it, or in the transport options.

    ``tls`` counts where a URL of TLS has no options of its own. Raises ``SettingError``, which
    shows how to write it.
    """
    listed = read_list(url, setting, tls)
    known = MASTER | DATABASE | SENTINEL_USER | SENTINEL_PASSWORD
    refuse_others(listed.options, known, setting, HOW_SENTINEL)
    numbers = [each for each in listed.path if each.isdecimal()]
    names = [each for each in listed.path if not each.isdecimal()]
    number = option(listed.options, DATABASE) or (numbers or ["0"])[0]
    if len(numbers) > 1 or len(names) > 1 or not number.isdecimal():
        raise SettingError(
            f"{setting} has more behind its hosts than the name of a master and the number of a "
            f"database: write it such as '{HOW_SENTINEL}'"
        )
    master = option(listed.options, MASTER) or (names or [""])[0] or options.get("master_name")
    if not master:
        raise SettingError(no_master(setting))
    merged = {**options, "master_name": master, "sentinel_kwargs": _of_sentinels(listed, options)}
    nodes = [listed.url_of("sentinel", node, int(number)) for node in listed.nodes]
    return Spelling(";".join(nodes), merged, listed.tls)


def check_broker(setting: str, urls: object) -> None:
    """Refuse a broker's URLs in spellings that Celery misreads, though we would not.

    Raises ``SettingError``, which shows how to write them.
    """
    listed = urls.split(";") if isinstance(urls, str) else urls
    for url in listed if isinstance(listed, (list, tuple)) else ():
        if not isinstance(url, str) or scheme_of(url) in TRANSPORT_ALIASES.keys() - {"sentinel"}:
            continue
        if is_cluster(url):
            raise SettingError(
                f"{setting} names a Redis Cluster, and Celery has no broker there: take another "
                f"one, and keep the ticks in the Cluster by redlock_beat_url = '{HOW_CLUSTER}'"
            )
        if is_sentinel(url) and (scheme_of(url) != "sentinel" or MISREAD.search(url)):
            raise SettingError(
                f"{setting} names sentinels in a way that Celery does not read: {HOW_AS_BROKER}"
            )


def no_master(setting: str) -> str:
    """Return the text of the error for Sentinel without the name of a master."""
    if setting.startswith("broker"):
        options = "broker_transport_options"
        return f"{setting} is Sentinel's, and {options} lack 'master_name': {HOW_AS_BROKER}"
    return (
        f"{setting} is Sentinel's, and the name of a master (master_name) is missing: "
        f"write it such as '{HOW_SENTINEL}'"
    )


def _of_sentinels(listed: ServerList, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the sentinels themselves want to hear; with TLS in the URL, they have it too."""
    own = {
        "username": option(listed.options, SENTINEL_USER),
        "password": option(listed.options, SENTINEL_PASSWORD),
    }
    told = {name: value for name, value in own.items() if value}
    tls = {"ssl": True, **listed.tls} if listed.tls else {}
    return {**(options.get("sentinel_kwargs") or {}), **tls, **told}
