"""Rules and dates in one zone: rows of local times become instants; reads no clock and no text.

Rules are walked on what a clock shows, and only then is each time put into the zone, as RFC 5545
has it: a time in a gap is told in the offset before, a repeated one is the first of both.
"""

from __future__ import annotations

import datetime as dt
import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import Micros, to_datetime, to_micros
from celery_redlock_beat.timetables.walk import CEILING, FLOOR
from celery_redlock_beat.timetables.wall import instant_showing
from celery_redlock_beat.timetables.zones import DAY, Zone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.timetables.rule.recurrence import Recurrence

_EXCLUDED = 100_000
_FIRST, _LAST = dt.datetime.min, dt.datetime.max  # noqa: DTZ901 (local times)


@dataclass(frozen=True)
class RuleSet:
    """The times of rules and dates that are not times of exrules and exdates, in a zone.

    Dates are local times, ascending.  ``again`` are instants in the second pass of a repeated
    hour, for which there is no local time.  An exdate is a local time, a whole day or an instant.
    """

    place: Zone
    rules: tuple[Recurrence, ...]
    exrules: tuple[Recurrence, ...]
    dates: tuple[dt.datetime, ...]
    again: tuple[Micros, ...]
    exdates: frozenset[dt.date | Micros]

    def fires(self) -> bool:
        """Tell whether there is any instant.

        Raises:
            ConfigurationError: The exrules leave out all times of a rule.

        """
        rules = self.rules if self.exrules else ()
        alone = (replace(self, rules=(rule,), dates=(), again=()) for rule in rules)
        return [next(each.instants(FLOOR), None) for each in (*alone, self)][-1] is not None

    def instants(self, after: Micros) -> Iterator[Micros]:
        """Yield the instants later than ``after``, ascending."""
        again = self.again[bisect_right(self.again, after) :]
        for instant in heapq.merge(self._in_order(self._walls(self._wall_by(after))), again):
            if instant > after and instant not in self.exdates:
                yield instant
                after = instant

    def _wall_by(self, after: Micros) -> dt.datetime:
        """Return a local time before which all are of instants up to ``after``.

        What a gap shifts lies within a day of it, and is told in the offset before.
        """
        offset = min(self.place.offset(after), self.place.offset(after - DAY))
        return to_datetime(after + offset).replace(tzinfo=None)

    def _in_order(self, walls: Iterator[dt.datetime]) -> Iterator[Micros]:
        """Turn local times into instants; those in a gap come among those that follow the gap."""
        held: deque[tuple[Micros, Micros]] = deque()
        for wall in walls:
            told = micros_of(wall)
            if told >= CEILING:
                break
            instant = self._instant(wall)
            while held and held[0][0] <= told:
                yield held.popleft()[1]
            shown = instant + self.place.offset(instant)
            if shown == told:
                yield instant
            else:
                held.append((shown, instant))
        yield from (instant for _, instant in held)

    def _walls(self, since: dt.datetime) -> Iterator[dt.datetime]:
        dates = self.dates[bisect_left(self.dates, since) :]
        walls = heapq.merge(dates, *(self._of(rule, since) for rule in self.rules))
        for wall in self._without_exrules(walls) if self.exrules else walls:
            if wall not in self.exdates and wall.date() not in self.exdates:
                yield wall

    def _without_exrules(self, walls: Iterator[dt.datetime]) -> Iterator[dt.datetime]:
        row: Iterator[dt.datetime] = iter(())
        excluded, run = _FIRST, 0
        for wall in walls:
            if excluded < wall:
                excluded = next(row, excluded)
            if excluded < wall:  # it is dense, or we leapt
                row = heapq.merge(*(self._of(rule, wall) for rule in self.exrules))
                excluded = next(row, _LAST)
            if excluded != wall:
                run = 0
                yield wall
            elif (run := run + 1) > _EXCLUDED:
                raise ConfigurationError(
                    f"its EXRULE leaves out more than {_EXCLUDED} times in a row; "
                    "have the RRULE say what remains"
                )

    def _of(self, rule: Recurrence, since: dt.datetime) -> Iterator[dt.datetime]:
        for wall in rule.since(since):
            if rule.until_at is None or self._instant(wall) <= rule.until_at:
                yield wall

    def _instant(self, wall: dt.datetime) -> Micros:
        return instant_showing(self.place, micros_of(wall))


def micros_of(wall: dt.datetime) -> Micros:
    """Return a local time as microseconds, as if it were UTC."""
    return to_micros(wall.replace(tzinfo=dt.UTC))
