"""What the user's Celery configuration says about us, read once into a frozen object.

Nothing here connects, imports Redis, or keeps hold of the app.
"""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.setting_names import spelt_in
from celery_redlock_beat.setting_values import (
    checked,
    mask,
    one_of,
    optional,
    parse_count,
    parse_flag,
    parse_kept,
    parse_namespace,
    parse_path,
    parse_poll,
    parse_seconds,
    parse_some_seconds,
    parse_url,
)
from celery_redlock_beat.ticks import CATCH_UP, COUNT_LIMIT, DST

if TYPE_CHECKING:
    from collections.abc import Callable

    from celery import Celery

PREFIX = "redlock_beat_"
NAMELESS = "celery"
PARSERS: dict[str, Callable[[object], Any]] = {
    "url": parse_url,
    "namespace": parse_namespace,
    "delivery": one_of("auto", "at_most_once"),
    "lease": parse_some_seconds,
    "socket_timeout": parse_some_seconds,
    "poll": parse_poll,
    "hold_down": parse_some_seconds,
    "catch_up": one_of(*CATCH_UP),
    "catch_up_window": parse_some_seconds,
    "catch_up_limit": parse_count,
    "misfire_grace_time": optional(parse_some_seconds),
    "jitter": parse_seconds,
    "dst": one_of(*DST),
    "expires": optional(one_of("next")),
    "strict": parse_flag,
    "history": parse_kept,
    "health_file": parse_path,
    "seed": parse_path,
    "interlock": optional(one_of("redbeat")),
}

logger = logging.getLogger(__name__)
_told_nameless: WeakSet[Any] = WeakSet()


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """The settings named ``redlock_beat_<field>``; durations are seconds.

    From ``catch_up`` to ``expires`` they hold for entries that do not say otherwise.

    ``cron_starting_deadline`` is Celery's own ``beat_cron_starting_deadline``. Values that cannot
    work together raise ``SettingError``.
    """

    url: str | None = None
    namespace: str = NAMELESS
    delivery: Literal["auto", "at_most_once"] = "auto"
    lease: float = 5.0
    socket_timeout: float = 1.0
    poll: float = 0.5
    hold_down: float = 3.0
    catch_up: Literal["latest", "all", "none"] = "latest"
    catch_up_window: float = 86400.0
    catch_up_limit: int = COUNT_LIMIT
    misfire_grace_time: float | None = None
    jitter: float = 0.0
    dst: Literal["celery", "real"] = "celery"
    expires: Literal["next"] | None = None
    strict: bool = False
    history: int = 10_000
    health_file: str | None = None
    seed: str | None = None
    interlock: Literal["redbeat"] | None = None
    cron_starting_deadline: float | None = None

    @classmethod
    def from_app(cls, app: Celery) -> Settings:
        """Read the configuration of ``app``; raise ``SettingError`` for what cannot work."""
        found = _find(app)
        values = {name: checked(key, value, PARSERS[name]) for name, (key, value) in found.items()}
        if values.get("namespace") is None:
            values["namespace"] = _name_of(app)
        if "hold_down" not in values:
            noticed = sum(values.get(name, _DEFAULTS[name]) for name in ("socket_timeout", "poll"))
            values["hold_down"] = max(_DEFAULTS["hold_down"], 2 * noticed)
        deadline = app.conf.get("beat_cron_starting_deadline")
        if deadline is not None:
            deadline = checked("beat_cron_starting_deadline", deadline, parse_seconds)
        return cls(**values, cron_starting_deadline=deadline)

    def __post_init__(self) -> None:
        """Refuse values that cannot work together."""
        if self.lease <= self.socket_timeout:
            raise self._clash("lease", "must be longer than redlock_beat_socket_timeout")
        if self.poll > self.lease / 2:
            raise self._clash("poll", "must be at most half of redlock_beat_lease")
        if self.seed and self.interlock:
            raise SettingError(
                f"{PREFIX}seed and {PREFIX}interlock name two schedulers that sent before: keep one"
            )
        if self.hold_down <= self.socket_timeout + self.poll:
            needed = "must be longer than redlock_beat_socket_timeout plus redlock_beat_poll"
            raise self._clash("hold_down", f"{needed} (left out, it is derived from them)")

    def _clash(self, name: str, rule: str) -> SettingError:
        durations = ("lease", "socket_timeout", "poll", "hold_down")
        present = ", ".join(f"{PREFIX}{each} = {getattr(self, each):g}" for each in durations)
        return SettingError(f"{PREFIX}{name} {rule}: change one of {present}")

    def __repr__(self) -> str:
        """Show every setting, but no password."""
        shown = {each.name: getattr(self, each.name) for each in fields(self)}
        shown["url"] = self.url and mask(self.url)
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def _find(app: Celery) -> dict[str, tuple[str, Any]]:
    """Return what is set, by field: the name as the user spelt it, and the value."""
    found = spelt_in(app, PREFIX)
    for name, (key, _) in found.items():
        if name not in PARSERS:
            raise SettingError(_unknown(key, name))
    return found


def _unknown(key: str, name: str) -> str:
    near = difflib.get_close_matches(name, PARSERS, n=1)
    known = near or list(PARSERS)
    spelt = [
        key[: len(key) - len(name)] + (each.upper() if key.isupper() else each) for each in known
    ]
    return f"{key} is no setting: " + (
        f"did you mean {spelt[0]}?" if near else f"there are {', '.join(spelt)}"
    )


def _name_of(app: Celery) -> str:
    """Return the app's own name as its namespace; tell an app without one, once."""
    if app.main and app.main != "__main__":
        key = f"{PREFIX}namespace (by default the app's name)"
        return str(checked(key, app.main, parse_namespace))
    app = getattr(app, "_get_current_object", lambda: app)()  # a proxy cannot be remembered weakly
    if app not in _told_nameless:
        _told_nameless.add(app)
        logger.warning(
            "The app has no name, so its namespace is %r: two such apps on one Redis would take "
            "each other's ticks. Name it, as in Celery('shop'), or set %snamespace.",
            NAMELESS,
            PREFIX,
        )
    return NAMELESS


_DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Settings)}
