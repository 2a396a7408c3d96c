"""What one instant costs, per kind of schedule: Celery's own computation, and this one's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.schedules import crontab, schedule, solar
from passes import START, Stopwatch, forget

from celery_redlock_beat.ticks import SECOND, to_datetime
from celery_redlock_beat.timetables import Terms, cron, rrule, timetable_for

MOMENTS = [START + number * 90_421 * SECOND for number in range(700)]  # two years, day by day
STOCK = (schedule, crontab, solar)


@dataclass
class Instant:
    """Microseconds per question: to stock Celery, asked for the first time, and asked again."""

    name: str
    stock: float | None
    first: float
    again: float


def measure() -> list[Instant]:
    """Measure each kind that can be had here."""
    app = Celery("bench", broker="memory://", set_as_current=False)
    app.conf.timezone = "Europe/Berlin"
    kinds = [
        ("interval", schedule(timedelta(minutes=5), app=app), Terms()),
        ("relative interval", schedule(timedelta(hours=1), relative=True, app=app), Terms()),
        ("crontab", crontab(minute="5", hour="3", app=app), Terms()),
        ('crontab, dst="real"', crontab(minute="5", hour="3", app=app), Terms(dst="real")),
        ("cron string", cron("5 3 * * *"), Terms()),
        ("recurrence rule", rrule("FREQ=DAILY;BYHOUR=3;BYMINUTE=5"), Terms()),
    ]
    with suppress(ImportError):  # as Celery's own error is, where there is no ephem
        kinds.append(("solar", solar("sunset", 52.5, 13.4, app=app), Terms()))
    return [_instant(app, *kind) for kind in kinds]


def _instant(app: Celery, name: str, spec: Any, terms: Terms) -> Instant:
    stock = None
    if isinstance(spec, STOCK) and terms.dst is None:
        stock = _each(spec.remaining_estimate, [to_datetime(moment) for moment in MOMENTS])
    forget()
    table = timetable_for(spec, app, terms)
    first, again = (_each(table.next_after, MOMENTS) for _ in range(2))
    return Instant(name, stock, first, again)


def _each(question: Callable[[Any], object], asked: list[Any]) -> float:
    with Stopwatch() as watch:
        for each in asked:
            question(each)
    return watch.seconds / len(asked) * SECOND
