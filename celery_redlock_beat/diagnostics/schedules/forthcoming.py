"""When an entry is due next, and what it says of its time; it asks no clock, and sends nothing."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from celery_redlock_beat.diagnostics.findings import instant, span
from celery_redlock_beat.diagnostics.schedules.clock_changes import moved, repeated, shifted
from celery_redlock_beat.diagnostics.schedules.plain_language import duration, reading_of
from celery_redlock_beat.policies import policies_of
from celery_redlock_beat.ticks import shown, to_micros
from celery_redlock_beat.timetables import (
    KINDS,
    Bounded,
    Interval,
    Opaque,
    RealCrontab,
    Relative,
    Rule,
    app_zone,
    cron,
)
from celery_redlock_beat.timetables.wall import instant_showing
from celery_redlock_beat.timetables.zones import Zone, zone_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from celery import Celery

    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ticks import Micros, Timetable

OURS = ("celery.", "celery_redlock_beat.")


@dataclass(frozen=True, slots=True)
class Forthcoming:
    """One tick: its local time, when it is due if that is another one, and remarks on its clock."""

    at: Micros
    local: dt.datetime
    due: dt.datetime | None
    remarks: Sequence[str]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What comes of one entry: ``facts`` by name, ticks, and why there are no more of them."""

    name: str
    facts: Mapping[str, str]
    ticks: Sequence[Forthcoming]
    end: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """How many ticks are asked for, from when on, and in which zone they are shown.

    Without a zone it is that of each entry. A ``begin`` without an offset is told in it.
    """

    begin: dt.datetime
    number: int
    zone: Zone | None = None

    def begin_in(self, zone: Zone) -> Micros:
        """Return the instant from which on ticks are asked for."""
        if self.begin.utcoffset() is not None:
            return to_micros(self.begin)
        return instant_showing(zone, to_micros(self.begin.replace(tzinfo=dt.UTC)), self.begin.fold)


def outlook(slot: Slot, entry: Any, app: Celery | None, asked: Question) -> Outlook:
    """Return what comes of an entry; a schedule that alone knows when it is due is not asked."""
    own = zone_told(slot.timetable, entry, app)
    zone = asked.zone or own
    name, facts = shown(slot.name), dict(_facts(slot, entry, own, zone))
    if isinstance(slot.timetable, Opaque):
        return Outlook(name, facts, (), "beat asks it when it runs: nobody can tell before")
    begin = asked.begin_in(zone)
    try:
        ticks = tuple(islice(_coming(slot, own, zone, begin), asked.number))
        end = "" if len(ticks) == asked.number else _end(slot, ticks, begin)
    except Exception as exc:  # noqa: BLE001 - a timetable may be the user's own
        return Outlook(name, facts, (), f"its timetable failed: {exc!r}")
    return Outlook(name, facts, ticks, end)


def zone_told(table: Any, entry: Any, app: Celery | None) -> Zone:
    """Return the zone that an entry is told in: its timetable's, its own, or the app's."""
    inner = table.inner if isinstance(table, Bounded) else table
    if type(inner) in KINDS:
        for owner, name in ((inner, "place"), (inner, "zone"), (entry.schedule, "timezone")):
            zone = getattr(owner, name, None)
            if zone is not None:
                return zone if isinstance(zone, Zone) else zone_of(zone)
    own = policies_of(entry).timezone
    return app_zone(app) if own is None else zone_of(own)


def _coming(slot: Slot, own: Zone, zone: Zone, begin: Micros) -> Iterator[Forthcoming]:
    table = cast("Timetable", slot.timetable)
    before, at = None, table.next_after(begin - 1)
    while at is not None:
        remarks = [*repeated(zone, at)]
        if before is not None:
            remarks += moved(zone, before, at)
        if zone == own:
            remarks += shifted(table, zone, at)
        due = zone.local(slot.due_at(at)) if slot.policy.jitter else None
        yield Forthcoming(at, zone.local(at), due, tuple(remarks))
        before, at = at, table.next_after(at)


def _end(slot: Slot, ticks: Sequence[Forthcoming], begin: Micros) -> str:
    if ticks:
        return "no more after that"
    last = cast("Timetable", slot.timetable).latest_until(begin - 1)
    return "it never comes" if last is None else f"no more: the last one was {instant(last)}"


def _facts(slot: Slot, entry: Any, own: Zone, zone: Zone) -> Iterator[tuple[str, str]]:
    if entry.task:
        yield "task", shown(str(entry.task))
    yield "schedule", shown(_written(entry.schedule, slot.timetable))
    reading = reading_of(slot.timetable)
    if reading:
        yield "meaning", reading
    yield "zone", own.name if zone == own else f"{own.name}, shown in {zone.name}"
    policies = "; ".join(_policies(slot, own))
    if policies:
        yield "policies", policies


def _written(schedule: Any, table: Any) -> str:
    """Return a schedule as it was written; of a class that is not known only its name."""
    if isinstance(schedule, cron):
        return str(schedule.expression)
    if isinstance(table, Rule):
        return table.text
    if not type(schedule).__module__.startswith(OURS):
        return type(schedule).__qualname__
    return repr(schedule).removeprefix("<").removesuffix(">")


def _policies(slot: Slot, own: Zone) -> Iterator[str]:
    """Yield what moves ticks, or leaves some out, by the keys of the entry."""
    table: Any = slot.timetable
    inner = table.inner if isinstance(table, Bounded) else table
    if not slot.policy.enabled:
        yield "disabled, so that nothing is sent"
    for name in ("start", "end"):
        bound = getattr(table, name, None)
        if bound is not None:
            yield f"{name} {own.local(bound).isoformat()}"
    if isinstance(inner, Interval | Relative) and inner.phase:
        yield f"phase {duration(inner.phase)}"
    if isinstance(inner, RealCrontab):
        yield "dst real"
    if slot.policy.jitter:
        yield f"jitter below {span(slot.policy.jitter)}"
    if slot.policy.max_runs is not None:
        yield f"max_runs {slot.policy.max_runs}"
    if slot.policy.run_on_start:
        yield "run_on_start, so that it is also sent once when it is first seen"
