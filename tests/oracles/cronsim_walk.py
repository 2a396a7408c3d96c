"""Cron strings by CronSim itself, and by what a local clock shows; must not know anything of ours.

CronSim 2.8 goes astray in some zones, so that there are two ways to ask.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from cronsim import CronSim

if TYPE_CHECKING:
    from collections.abc import Iterator

A_DAY = dt.timedelta(days=1)


class GotLost(Exception):
    """CronSim answers an instant before its question, or looks for one without end."""


class _Watched(CronSim):
    """CronSim that gives up where it would go round in circles."""

    steps = 0

    def tick(self, seconds: int = 1) -> None:
        self.steps += 1
        if self.steps > 20_000:
            raise GotLost
        super().tick(seconds)


def walk(expression: str, start: dt.datetime) -> Iterator[dt.datetime]:
    """Yield one instant after the other, beginning after ``start``, which is in a zone.

    Raises:
        GotLost: From here on it cannot go.

    """
    simulation, last = _Watched(expression, start), start
    while True:
        simulation.steps = 0
        found = next(simulation).astimezone(dt.UTC)
        if found <= last:
            raise GotLost
        yield found
        last = found


def shown(
    expression: str, tz: dt.tzinfo, start: dt.datetime, end: dt.datetime
) -> list[dt.datetime]:
    """Return the instants after ``start``, and up to ``end``, at which the clock shows a match.

    CronSim, which is told no zone, says what matches; the zone says when a clock shows it.
    """
    offsets = {each.astimezone(tz).utcoffset() for each in (start, end)}
    found = set()
    for wall in CronSim(expression, start.replace(tzinfo=None) - 2 * A_DAY):
        if wall > end.replace(tzinfo=None) + 2 * A_DAY:
            return sorted(found)
        for offset in offsets:
            at = (wall - offset).replace(tzinfo=dt.UTC)
            if start < at <= end and at.astimezone(tz).replace(tzinfo=None) == wall:
                found.add(at)
    return sorted(found)
