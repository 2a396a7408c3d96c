"""What a local clock shows as instants, in the manner of Debian's cron; knows no kind of schedule.

It must not read a clock: it asks a zone what its clocks show.
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, Micros, to_datetime, to_micros
from celery_redlock_beat.timetables.walk import MINUTE, Stretch, Walked

if TYPE_CHECKING:
    from celery_redlock_beat.timetables.zones import Change

_MINUTE = dt.timedelta(minutes=1)


class Debian(Walked):
    """A timetable told by the local clock, as Debian's cron does where its offset changes.

    Fixed times fire once per matching local day: in the first of two passes where clocks go back,
    at the end of the gap where they go forward.  All others fire whenever the local clock shows a
    match, thus in both passes, and not in a gap.
    """

    fixed: bool

    @abstractmethod
    def wall_after(self, wall: dt.datetime) -> dt.datetime:
        """Return the first match after what a clock shows, both naive, on a whole second.

        Raises:
            StopIteration: There is none within 50 years.
            ValueError: There is none before the year 10000; or ``OverflowError``.

        """

    def step(self, moment: Micros) -> Micros | None:
        """Return the next instant after ``moment``, reliable up to the next stretch."""
        try:
            return self._step_fixed(moment) if self.fixed else self._step_elapsed(moment)
        except (StopIteration, OverflowError, ValueError):
            return None

    def stretch(self, change: Change) -> Stretch:
        """Return the second pass of a repeated hour, where a fixed time does not fire again.

        A gap only matters for its first minute, which is where fixed times within it fire.  Others
        begin anew at the change itself: the stretch is empty.
        """
        if not self.fixed:
            return Stretch(change.at, change.at)
        return Stretch(change.at, change.at + max(-change.shift, MINUTE))

    def _step_fixed(self, moment: Micros) -> Micros:
        wall = self.wall_after(self.place.local(moment).replace(tzinfo=None))
        while self._is_in_gap(wall):
            wall += _MINUTE
        return self._first_pass(wall)

    def _step_elapsed(self, moment: Micros) -> Micros:
        """Walk the wall clock of the offset in force, and only then ask the zone when that is.

        Stepping by elapsed time from a rounded local hour, as CronSim does when given a zone,
        passes over instants where clocks move by less than an hour.
        """
        candidate = (moment // SECOND + 1) * SECOND
        offset = self.place.offset(candidate)
        shown = to_datetime(candidate + offset - SECOND).replace(tzinfo=None)
        wall = self.wall_after(shown)
        first_pass = self._first_pass(wall)
        return first_pass if first_pass > moment else _as_utc(wall) - offset

    def _first_pass(self, wall: dt.datetime) -> Micros:
        return to_micros(wall.replace(tzinfo=self.place.tz))

    def _is_in_gap(self, wall: dt.datetime) -> bool:
        return self.place.local(self._first_pass(wall)).replace(tzinfo=None) != wall


def _as_utc(wall: dt.datetime) -> Micros:
    return to_micros(wall.replace(tzinfo=dt.UTC))
