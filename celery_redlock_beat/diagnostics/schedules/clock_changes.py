"""What a local clock does around an instant, in words; it knows no entry and asks no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import span
from celery_redlock_beat.diagnostics.schedules.cron_fields import fields_of
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import Bounded
from celery_redlock_beat.timetables.zones import DAY, changes_near

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.ticks import Micros, Timetable
    from celery_redlock_beat.timetables.zones import Change, Zone

MINUTE: Micros = 60 * SECOND
MOST_NAMED = 3


def moved(zone: Zone, before: Micros, at: Micros) -> Iterator[str]:
    """Yield by how much clocks are set otherwise at an instant than at one before."""
    by = zone.offset(at) - zone.offset(before)
    if by:
        yield f"clocks have gone {'forward' if by > 0 else 'back'} by {span(abs(by))}"


def repeated(zone: Zone, at: Micros) -> Iterator[str]:
    """Yield which pass it is where the clock shows one time twice."""
    for change in changes_near(zone, at // DAY):
        if change.at <= at < change.at - change.shift:
            yield "second pass"
        elif change.at + change.shift <= at < change.at:
            yield "first pass"


def shifted(table: Timetable, zone: Zone, at: Micros) -> Iterator[str]:
    """Yield that a tick of a cron string or a crontab stands for times that the clock leaves out.

    It does where the clock shows nothing that the fields name, after times that they name were
    left out.
    """
    inner = table.inner if isinstance(table, Bounded) else table
    fields, local = fields_of(inner), zone.local(at)
    if fields is None or (local.hour in fields.hours and local.minute in fields.minutes):
        return
    for change in changes_near(zone, at // DAY):
        if change.at <= at < change.at + max(change.shift, 0):
            gap = [
                f"{hour:02}:{minute:02}"
                for hour, minute in _left_out(zone, change)
                if hour in fields.hours and minute in fields.minutes
            ]
            if gap:
                names = ", ".join(gap) if len(gap) <= MOST_NAMED else f"{gap[0]} to {gap[-1]}"
                yield f"shifted: {names} {'does' if len(gap) == 1 else 'do'} not exist"


def _left_out(zone: Zone, change: Change) -> Iterator[tuple[int, int]]:
    """Yield each hour and minute that the clock leaves out."""
    begin = change.at + zone.offset(change.at) - change.shift
    for wall in range(begin, begin + min(change.shift, DAY), MINUTE):
        minutes = wall % DAY // MINUTE
        yield minutes // 60, minutes % 60
