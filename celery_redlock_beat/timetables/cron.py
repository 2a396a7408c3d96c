"""Cron strings in Debian's meaning, over CronSim; it never asks what time it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cronsim import CronSim

from celery_redlock_beat.timetables.cron_expression import meaning, normalised
from celery_redlock_beat.timetables.debian import Debian
from celery_redlock_beat.timetables.hashed import chosen
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.timetables.own_schedule import OwnSchedule
from celery_redlock_beat.timetables.zones import Zone, zone_of

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True)
class Cron(Debian):
    """The instants of a cron expression of 5 or 6 fields (the first of 6 is the second) in a zone.

    Five fields of which neither the minute nor the hour begins with ``*`` are fixed times.  Only
    plain fields will do; ``read_cron`` also reads nicknames and H.

    ``tz`` is only needed for a zone whose name cannot be loaded.
    """

    expression: str
    zone: str
    tz: dt.tzinfo | None = field(default=None, compare=False, repr=False)
    fixed: bool = field(init=False, compare=False, repr=False)
    _place: Zone = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        expression = chosen(normalised(self.expression), name="")
        *seconds, minute, hour, _, _, _ = expression.split()
        fixed = not (seconds or minute.startswith("*") or hour.startswith("*"))
        place = zone_of(self.zone) if self.tz is None else Zone(self.zone, self.tz)
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "fixed", fixed)
        object.__setattr__(self, "_place", place)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the expression or the zone does."""
        return f"cron:{self.expression}:{self.zone}"

    @property
    def place(self) -> Zone:
        """The zone in which the expression is told."""
        return self._place

    def wall_after(self, wall: dt.datetime) -> dt.datetime:
        """Return the first match after what a clock shows."""
        return next(CronSim(self.expression, wall))


def read_cron(expression: str, zone: Zone, name: str = "") -> Cron | Interval:
    """Return the timetable of a cron string as users write it.

    Arguments:
        expression: 5 or 6 fields, a nickname such as ``@daily``, or ``@every`` with a duration.
        zone: Where its fields are told.
        name: The name of the entry, which chooses what an H is.

    Raises:
        ConfigurationError: It is not valid, never fires, or has an H while there is no name.

    """
    said = meaning(expression)
    if isinstance(said, int):
        return Interval(said)
    return _made(chosen(said, name), zone)


@lru_cache(maxsize=4096)
def _made(expression: str, zone: Zone) -> Cron:
    return Cron(expression, zone.name, zone.tz)


class cron(OwnSchedule):  # noqa: N801  (named as Celery's crontab)
    """Schedule by a cron string, as ``cron("*/5 9-17 * * MON-FRI", timezone="Europe/Berlin")``.

    Arguments:
        expression: 5 fields, or 6 with the second in front; a nickname such as ``@daily``; or
            ``@every`` with a duration, as ``@every 90s``.  An H in a field is a value that the
            name of the entry chooses, so it is only known where there is an entry.
        timezone: An IANA name or a tzinfo; by default the app's ``timezone`` setting.

    Raises:
        ConfigurationError: The expression or the zone is not valid, or it never fires.

    """

    def __init__(
        self,
        expression: str,
        timezone: str | dt.tzinfo | None = None,
        *,
        nowfun: Callable[[], dt.datetime] | None = None,
        app: Any = None,
    ) -> None:
        super().__init__(nowfun=nowfun, app=app)
        self.expression = expression
        self.timezone = timezone
        zone = None if timezone is None else zone_of(timezone).name
        self._key = ("cron", meaning(expression), zone)

    def timetable(self, zone: Zone | None = None, name: str = "") -> Cron | Interval:
        """Return its timetable in a zone, its own or the app's, for the entry of that name."""
        return read_cron(self.expression, zone or self._zone(), name)

    def __repr__(self) -> str:
        zone = f" {self._key[-1]}" if self._key[-1] else ""
        return f"<cron: {self.expression}{zone}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.expression, self.timezone, self.nowfun)


def _restore(cls: type[cron], expression: str, timezone: Any, nowfun: Any) -> cron:
    return cls(expression, timezone, nowfun=nowfun)
