"""RedBeat's configuration of an app, by the names that its users read; it parses no setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery.app import app_or_default

from celery_redlock_beat.predecessors.redbeat.place import connect
from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
from celery_redlock_beat.setting_names import spelt_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery import Celery

CONF = "redbeat_conf"
CLIENT = "redbeat_redis"
"""RedBeat's own names of what it keeps on the app; a client that was put there is taken."""


class RedBeatConfig:
    """What the ``redbeat_*`` settings of an app say, by RedBeat's names.

    They are read once, when it is made. ``lock_key`` and ``lock_timeout`` have no effect without
    the interlock. ``schedule`` is the app's ``beat_schedule``.

    Raises:
        SettingError: A setting cannot be meant.

    """

    def __init__(self, app: Celery | None = None) -> None:
        self.app = app_or_default(app)
        self.settings = RedBeatSettings.from_app(self.app)
        place, spelt = self.settings.place, spelt_in(self.app, "redbeat_")
        self.key_prefix = self.settings.key_prefix
        self.schedule_key = self.settings.schedule_key
        self.statics_key = self.settings.statics_key
        self.redis_url: str | None = self.settings.url or self.app.conf.broker_url
        self.redis_use_ssl = spelt.get("redis_use_ssl", ("", self.app.conf.broker_use_ssl))[1]
        self.redbeat_redis_options: Mapping[str, Any] = place.options
        self.lock_key = self.settings.lock_key
        self.lock_timeout = self.settings.lock_timeout

    @property
    def schedule(self) -> Any:
        """The app's ``beat_schedule``."""
        return self.app.conf.beat_schedule

    @schedule.setter
    def schedule(self, value: Any) -> None:
        self.app.conf.beat_schedule = value


def ensure_conf(app: Celery | None = None) -> RedBeatConfig:
    """Return the configuration of an app, which is kept as its ``redbeat_conf``.

    Raises:
        SettingError: A setting cannot be meant.

    """
    app = app_or_default(app)
    conf: RedBeatConfig | None = vars(app).get(CONF)
    if conf is None:
        conf = vars(app).setdefault(CONF, RedBeatConfig(app))
    return conf


def get_redis(app: Celery | None = None) -> Any:
    """Return a client of RedBeat's Redis, which answers with texts; it is kept on the app.

    Where entries are now, they are not in there: it is for what else you keep beside RedBeat's
    data. It gives up after ``redlock_beat_socket_timeout`` and retries nothing by itself.

    Raises:
        SettingError: Where that is cannot be read, or it is no Redis.

    """
    app = app_or_default(app)
    client: Any = vars(app).get(CLIENT)
    if client is None:
        made = connect(app, ensure_conf(app).settings, decode=True)
        client = vars(app).setdefault(CLIENT, made)
    return client
