"""Celery's crontab by what local clocks show, as Debian's cron does; Celery computes nothing here.

A stock beat loses what a crontab has in the second pass of a repeated hour, every hour of
``crontab(minute=0)`` among it, and shifts what lies in a gap.  Here the fields mean what they mean
to Celery, and changes of offset what they mean to a cron string.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.timetables.crontab_fields import CrontabFields
from celery_redlock_beat.timetables.debian import Debian
from celery_redlock_beat.timetables.zones import Zone, zone_of

if TYPE_CHECKING:
    import datetime as dt

    from celery.schedules import crontab


@dataclass(frozen=True)
class RealCrontab(Debian):
    """The instants of a ``celery.schedules.crontab`` on the local clock of a zone.

    They are ``fixed`` times where neither the minute nor the hour is a wildcard.  A field is one as
    it is in a cron string: when it is written with a star in front, as ``"*"`` or ``"*/15"``.  So
    ``"0,15,30,45"`` and ``"0-59"`` are none, and may differ from ``"*/15"`` and ``"*"`` where an
    offset changes.  A set or list of numbers, which has no star to show, is one when it is whole.

    ``tz`` is only needed for a zone whose name cannot be loaded.
    """

    fields: CrontabFields
    fixed: bool
    zone: str
    tz: dt.tzinfo | None = field(default=None, compare=False, repr=False)
    _place: Zone = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        place = zone_of(self.zone) if self.tz is None else Zone(self.zone, self.tz)
        object.__setattr__(self, "_place", place)

    @staticmethod
    def of(schedule: crontab, zone: Zone) -> RealCrontab:
        """Return the timetable of a crontab that is told in ``zone``."""
        fields = CrontabFields.of(schedule)
        fixed = not any(_is_wildcard(schedule, fields, name) for name in ("minute", "hour"))
        return RealCrontab(fields, fixed, zone.name, zone.tz)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when a field, a wildcard or the zone does."""
        kind = "fixed" if self.fixed else "elapsed"
        return f"crontab-real:{self.fields.text}:{kind}:{self.zone}"

    @property
    def place(self) -> Zone:
        """The zone in which the fields are told."""
        return self._place

    def wall_after(self, wall: dt.datetime) -> dt.datetime:
        """Return the first match after what a clock shows."""
        return self.fields.wall_after(wall)


def _is_wildcard(schedule: crontab, fields: CrontabFields, name: str) -> bool:
    written = getattr(schedule, f"_orig_{name}", None)
    return written.startswith("*") if isinstance(written, str) else fields.is_whole(name)
