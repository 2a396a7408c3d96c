"""The fields of a cron string or a crontab as sets, and each spelt shortly; it knows no words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from cronsim import CronSim

from celery_redlock_beat.ticks import EPOCH
from celery_redlock_beat.timetables import CeleryCrontab, Cron, RealCrontab

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from celery_redlock_beat.ticks import Timetable
    from celery_redlock_beat.timetables import Opaque
    from celery_redlock_beat.timetables.crontab_fields import CrontabFields

SIXTY, HOURS, DAYS, MONTHS, WEEKDAYS = (
    range(60),
    range(24),
    range(1, 32),
    range(1, 13),
    range(7),  # from Sunday
)
SHORTEST_RUN = 3  # of neighbours: two are shorter told one by one
SHORTEST_STEPS = 5  # of evenly spaced values: up to four are clearer told one by one
_LAST = {CronSim.LAST: "L", CronSim.LAST_WEEKDAY: "LW"}


@dataclass(frozen=True, slots=True)
class CronFields:
    """When a cron string or a crontab fires, by what a local clock shows.

    ``last_days`` are those days of a month that have no number, as ``L``; ``nth_weekdays`` those
    weekdays that do not count in each week, as ``1#2``. ``both`` tells whether a day must be among
    the days and among the weekdays, or in either.
    """

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    last_days: tuple[str, ...] = ()
    nth_weekdays: tuple[str, ...] = ()
    both: bool = True

    @property
    def any_day(self) -> bool:
        """Whether the days of the month leave none out."""
        return self.days.issuperset(DAYS)

    @property
    def any_weekday(self) -> bool:
        """Whether the weekdays leave none out."""
        return self.weekdays.issuperset(WEEKDAYS)


def fields_of(table: Timetable | Opaque) -> CronFields | None:
    """Return the fields of a timetable that has some."""
    if isinstance(table, Cron):
        return _of_cron(table.expression)
    if isinstance(table, CeleryCrontab | RealCrontab):
        return _of_crontab(table.fields)
    return None


def spelled(values: Iterable[int], whole: Sequence[int], *, around: bool = False) -> str:
    """Return values as a field: a star, steps, a range, or a list of values and ranges.

    ``around`` lets a range run over the end. Steps of a star are only those that do so evenly.
    """
    chosen = sorted(values)
    if len(chosen) == len(whole):
        return "*"
    step = _even_step(chosen)
    if step > 1 and chosen[0] == whole[0] and step * len(chosen) == len(whole):
        return f"*/{step}"
    if step > 1 and len(chosen) >= SHORTEST_STEPS:
        return f"{chosen[0]}-{chosen[-1]}/{step}"
    return listed(chosen, whole, around=around)


def listed(values: Iterable[int], whole: Sequence[int], *, around: bool = False) -> str:
    """Return values as a star, a range, or a list of values and ranges, but never as steps."""
    chosen = sorted(values)
    if len(chosen) == len(whole):
        return "*"
    return ",".join(_spelled_run(run) for run in _runs(chosen, whole if around else None))


def as_ranges(values: Iterable[int], whole: Sequence[int], *, around: bool = False) -> str:
    """Return values as ranges, be they of one value: spans of time, and not times."""
    runs = _runs(sorted(values), whole if around else None)
    return ",".join(f"{run[0]}-{run[-1]}" for run in runs)


def _of_cron(expression: str) -> CronFields:
    read = CronSim(expression, EPOCH)
    plain = frozenset(day % 7 for day in read.weekdays if isinstance(day, int))
    nth = sorted(day for day in read.weekdays if not isinstance(day, int))
    return CronFields(
        seconds=frozenset(read.seconds),
        minutes=frozenset(read.minutes),
        hours=frozenset(read.hours),
        days=frozenset(read.days - _LAST.keys()),
        months=frozenset(read.months),
        weekdays=plain,
        last_days=tuple(name for number, name in _LAST.items() if number in read.days),
        nth_weekdays=tuple(
            f"{day % 7}L" if number == CronSim.LAST else f"{day % 7}#{number}"
            for day, number in nth
        ),
        both=read.day_and,
    )


def _of_crontab(fields: CrontabFields) -> CronFields:
    return CronFields(
        seconds=frozenset({0}),
        minutes=fields.minute,
        hours=fields.hour,
        days=fields.day_of_month,
        months=fields.month_of_year,
        weekdays=fields.day_of_week,
    )


def _even_step(chosen: Sequence[int]) -> int:
    """Return the one distance between neighbours, or 0 where there is none."""
    distances = {later - earlier for earlier, later in pairwise(chosen)}
    return distances.pop() if len(distances) == 1 else 0


def _runs(chosen: Sequence[int], whole: Sequence[int] | None = None) -> list[list[int]]:
    """Return values in runs of neighbours; given the ``whole``, its two ends are such."""
    runs: list[list[int]] = []
    for value in chosen:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    if whole and len(runs) > 1 and (runs[0][0], runs[-1][-1]) == (whole[0], whole[-1]):
        runs = [*runs[1:-1], runs[-1] + runs[0]]
    return runs


def _spelled_run(run: Sequence[int]) -> str:
    if len(run) < SHORTEST_RUN:
        return ",".join(map(str, run))
    return f"{run[0]}-{run[-1]}"
