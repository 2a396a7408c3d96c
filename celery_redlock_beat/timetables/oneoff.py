"""One instant as a timetable and as a schedule, also out of django-celery-beat's; asks no clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.setting_values import parse_instant
from celery_redlock_beat.ticks import Count, Micros, to_micros
from celery_redlock_beat.timetables.own_schedule import OwnSchedule
from celery_redlock_beat.timetables.walk import CEILING, FLOOR
from celery_redlock_beat.timetables.wall import instant_showing
from celery_redlock_beat.timetables.zones import UTC_ZONE, Zone, zone_of

_CLOCKED = ("django_celery_beat.clockedschedule", "clocked")


@dataclass(frozen=True)
class Once:
    """The single instant ``at``."""

    at: Micros

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the instant does."""
        return f"once:{self.at}"

    def next_after(self, moment: Micros) -> Micros | None:
        """Return the instant if it is later than ``moment``."""
        return self.at if moment < self.at else None

    def latest_until(self, moment: Micros) -> Micros | None:
        """Return the instant if it is not later than ``moment``."""
        return self.at if self.at <= moment else None

    def count_between(self, after: Micros, before: Micros) -> Count:
        """Count one if the instant is strictly between two moments."""
        return Count(int(after < self.at < before))


def instant_of(value: dt.datetime | str, zone: Zone) -> Micros:
    """Return the instant of a datetime, or of its ISO 8601 text; without an offset in ``zone``.

    A time in a gap is shifted by the gap's length.  In a repeated hour it is that of the first
    pass, unless a datetime has ``fold=1``.

    Raises:
        ConfigurationError: It is something else, has no time of day, or is too far away.

    """
    told = _told(value)
    if told.utcoffset() is not None:
        return to_micros(told)
    return instant_showing(zone, _wall(told), told.fold)


def _told(value: object) -> dt.datetime:
    try:
        told = parse_instant(value)
    except ValueError as problem:
        raise ConfigurationError(f"{value!r} {problem}") from None
    if not FLOOR <= _wall(told) <= CEILING:
        raise ConfigurationError(
            f"{value!r} is at an end of the calendar; use a nearer date, or leave it out"
        )
    return told


def _wall(told: dt.datetime) -> Micros:
    return to_micros(told.replace(tzinfo=dt.UTC))


def clocked_at(spec: object) -> dt.datetime | None:
    """Return the instant of django-celery-beat's ``clocked``, aware; ``None`` for all else.

    A naive one is in UTC, as its constructor has it.
    """
    if (type(spec).__module__, type(spec).__qualname__) != _CLOCKED:
        return None
    at = getattr(spec, "clocked_time", None)
    if not isinstance(at, dt.datetime):
        return None
    return at if at.utcoffset() is not None else at.replace(tzinfo=dt.UTC)


class once(OwnSchedule):  # noqa: N801  (named as Celery's crontab)
    """Schedule a single run, as ``once("2026-12-24T18:00", timezone="Europe/Berlin")``.

    Arguments:
        at: A datetime, or its ISO 8601 text.  A time in a gap is shifted by the gap's length, one
            in a repeated hour is that of the first pass, unless a datetime has ``fold=1``.
        timezone: Where ``at`` has no offset: an IANA name or a tzinfo; by default the app's
            ``timezone`` setting.

    Raises:
        ConfigurationError: The time or the zone is not valid.

    """

    def __init__(
        self,
        at: dt.datetime | str,
        timezone: str | dt.tzinfo | None = None,
        *,
        nowfun: Callable[[], dt.datetime] | None = None,
        app: Any = None,
    ) -> None:
        super().__init__(nowfun=nowfun, app=app)
        self.at = _told(at)
        self.timezone = timezone
        self._key = ("once", self._identity())

    def timetable(self, zone: Zone | None = None) -> Once:
        """Return the timetable of this schedule in a zone; by default its own, or the app's."""
        return Once(instant_of(self.at, zone or self._zone()))

    def _identity(self) -> object:
        """Return what it is equal by: the instant, or, while no zone is known, the time told."""
        if self.timezone is None and self.at.utcoffset() is None:
            return _wall(self.at), self.at.fold
        return instant_of(self.at, UTC_ZONE if self.timezone is None else zone_of(self.timezone))

    def __repr__(self) -> str:
        zone = "" if self.timezone is None else f" {zone_of(self.timezone).name}"
        return f"<once: {self.at.isoformat()}{zone}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.at, self.timezone, self.nowfun)


def _restore(cls: type[once], at: dt.datetime, timezone: Any, nowfun: Any) -> once:
    return cls(at, timezone, nowfun=nowfun)
