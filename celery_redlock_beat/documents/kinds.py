"""The kinds of schedules that a document can have, and what each may say; it knows no document."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from celery.schedules import schedule, solar

from celery_redlock_beat.documents import crontabs
from celery_redlock_beat.documents.spans import parse_span
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.setting_values import parse_flag, parse_instant, parse_text
from celery_redlock_beat.timetables import Solar, cron, once, rrule
from celery_redlock_beat.timetables.solar import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    Parser = Callable[[object], Any]


@dataclass(frozen=True)
class Kind:
    """How a schedule is made of its fields: those it ``needs``, and those it ``may`` have.

    A parser returns a field's value, or raises ``ValueError`` with what is wrong with it.
    """

    make: Callable[..., Any]
    needs: dict[str, Parser] = field(default_factory=dict)
    may: dict[str, Parser] = field(default_factory=dict)

    @cached_property
    def parsers(self) -> dict[str, Parser]:
        """The parsers of all its fields."""
        return {**self.needs, **self.may}


def _interval(every: dt.timedelta, *, relative: bool = False) -> Any:
    return schedule(every, relative=True) if relative else every


def _solar(event: str, lat: float, lon: float) -> solar:
    Solar(event, lat, lon)  # it tells better what is wrong than Celery does
    return solar(event, lat, lon)


def _once(at: dt.datetime, timezone: str | None = None, fold: int = 0) -> once:
    return once(at.replace(fold=fold), timezone)


def _parse_event(value: object) -> str:
    text = parse_text(value)
    if text not in EVENTS:
        known = f"known are {', '.join(EVENTS)}"
        raise ValueError(f"is no solar event: {hint(text, EVENTS, known)}")
    return text


def _parse_degrees(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no number of degrees: write one such as 52.5")  # noqa: TRY004
    return value


def _parse_fold(value: object) -> int:
    if type(value) is not int or value not in (0, 1):
        raise ValueError("is neither 0 nor 1: 1 is the second pass of an hour that clocks repeat")
    return value


def _parse_start(value: object) -> dt.date:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    return parse_instant(value)


KINDS = {
    "interval": Kind(_interval, {"every": parse_span}, {"relative": parse_flag}),
    "cron": Kind(cron, {"expression": parse_text}, {"timezone": parse_text}),
    "crontab": Kind(crontabs.made, may=dict.fromkeys(crontabs.RANGES, crontabs.parse_field)),
    "solar": Kind(_solar, {"event": _parse_event, "lat": _parse_degrees, "lon": _parse_degrees}),
    "once": Kind(_once, {"at": parse_instant}, {"timezone": parse_text, "fold": _parse_fold}),
    "rrule": Kind(rrule, {"rule": parse_text}, {"dtstart": _parse_start, "timezone": parse_text}),
}


def kind_of(name: object) -> Kind:
    """Return the kind of a name.

    Raises:
        ConfigurationError: There is none; tells which there are.

    """
    known = f"write one of {', '.join(map(repr, KINDS))}"
    if name is None:
        raise ConfigurationError(f"its schedule has no 'kind'; {known}")
    if not isinstance(name, str) or name not in KINDS:
        raise ConfigurationError(
            f"schedule.kind = {name!r} is unknown; {hint(str(name), KINDS, known)}"
        )
    return KINDS[name]
