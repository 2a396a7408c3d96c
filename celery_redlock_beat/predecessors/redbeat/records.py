"""All that a RedBeat keeps, as records that our documents can hold; it writes and deletes nothing.

What cannot be read is kept as a record too, with the reason.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.documents import entries, schedules
from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.predecessors.redbeat.coding import argument, moment, parsed, settled
from celery_redlock_beat.predecessors.redbeat.keys import Keys, look
from celery_redlock_beat.predecessors.redbeat.timing import timing_of
from celery_redlock_beat.ticks import SECOND, shown, to_micros
from celery_redlock_beat.timetables import Interval
from celery_redlock_beat.timetables.kinds import timetable_of
from celery_redlock_beat.timetables.terms import Terms
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.predecessors.redbeat.keys import Raw
    from celery_redlock_beat.ticks import Micros, Timetable
    from celery_redlock_beat.timetables.zones import Zone

KNOWN = ("name", "task", "args", "kwargs", "options", "schedule", "enabled", "relative")
SKEW = dt.timedelta(minutes=1)
NEVER_RUN = (
    "it has never run, so that RedBeat would have sent it at once: here it begins with its next "
    "tick"
)
NOT_PLANNED = (
    "it is not in RedBeat's schedule, so that RedBeat never sent it: it comes disabled; enable it "
    "if it is wanted"
)


@dataclass(frozen=True, slots=True)
class Record:
    """An entry of a RedBeat: its ``document``, empty where it has a ``problem``.

    ``last_run_at`` is in UTC; ``enabled`` is what RedBeat has; ``is_static`` tells that it came
    from code; ``score`` is when RedBeat would look at it next, in seconds since the epoch, or
    ``None``; ``is_gone`` that nothing is left of it that could be sent. ``warnings`` say what will
    be otherwise, or was lost already.
    """

    name: str
    document: Mapping[str, Any] = field(default_factory=dict)
    last_run_at: dt.datetime | None = None
    total_run_count: int = 0
    enabled: bool = True
    is_static: bool = False
    is_gone: bool = False
    score: float | None = None
    problem: str = ""
    warnings: tuple[str, ...] = ()


def read(client: Any, keys: Keys, zone: Zone, now: dt.datetime) -> list[Record]:
    """Return all entries, also those that are not in RedBeat's schedule, sorted by name.

    ``client`` answers with bytes; ``zone`` is the app's. Keys are read in chunks, while a RedBeat
    may go on.

    Raises:
        LedgerUnavailable: The server could not be asked.

    """
    return sorted((record_of(raw, zone, now) for raw in look(client, keys)), key=lambda r: r.name)


def record_of(raw: Raw, zone: Zone, now: dt.datetime) -> Record:
    """Return what is kept of one entry; what cannot be read is told in it."""
    known = Record(raw.name, is_static=raw.is_static, is_gone=raw.is_gone, score=raw.score)
    if raw.problem:
        return replace(known, problem=raw.problem)
    warnings = list(raw.remarks)
    try:
        ran, runs = _meta(raw.meta, now)
        known = replace(known, last_run_at=ran, total_run_count=runs)
    except ConfigurationError as problem:
        warnings.append(f"{problem}: when it ran last is not known")
    try:
        return _told(known, parsed("definition", raw.definition), raw, zone, now, warnings)
    except EntryError as error:
        return replace(known, problem=error.problem, warnings=tuple(warnings))
    except ConfigurationError as problem:
        return replace(known, problem=str(problem), warnings=tuple(warnings))


def _meta(text: bytes | None, now: dt.datetime) -> tuple[dt.datetime | None, int]:
    if text is None:
        return None, 0
    meta = parsed("meta", text)
    told, runs = meta.get("last_run_at"), meta.get("total_run_count")
    ran = None if told is None else settled(moment("last_run_at", told), now)
    return ran, runs if type(runs) is int and runs > 0 else 0


def _told(
    known: Record,
    definition: Mapping[str, Any],
    raw: Raw,
    zone: Zone,
    now: dt.datetime,
    warnings: list[str],
) -> Record:
    enabled = bool(definition.get("enabled", True))
    timing = timing_of(_spec(definition), known.last_run_at, zone)
    fields = {
        "task": definition.get("task"),
        "schedule": schedules.read(timing.schedule),
        **{key: argument(key, definition.get(key)) for key in ("args", "kwargs", "options")},
        **timing.more,
    }
    document = json.loads(entries.written(known.name, fields))
    table = timetable(known.name, document, zone)
    is_planned = raw.is_planned or _is_over(known, table)
    if not (enabled and is_planned):
        document["enabled"] = False
    warnings += [*_remarks(known, definition), *timing.warnings]
    if not is_planned:
        warnings.append(NOT_PLANNED)
    elif enabled:
        warnings += _about_last_run(known, table, now)
    return replace(known, document=document, enabled=enabled, warnings=tuple(warnings))


def _is_over(known: Record, table: Timetable) -> bool:
    """Whether it has no more ticks, for which RedBeat takes it out of its schedule too."""
    ran = known.last_run_at
    return ran is not None and table.next_after(to_micros(ran)) is None


def _about_last_run(known: Record, table: Timetable, now: dt.datetime) -> list[str]:
    ran = known.last_run_at
    if ran is None:
        # One that begins later would have waited for that.
        return [NEVER_RUN] if table.latest_until(to_micros(now)) is not None else []
    if ran > now + SKEW:
        return [f"it ran last at {ran.isoformat()}, which is to come: nothing is sent before"]
    return []


def _spec(definition: Mapping[str, Any]) -> Any:
    """Return the schedule; one that is a mere number takes ``relative`` from the entry."""
    spec = definition.get("schedule")
    if spec is None:
        raise ConfigurationError("it has no 'schedule'; add that key")
    if isinstance(spec, int | float) and definition.get("relative"):
        return {"__type__": "interval", "every": spec, "relative": True}
    return spec


def _remarks(known: Record, definition: Mapping[str, Any]) -> list[str]:
    remarks = []
    told = definition.get("name", known.name)
    if told != known.name:
        remarks.append(
            f"its definition has the name {shown(repr(told))}: it is kept under that of its key"
        )
    strange = [str(key) for key in definition if key not in KNOWN]
    if strange:
        remarks.append(f"left out of it: {', '.join(map(repr, strange))}")
    return remarks


def timetable(
    name: str, document: Mapping[str, Any], zone: Zone, last_run: dt.datetime | None = None
) -> Timetable:
    """Return the timetable of a document, with a zone for what has none of its own.

    An interval that says no phase goes on from a ``last_run``.

    Raises:
        EntryError: It cannot be; names the field.

    """
    fields = entries.fields_of(name, document)
    spec = fields["schedule"]
    own = getattr(spec, "timezone", None) or fields.get("timezone")
    try:
        table = timetable_of(spec, zone if own is None else zone_of(own), Terms(name))
    except ConfigurationError as problem:
        raise EntryError(name, str(problem)) from None
    if table is None:
        raise EntryError(name, "only code knows when it is due")
    phase: Micros = round(float(fields.get("phase") or 0) * SECOND)
    if phase:
        return replace(table, phase=phase)  # type: ignore[type-var]
    if last_run is not None and isinstance(table, Interval):
        return replace(table, phase=to_micros(last_run), goes_on=True)
    return table
