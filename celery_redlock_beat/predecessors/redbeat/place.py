"""A client of the Redis that holds RedBeat's data, with waits as short as ours; it asks nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.redbeat import RedBeatPlace, endpoint_of

if TYPE_CHECKING:
    from celery import Celery

    from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
    from celery_redlock_beat.store.endpoint import Endpoint


def connect(
    app: Celery, settings: RedBeatSettings, url: str | None = None, *, decode: bool = False
) -> Any:
    """Return a new client of redis-py for RedBeat's Redis, or for a ``url``, not connected yet.

    It gives up after ``redlock_beat_socket_timeout`` and retries nothing by itself. It answers
    with bytes, or, to ``decode``, with texts, as RedBeat's own does.

    Raises:
        SettingError: Where that is cannot be read, or it is no Redis.

    """
    found = _endpoint(app, settings, url)
    if decode:
        found = replace(found, params={**found.params, "decode_responses": True})
    return found.connect(Settings.from_app(app).socket_timeout)


def label(app: Celery, settings: RedBeatSettings, url: str | None = None) -> str:
    """Return the URL of RedBeat's Redis without any password; raises as ``connect``."""
    return _endpoint(app, settings, url).label


def _endpoint(app: Celery, settings: RedBeatSettings, url: str | None) -> Endpoint:
    place = settings.place if url is None else RedBeatPlace(url, "the URL")
    return endpoint_of(app, place)
