"""What RedBeat's settings say, and an answer to each that has no effect; it connects nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import SettingError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.setting_names import spelt_in
from celery_redlock_beat.setting_values import checked, mask, optional, parse_seconds
from celery_redlock_beat.settings import PREFIX as OURS
from celery_redlock_beat.store.redbeat import (
    OF_SERVERS,
    PASSED_ON,
    PREFIX,
    RedBeatPlace,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery import Celery

    Found = Mapping[str, tuple[str, Any]]

NAMES = ("redis_url", "redis_options", "redis_use_ssl", "key_prefix", "lock_key", "lock_timeout")
"""All that RedBeat 2.x reads, behind ``redbeat_``."""
KEY_PREFIX = "redbeat:"


@dataclass(frozen=True, slots=True, repr=False)
class RedBeatSettings:
    """Where RedBeat's data is, as RedBeat itself would find it.

    ``lock_key`` is ``None`` where the lock is switched off; ``lock_timeout`` is in seconds, and
    ``None`` where RedBeat derives it. ``answers`` are lines about settings without effect.
    """

    place: RedBeatPlace
    key_prefix: str = KEY_PREFIX
    lock_key: str | None = f"{KEY_PREFIX}:lock"
    lock_timeout: float | None = None
    answers: tuple[str, ...] = ()

    @classmethod
    def from_app(cls, app: Celery) -> RedBeatSettings:
        """Read the configuration of ``app``; raise ``SettingError`` for what cannot be meant."""
        found = spelt_in(app, PREFIX)
        place = place_of(app)
        prefix = _text(found, "key_prefix", KEY_PREFIX)
        return cls(
            place=place,
            key_prefix=KEY_PREFIX if prefix is None else prefix,
            lock_key=_lock_key(found, prefix),
            lock_timeout=_lock_timeout(found),
            answers=tuple(_answers(found, place, with_lock=_has_interlock(app))),
        )

    @property
    def url(self) -> str | None:
        """The URL as it was written, with its password; ``None`` where that is the broker's."""
        return self.place.url

    @property
    def schedule_key(self) -> str:
        """The sorted set of entries by when they are due next."""
        return f"{self.key_prefix}:schedule"

    @property
    def statics_key(self) -> str:
        """The set of the names of entries that come from code."""
        return f"{self.key_prefix}:statics"

    def __repr__(self) -> str:
        url = mask(self.url) if self.url else self.url
        return f"RedBeatSettings(url={url!r}, key_prefix={self.key_prefix!r})"


def _text(found: Found, name: str, otherwise: str | None) -> str | None:
    key, value = found.get(name, (name, otherwise))
    if value is not None and not isinstance(value, str):
        raise SettingError(f"{key} = {value!r} is no text: write one in quotes, or leave it out")
    return value


def _lock_key(found: Found, prefix: str | None) -> str | None:
    """Return the key of the lock as RedBeat makes it: behind its prefix, whatever was said."""
    prefix = KEY_PREFIX if prefix is None else prefix
    key = _text(found, "lock_key", f"{prefix}:lock")
    if not key:
        return None
    return key if key.startswith(prefix) else prefix + key


def _lock_timeout(found: Found) -> float | None:
    key, value = found.get("lock_timeout", ("", None))
    seconds: float | None = checked(key, value, optional(parse_seconds))
    return seconds or None


def _has_interlock(app: Celery) -> bool:
    _, value = spelt_in(app, OURS).get("interlock", ("", None))
    return bool(value == "redbeat")


def _answers(found: Found, place: RedBeatPlace, *, with_lock: bool) -> Iterator[str]:
    for name, (key, value) in found.items():
        if name not in NAMES:
            known = f"RedBeat has {', '.join(f'{PREFIX}{each}' for each in NAMES)}"
            meant = hint(f"{PREFIX}{name}", [f"{PREFIX}{each}" for each in NAMES], known)
            yield f"{key} has no effect: RedBeat has no such setting; {meant}"
        elif name in {"lock_key", "lock_timeout"} and not with_lock:
            yield (
                f"{key} has no effect: nodes need no lock to send each task once; while a RedBeat "
                f"still runs, set {OURS}interlock = 'redbeat'"
            )
        elif name == "lock_timeout":
            yield f"{key} has no effect: nodes hold the lock for some {OURS}lease, and renew it"
        elif name == "redis_options" and value:
            yield from _about_options(key, place)


def _about_options(key: str, place: RedBeatPlace) -> Iterator[str]:
    """Yield one line about the options that are not followed, if there are any."""
    parts = []
    if "retry_period" in place.options:
        parts.append("'retry_period' is not needed, since nodes connect anew by themselves")
    known = {*OF_SERVERS, *PASSED_ON, "retry_period"}
    others = sorted(
        str(name)
        for name in place.options
        if name not in known and not str(name).startswith("ssl_")
    )
    if others:
        parts.append(
            f"{', '.join(map(repr, others))} would change nothing in how we read and write"
        )
    if parts:
        yield f"{key} is followed but for this: {'; '.join(parts)}"
