"""The table of docs/time.md is what the code says."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from celery_redlock_beat import cron, once, rrule
from celery_redlock_beat.ticks import to_datetime, to_micros
from celery_redlock_beat.timetables import Terms, timetable_for

PAGE = Path(__file__).parents[2] / "docs" / "time.md"
BERLIN = ZoneInfo("Europe/Berlin")
APP = Celery("shop", set_as_current=False, timezone="Europe/Berlin")
NIGHTS = {
    "spring": ("2026-03-29T01:00", "2026-03-29T04:00"),
    "autumn": ("2026-10-25T01:00", "2026-10-25T04:00"),
}
REAL = Terms(dst="real")
HALF_HOURS = "BYMINUTE=0,30"
ROWS = [
    ("`1800` (an interval)", 1800, Terms()),
    ('`"*/30 * * * *"`', cron("*/30 * * * *"), Terms()),
    ('`crontab(minute="*/30")`', crontab(minute="*/30"), Terms()),
    ('`crontab(minute="*/30")`, `"dst": "real"`', crontab(minute="*/30"), REAL),
    ('`rrule("FREQ=HOURLY;BYMINUTE=0,30")`', rrule(f"FREQ=HOURLY;{HALF_HOURS}"), Terms()),
    ('`"30 2 * * *"`', cron("30 2 * * *"), Terms()),
    ("`crontab(minute=30, hour=2)`", crontab(minute=30, hour=2), Terms()),
    ('`crontab(minute=30, hour=2)`, `"dst": "real"`', crontab(minute=30, hour=2), REAL),
    (
        '`rrule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30")`',
        rrule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30"),
        Terms(),
    ),
    ('`once("2026-…T02:30")`', None, Terms()),
    (
        "`schedule(timedelta(minutes=90), relative=True)`",
        schedule(timedelta(minutes=90), relative=True),
        Terms(),
    ),
]


def at(local: str) -> int:
    return to_micros(datetime.fromisoformat(local).replace(tzinfo=BERLIN))


def shown(tick: int) -> str:
    local = to_datetime(tick).astimezone(BERLIN)
    return f"{local:%H:%M}{'²' if local.fold else ''}"


def ticks(spec, terms: Terms, start: str, end: str) -> list[str]:
    if spec is None:
        spec = once(f"{start[:10]}T02:30")
    table = timetable_for(spec, APP, terms)
    found, moment = [], at(start) - 1
    while (moment := table.next_after(moment)) is not None and moment <= at(end):
        found.append(shown(moment))
    return found


def table() -> str:
    lines = [
        "| schedule | 02:00 becomes 03:00 | 03:00 becomes 02:00 |",
        "|---|---|---|",
    ]
    for label, spec, terms in ROWS:
        nights = [" ".join(ticks(spec, terms, *night)) for night in NIGHTS.values()]
        lines.append(f"| {label} | {' | '.join(nights)} |")
    return "\n".join(lines)


def test_the_page_shows_what_the_code_does():
    assert table() in PAGE.read_text("utf-8"), f"write this into {PAGE.name}:\n{table()}"


@pytest.mark.parametrize("night", NIGHTS)
def test_all_rows_fire_in_such_a_night(night):
    for label, spec, terms in ROWS:
        assert ticks(spec, terms, *NIGHTS[night]), label
