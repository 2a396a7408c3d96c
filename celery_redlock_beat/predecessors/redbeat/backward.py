"""A document as RedBeat would write it, and what RedBeat cannot do of it; it writes nowhere."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery.schedules import crontab, schedule

from celery_redlock_beat.documents import crontabs, entries
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.policies import PARSERS
from celery_redlock_beat.predecessors.redbeat.backward_rules import rule_data
from celery_redlock_beat.predecessors.redbeat.coding import TYPE, written_argument
from celery_redlock_beat.predecessors.redbeat.cron_fields import crontab_fields
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import Interval, cron, rrule
from celery_redlock_beat.timetables.kinds import is_span
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.timetables.zones import Zone

LIMITS = ("start", "end", "max_runs")
"""What an entry says of when it may be sent at all: without it, RedBeat would send too much."""
SAME = ("enabled", "timezone", "phase")
"""What is told otherwise, or has been looked at."""
AROUND_A_CHANGE = (
    "around a change of clocks, RedBeat's crontab may fire otherwise than a cron string"
)

NO_PHASE = "RedBeat rounds a relative interval, and has no phase of one"


@dataclass(frozen=True, slots=True)
class Definition:
    """RedBeat's definition of an entry as data, and ``notes`` on what is not in it."""

    data: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def definition_of(name: str, document: Mapping[str, Any], zone: Zone, at: Micros) -> Definition:
    """Return what RedBeat would keep of a document; ``zone`` is the app's, ``at`` about now.

    Raises:
        ConfigurationError: RedBeat has no such schedule, or has it in another meaning.

    """
    fields = entries.fields_of(name, document)
    for key in LIMITS:
        if fields.get(key) is not None:
            raise ConfigurationError(
                f"RedBeat has no {key!r}, and would send it beyond that: take it out first, if "
                "that is right"
            )
    spec, notes = _schedule(name, fields, zone, at)
    dropped = [key for key in fields if key in PARSERS and key not in (*SAME, *LIMITS)]
    if dropped:
        notes = (*notes, f"RedBeat does not have, and forgets: {', '.join(dropped)}")
    data = {
        "name": name,
        "task": fields["task"],
        "args": written_argument(fields.get("args") or []),
        "kwargs": written_argument(fields.get("kwargs") or {}),
        "options": written_argument(fields.get("options") or {}),
        "schedule": spec,
        "enabled": fields.get("enabled", True),
    }
    return Definition(data, notes)


def _schedule(
    name: str, fields: Mapping[str, Any], zone: Zone, at: Micros
) -> tuple[dict[str, Any], tuple[str, ...]]:
    spec = fields["schedule"]
    own = getattr(spec, "timezone", None) or fields.get("timezone")
    place = zone if own is None else zone_of(own)
    notes: tuple[str, ...] = ()
    if is_span(spec) or type(spec) is schedule:
        relative = bool(getattr(spec, "relative", False) or fields.get("relative"))
        every = spec if is_span(spec) else spec.run_every
        return _interval(every, place, zone, relative=relative, phase=fields.get("phase"))
    if type(spec) is rrule:
        return rule_data(spec, place, at)
    if type(spec) is cron:
        table = spec.timetable(place, name)
        if isinstance(table, Interval):
            return _interval(table.period / SECOND, place, zone)
        told, notes = crontab_fields(table.expression), (AROUND_A_CHANGE,)
    elif type(spec) is crontab:
        told = {key: _field(value) for key, value in crontabs.written(spec).items()}
    else:
        raise ConfigurationError(f"RedBeat has no schedule of the kind {type(spec).__name__!r}")
    if place != zone:
        raise ConfigurationError(
            f"it is told in {place.name}, and RedBeat tells a crontab in the app's zone alone, "
            f"{zone.name}: write it in that"
        )
    return {TYPE: "crontab", **told}, notes


def _field(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _interval(
    every: float | dt.timedelta,
    place: Zone,
    zone: Zone,
    *,
    relative: bool = False,
    phase: float | None = None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    seconds = every.total_seconds() if isinstance(every, dt.timedelta) else float(every)
    if relative and place != zone:
        raise ConfigurationError(
            f"it counts in {place.name}, and RedBeat in the app's zone alone, {zone.name}: write "
            "it in that"
        )
    told = {TYPE: "interval", "every": seconds, "relative": relative}
    return told, (NO_PHASE,) if relative and phase else ()
