"""Instants, durations and views in words, for people; it prints nothing, and asks no ledger."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.findings import many, span
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.ticks import listed as first_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from celery_redlock_beat.control import EntryView, HistoryRecord, Paused, Result, Upcoming

MOST_LISTED = 10
"""What can become of a tick, as records have it."""
NOTHING = "-"


def printable(text: str) -> str:
    """Return a text on one line, whole, with nothing in it that would steer a terminal."""
    return text if text.isprintable() else repr(text)[1:-1]


def instant(moment: datetime | None) -> str:
    """Return an instant as it is typed, in UTC."""
    return NOTHING if moment is None else moment.isoformat().replace("+00:00", "Z")


def second(moment: datetime | None) -> str:
    """Return an instant without what is below a second."""
    return NOTHING if moment is None else instant(moment.replace(microsecond=0))


def away(moment: datetime, now: datetime) -> str:
    """Return how far an instant is away."""
    if moment > now:
        return f"in {length(moment - now)}"
    return f"{length(now - moment)} ago"


def length(duration: timedelta | float) -> str:
    """Return a duration, or seconds, in its two largest units."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return f"-{span(round(-seconds * SECOND))}" if seconds < 0 else span(round(seconds * SECOND))


def roughly(moment: datetime, now: datetime) -> str:
    """Return how far an instant is away, in one unit."""
    seconds = int(abs(moment - now).total_seconds())
    number, unit = length(seconds).split()[:2] if seconds else ("0", "s")
    return f"in {number} {unit}" if moment > now else f"{number} {unit} ago"


def moment(told: datetime, now: datetime) -> str:
    """Return an instant, and how far it is away."""
    return f"{instant(told)} ({away(told, now)})"


def listed(names: Sequence[str]) -> str:
    """Return how many entries there are, and the first of their names."""
    told = first_of([*map(printable, names)], MOST_LISTED)
    return f"{many(len(names), 'entry', 'entries')} ({told})"


def paused(pause: Paused) -> str:
    """Return why an entry is paused, by whom, since when and until when."""
    said = [
        f"by {printable(pause.who)}" if pause.who else "",
        f"since {second(pause.since)}" if pause.since else "",
        f"until {second(pause.until)}" if pause.until else "",
    ]
    told = " ".join(each for each in said if each)
    return f"{told}: {printable(pause.note)}" if pause.note else told


def result(last: Result, now: datetime) -> Iterator[str]:
    """Yield the last outcome of an entry, a line each."""
    why = f" ({last.reason})" if last.reason else ""
    yield f"{last.outcome}{why} {moment(last.at, now)}"
    yield f"tick {instant(last.tick)}, {length(last.lateness)} late"
    if last.node:
        attempt = f", attempt {last.attempt}" if last.attempt > 1 else ""
        yield f"by node {printable(last.node)}{attempt}"
    if last.task_id:
        yield f"task id {printable(last.task_id)}"


def upcoming(ticks: Sequence[Upcoming], now: datetime) -> Iterator[str]:
    """Yield the ticks to come, a line each."""
    for each in ticks:
        due = f", due {instant(each.due)}" if each.due != each.tick else ""
        held = f", {HELD.get(each.held, each.held)}" if each.held else ""
        yield f"{moment(each.tick, now)}{due}{held}"


HELD = {"paused": "not sent while it is paused", "skip": "to be skipped"}


def about(record: HistoryRecord) -> str:
    """Return what a record says beside its action, its instants, and its node."""
    passed = ", ".join(f"{number:,} {reason}" for reason, number in record.passed.items())
    parts = [
        record.reason,
        f"{length(record.lateness)} late" if record.action == "sent" else "",
        f"attempt {record.attempt}" if record.taken_over else "",
        f"passed over: {passed}" if passed else "",
        record.detail,
    ]
    return printable("; ".join(part for part in parts if part))


def counts(numbers: Mapping[str, int]) -> str:
    """Return numbers by name on one line."""
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items() if number) or "none"


def deeds(views: Sequence[EntryView], deed: str) -> Iterator[str]:
    """Yield what was done with each entry, a line each."""
    for view in views:
        end = view.paused.until if view.paused else None
        until = f", until {second(end)}" if end else ""
        yield f"{deed} {printable(view.name)}{until}"
