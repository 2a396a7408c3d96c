"""Cron strings in Debian's meaning, over CronSim; computes instants and never asks what time it is.

Only ``cron.is_due``, which stock beat calls, looks at the clock that Celery gave it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from celery.schedules import BaseSchedule, schedstate
from cronsim import CronSim

from celery_redlock_beat.ticks import SECOND, Micros, to_datetime, to_micros
from celery_redlock_beat.timetables.cron_expression import normalised
from celery_redlock_beat.timetables.walk import MINUTE, Stretch, Walked
from celery_redlock_beat.timetables.zones import Change, Zone, zone_of

_MICROSECOND = dt.timedelta(microseconds=1)
_NEVER = dt.timedelta(days=36_500)


@dataclass(frozen=True)
class Cron(Walked):
    """The instants of a cron expression of 5 or 6 fields (the first of 6 is the second) in a zone.

    Five fields with a fixed minute and a fixed hour fire once per matching local day: in the first
    of two passes where clocks go back, at the end of the gap where they go forward.  All others
    fire whenever the local clock shows a match, thus in both passes, and not in a gap.

    ``tz`` is only needed for a zone whose name cannot be loaded.
    """

    expression: str
    zone: str
    tz: dt.tzinfo | None = field(default=None, compare=False, repr=False)
    _place: Zone = field(init=False, compare=False, repr=False)
    _fixed: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        expression = normalised(self.expression)
        *seconds, minute, hour, _, _, _ = expression.split()
        fixed = not (seconds or minute.startswith("*") or hour.startswith("*"))
        place = zone_of(self.zone) if self.tz is None else Zone(self.zone, self.tz)
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "_fixed", fixed)
        object.__setattr__(self, "_place", place)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when the expression or the zone does."""
        return f"cron:{self.expression}:{self.zone}"

    @property
    def place(self) -> Zone:
        """The zone in which the expression is told."""
        return self._place

    def step(self, moment: Micros) -> Micros | None:
        """Return the next instant after ``moment``, reliable up to the next stretch."""
        try:
            return self._step_fixed(moment) if self._fixed else self._step_elapsed(moment)
        except (StopIteration, OverflowError, ValueError):  # 50 years without one; the year 10000
            return None

    def stretch(self, change: Change) -> Stretch:
        """Return the second pass of a repeated hour, where a fixed time does not fire again.

        A gap only matters for its first minute, which is where fixed times within it fire.  Other
        expressions begin anew at the change itself: the stretch is empty.
        """
        if not self._fixed:
            return Stretch(change.at, change.at)
        return Stretch(change.at, change.at + max(-change.shift, MINUTE))

    def _step_fixed(self, moment: Micros) -> Micros:
        return to_micros(next(CronSim(self.expression, self._place.local(moment))))

    def _step_elapsed(self, moment: Micros) -> Micros:
        """Walk the wall clock of the offset in force, and only then ask the zone when that is.

        Given a zone, CronSim steps by whole elapsed hours from a rounded local hour, and so passes
        over instants where clocks move by less than an hour.
        """
        candidate = (moment // SECOND + 1) * SECOND
        offset = self._place.offset(candidate)
        wall = next(CronSim(self.expression, to_datetime(candidate + offset - SECOND)))
        first_pass = to_micros(wall.replace(tzinfo=self._place.tz))
        return first_pass if first_pass > moment else to_micros(wall) - offset


class cron(BaseSchedule):  # type: ignore[misc]  # noqa: N801  (named as Celery's crontab)
    """Schedule by a cron string, as ``cron("*/5 9-17 * * MON-FRI", timezone="Europe/Berlin")``.

    Arguments:
        expression: 5 fields, or 6 with the second in front.
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
        self._key = (normalised(expression), zone)

    @property
    def tz(self) -> dt.tzinfo:
        """The zone in which the expression is told."""
        return self._zone(self.app).tz

    def timetable(self, app: Any = None) -> Cron:
        """Return the timetable of this schedule within an app."""
        place = self._zone(app or self.app)
        return Cron(self.expression, place.name, place.tz)

    def _zone(self, app: Any) -> Zone:
        return zone_of(app.timezone if self.timezone is None else self.timezone)

    def remaining_estimate(self, last_run_at: dt.datetime) -> dt.timedelta:
        """Return how long it is from now to the first instant after ``last_run_at``."""
        last = to_micros(self.maybe_make_aware(last_run_at))
        following = self.timetable().next_after(last)
        if following is None:
            return _NEVER
        return (following - to_micros(self.maybe_make_aware(self.now()))) * _MICROSECOND

    def is_due(self, last_run_at: dt.datetime) -> tuple[bool, float]:
        """Return whether it is due, and in how many seconds to ask again."""
        remaining = self.remaining_estimate(last_run_at)
        due = remaining <= dt.timedelta(0)
        if due:
            remaining = self.remaining_estimate(self.now())
        answer: tuple[bool, float] = schedstate(due, max(remaining.total_seconds(), 0))
        return answer

    def __eq__(self, other: object) -> bool:
        if isinstance(other, cron):
            return self._key == other._key and self.nowfun == other.nowfun
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        zone = f" {self._key[1]}" if self._key[1] else ""
        return f"<cron: {self.expression}{zone}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.expression, self.timezone, self.nowfun)


def _restore(cls: type[cron], expression: str, timezone: Any, nowfun: Any) -> cron:
    return cls(expression, timezone, nowfun=nowfun)
