"""What a message tells of its tick, and how a task reads it; changes nothing the user owns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from celery import current_task
from celery.schedules import crontab

from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.lateness import NONE_PASSED_OVER
from celery_redlock_beat.ticks import to_datetime
from celery_redlock_beat.timetables.zones import zone_of

if TYPE_CHECKING:
    from celery.beat import ScheduleEntry

    from celery_redlock_beat.lateness import PassedOver
    from celery_redlock_beat.ledger import Grant
    from celery_redlock_beat.ticks import Micros, Tick

TICK = "redlock_tick"
ENTRY = "redlock_entry"
FENCE = "redlock_fence"
ATTEMPT = "redlock_attempt"
PASSED_OVER = "redlock_passed_over"
PASSED_OVER_EXACT = "redlock_passed_over_exact"


@dataclass(frozen=True, slots=True)
class CurrentTick:
    """The tick that a running task was sent for.

    ``fence`` rises with every grant; ``attempt`` counts the grants of this tick from 1;
    ``passed_over`` is how many earlier ticks were skipped in its favour: exactly, or, where not
    ``passed_over_exact``, at least.
    """

    entry: str
    instant: datetime
    fence: int
    attempt: int
    passed_over: int
    passed_over_exact: bool = True


def message_for(
    entry: ScheduleEntry,
    grant: Grant,
    namespace: str,
    passed_over: PassedOver = NONE_PASSED_OVER,
    expires: Micros | None = None,
) -> ScheduleEntry:
    """Return a private copy of an entry that carries its tick.

    Options, headers and arguments are copies too, as deep as Celery writes into them (its 5.7
    sets a header in place). A ``task_id`` and an ``expires`` among the user's options are kept.
    """
    options = dict(entry.options or {})
    options["task_id"] = task_id_of(entry, grant.tick, namespace)
    if expires is not None:
        options.setdefault("expires", to_datetime(expires))
    options["headers"] = _headers(options.get("headers"), grant, passed_over)
    copy = shallow_copy(entry)
    copy.options = options
    copy.args = _copy_container(entry.args)
    copy.kwargs = _copy_container(entry.kwargs)
    _tell_zone(copy)
    return copy


def task_id_of(entry: ScheduleEntry | None, tick: Tick, namespace: str) -> str:
    """Return the id of a tick's message: the tick's own, or the one that the user fixed."""
    options = getattr(entry, "options", None)
    fixed = options.get("task_id") if isinstance(options, Mapping) else None
    return fixed or tick.task_id(namespace)


def current_tick() -> CurrentTick | None:
    """Return the tick of the running periodic task, or ``None`` outside of one.

    A retry of the task keeps it; tasks that the task sends do not have it.
    """
    request = getattr(current_task, "request", None) if current_task else None
    if request is None:
        return None
    # Protocol 2 spreads headers over the request; protocol 1 and eager mode keep them together.
    told: dict[str, Any] = {**vars(request), **(getattr(request, "headers", None) or {})}
    if TICK not in told:
        return None
    return CurrentTick(
        entry=str(told.get(ENTRY, "")),
        instant=datetime.fromisoformat(told[TICK]),
        fence=int(told.get(FENCE, 0)),
        attempt=int(told.get(ATTEMPT, 0)),
        passed_over=int(told.get(PASSED_OVER, 0)),
        passed_over_exact=bool(told.get(PASSED_OVER_EXACT, True)),
    )


def _headers(given: Any, grant: Grant, passed_over: PassedOver) -> dict[str, Any]:
    return {
        "periodic_task_name": grant.tick.entry,
        "celery_beat_task": True,
        **(given or {}),
        TICK: grant.tick.instant.isoformat(timespec="microseconds"),
        ENTRY: grant.tick.entry,
        FENCE: grant.fence,
        ATTEMPT: grant.attempt,
        PASSED_OVER: passed_over.total,
        PASSED_OVER_EXACT: passed_over.exact,
    }


def _tell_zone(copy: ScheduleEntry) -> None:
    """Exchange a crontab for one in the entry's own zone: monitors of schedules ask for its tz."""
    zone = getattr(copy, "timezone", None)
    if zone is not None and type(copy.schedule) is crontab:
        copy.schedule = shallow_copy(copy.schedule, tz=zone_of(zone).tz)


def _copy_container(value: Any) -> Any:
    return value.copy() if isinstance(value, (dict, list)) else value
