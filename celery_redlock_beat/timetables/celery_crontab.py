"""Celery's crontab as a timetable: the ticks of a stock beat that nothing disturbs.

Celery itself computes every instant, on a model of ours; the user's object is never called.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from celery.schedules import crontab

from celery_redlock_beat.ticks import Micros, to_micros
from celery_redlock_beat.timetables.crontab_fields import WHOLE, CrontabFields
from celery_redlock_beat.timetables.walk import HOUR, Stretch, Walked
from celery_redlock_beat.timetables.zones import Change, Zone, zone_of


@dataclass(frozen=True)
class CeleryCrontab(Walked):
    """The instants of a ``celery.schedules.crontab``, by its five expanded fields and its zone.

    Around a change of UTC offset they are those of the stock beat of the installed Celery: where
    clocks go back it skips the second pass, where they go forward it shifts what lies in the gap.

    ``tz`` is only needed for a zone whose name cannot be loaded.
    """

    fields: CrontabFields
    zone: str
    tz: dt.tzinfo | None = field(default=None, compare=False, repr=False)
    _place: Zone = field(init=False, compare=False, repr=False)
    _model: dict[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        place = zone_of(self.zone) if self.tz is None else Zone(self.zone, self.tz)
        model = crontab(**{name: self._spec(name) for name in WHOLE})
        # Both are cached properties that would otherwise ask the current app.
        model.tz, model.utc_enabled = place.tz, True
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_model", vars(model))

    @staticmethod
    def of(schedule: crontab, zone: Zone) -> CeleryCrontab:
        """Return the timetable of a crontab that is told in ``zone``."""
        return _made(CrontabFields.of(schedule), zone)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when a field or the zone does."""
        return f"crontab:{self.fields.text}:{self.zone}"

    @property
    def place(self) -> Zone:
        """The zone in which the fields are told."""
        return self._place

    def step(self, moment: Micros) -> Micros | None:
        """Return the next instant after ``moment``, reliable up to the next stretch."""
        last = self._place.local(moment)
        try:
            tick = last.astimezone(dt.UTC) + self._at(last).remaining_estimate(last)
        except (RuntimeError, OverflowError, ValueError):  # no such date, or the year 10000
            return None
        return to_micros(tick)

    def stretch(self, change: Change) -> Stretch:
        """Return the hours around a change of offset.

        An instant in a gap is shifted by as much as clocks are; a day long gap has existed.
        """
        reach = max(3 * HOUR, abs(change.shift) + HOUR)
        return Stretch(change.at - reach, change.at + reach)

    def _at(self, now: dt.datetime) -> crontab:
        """Return a fresh crontab whose clock stands still at ``now``.

        Celery before 5.7 compares the date of its clock with that of the last run, so ``now`` has
        to be the last run itself.
        """
        frozen = crontab.__new__(crontab)
        vars(frozen).update(self._model, nowfun=lambda: now)
        return frozen

    def _spec(self, name: str) -> Any:
        # Celery takes a shorter way for the literal star.
        return "*" if self.fields.is_whole(name) else set(getattr(self.fields, name))


@lru_cache(maxsize=4096)
def _made(fields: CrontabFields, zone: Zone) -> CeleryCrontab:
    # Making one costs 200 µs, and entries on one crontab are many.
    return CeleryCrontab(fields, zone.name, zone.tz)
