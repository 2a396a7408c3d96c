"""What an expression means that stands in no configuration; it needs no app, and asks no clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from celery_redlock_beat.diagnostics.schedules.forthcoming import Outlook, Question, outlook
from celery_redlock_beat.diagnostics.schedules.plain_language import lacks_the_extra
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.ticks import shown
from celery_redlock_beat.timetables import Cron, Terms, schedule_of, timetable_for
from celery_redlock_beat.timetables.day_fields import doubt_about_days

if TYPE_CHECKING:
    from typing import Any

    from celery_redlock_beat.ticks import Timetable
    from celery_redlock_beat.timetables import Opaque
    from celery_redlock_beat.timetables.zones import Zone


@dataclass(frozen=True, slots=True)
class Explanation:
    """What comes of an expression, and what about it may not be meant."""

    outlook: Outlook
    doubts: tuple[str, ...]
    lacks_the_extra: bool


def explained(text: str, name: str, asked: Question, default: Zone) -> Explanation:
    """Explain a cron string or a rule, told in its own zone, the one asked for, or the ``default``.

    Raises:
        ConfigurationError: It is no schedule; or it has an H, and no name of an entry to choose it.

    """
    schedule = schedule_of(text)
    zone = asked.zone or default
    own = None if getattr(schedule, "timezone", None) else zone.tz
    table = _timetable(schedule, Terms(name=name, timezone=own))
    entry = SimpleNamespace(task=None, schedule=schedule, timezone=zone.tz)
    told = outlook(Slot(name, table, Policy()), entry, None, asked)
    facts = {key: value for key, value in told.facts.items() if key != "schedule"}
    if isinstance(table, Cron) and table.expression != " ".join(text.upper().split()):
        facts = {"fields": table.expression, **facts}
    doubt = doubt_about_days(schedule)
    return Explanation(
        replace(told, name=shown(text), facts=facts),
        (doubt,) if doubt else (),
        lacks_the_extra(table),
    )


def _timetable(schedule: Any, terms: Terms) -> Timetable | Opaque:
    try:
        return timetable_for(schedule, None, terms)
    except ConfigurationError:
        if not terms.name and _is_good(schedule, replace(terms, name="any")):
            raise ConfigurationError(
                f"{schedule.expression!r}: the name of the entry chooses what an H is; say it with "
                "--name"
            ) from None
        raise


def _is_good(schedule: Any, terms: Terms) -> bool:
    try:
        timetable_for(schedule, None, terms)
    except ConfigurationError:
        return False
    return True
