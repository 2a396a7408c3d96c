"""RFC 5545 rules as a schedule for users; it computes no instant and guesses no start."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables.own_schedule import OwnSchedule
from celery_redlock_beat.timetables.rule.objects import text_of
from celery_redlock_beat.timetables.rule.spelling import spelt
from celery_redlock_beat.timetables.rule.table import Rule
from celery_redlock_beat.timetables.rule.text import complaint, read
from celery_redlock_beat.timetables.zones import UTC_ZONE, Zone, zone_of


class rrule(OwnSchedule):  # noqa: N801  (named as Celery's crontab)
    """Schedule by a recurrence rule, as ``rrule("FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9")``.

    Arguments:
        rule: The parts of one RRULE, or the lines DTSTART, RRULE, RDATE, EXDATE and EXRULE of an
            iCalendar file.  Without a start it may only say what needs none: no COUNT, no INTERVAL
            but one that fits into a day, and the days of a week, month or year.  What it leaves
            open of the time of day is then 0.  UNTIL and EXDATE without a time are whole days.
        dtstart: The start, where the text has no DTSTART.
        timezone: An IANA name or a tzinfo; by default that of the start, or else the app's
            ``timezone`` setting.

    Raises:
        ConfigurationError: The rule, the start or the zone is not valid, or it never fires.

    """

    def __init__(
        self,
        rule: str,
        dtstart: dt.date | None = None,
        timezone: str | dt.tzinfo | None = None,
        *,
        nowfun: Callable[[], dt.datetime] | None = None,
        app: Any = None,
    ) -> None:
        super().__init__(nowfun=nowfun, app=app)
        self.rule = rule
        self.dtstart = dtstart
        self._text, self.timezone = _told(rule, dtstart, timezone)
        zone = None if self.timezone is None else zone_of(self.timezone)
        # Without a zone, any will do to compare by.
        self._key = ("rrule", self.timetable(zone or UTC_ZONE).text, zone.name if zone else None)

    def timetable(self, zone: Zone | None = None) -> Rule:
        """Return the timetable of this schedule in a zone; by default its own, or the app's."""
        return _table(self._text, zone or self._zone())

    def __repr__(self) -> str:
        return f"<rrule: {' '.join(filter(None, self._key[1:]))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.rule, self.dtstart, self.timezone, self.nowfun)


@lru_cache(maxsize=4096)
def _table(text: str, place: Zone) -> Rule:
    return Rule(text, place.name, place.tz)


def _restore(cls: type[rrule], rule: str, dtstart: Any, timezone: Any, nowfun: Any) -> rrule:
    return cls(rule, dtstart, timezone, nowfun=nowfun)


def rule_of(spec: object) -> rrule | None:
    """Return the schedule of an ``rrule`` or ``rruleset`` of python-dateutil, or ``None``.

    Raises:
        ConfigurationError: It has what RFC 5545 does not have, or never fires.

    """
    told = text_of(spec)
    if told is None:
        return None
    text, zone = told
    return rrule(text, timezone=zone.tz if zone else None)


def _told(
    rule: str, start: dt.date | None, timezone: str | dt.tzinfo | None
) -> tuple[str, str | dt.tzinfo | None]:
    """Return the whole text of a rule, and the zone that the arguments or the text name."""
    if not isinstance(rule, str):
        raise ConfigurationError(f"a recurrence rule must be a string, not {rule!r}")
    if start is not None:
        if "DTSTART" in rule.upper():
            raise complaint(rule, "it has a DTSTART, and dtstart= is given too; leave one out")
        start, timezone = _local(start, timezone)
        rule = f"DTSTART:{spelt(start)} {rule}"
    named = read(rule).zone
    if timezone is None:
        return rule, named
    if named not in (None, "UTC") and zone_of(named) != zone_of(timezone):
        raise complaint(rule, f"its start is in {named}, but timezone={timezone}; leave one out")
    return rule, timezone


def _local(
    start: dt.date, timezone: str | dt.tzinfo | None
) -> tuple[dt.date, str | dt.tzinfo | None]:
    if not isinstance(start, dt.date):
        raise ConfigurationError(f"dtstart must be a datetime, not {start!r}")
    if not isinstance(start, dt.datetime) or start.tzinfo is None:
        return start, timezone
    if timezone is None:
        return start.replace(tzinfo=None), start.tzinfo
    return start.astimezone(zone_of(timezone).tz).replace(tzinfo=None), timezone
