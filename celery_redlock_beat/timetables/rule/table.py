"""RFC 5545 recurrence rules as a timetable; knows no clock and no Celery."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.timetables.rule.meaning import meaning
from celery_redlock_beat.timetables.rule.spelling import spelling
from celery_redlock_beat.timetables.rule.text import complaint, read
from celery_redlock_beat.timetables.walk import FLOOR, Walked
from celery_redlock_beat.timetables.zones import Change, Zone, zone_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.timetables.rule.instants import RuleSet


@dataclass(frozen=True)
class Rule(Walked):
    """The instants of a recurrence text in a zone, as python-dateutil finds them on local time.

    They recur on what the clock shows, as RFC 5545 has it.  Where clocks go forward, a time in the
    gap is shifted by the gap's length, and is one tick with a time that is really shown there.
    Where they go back, a time that is shown twice fires in the first pass only, so that an hourly
    rule rests for an hour, and so does a minutely one: a cron string does not.

    A start is an instant only if its rule matches it.  A rule without a start begins in 1970.

    ``tz`` is only needed for a zone whose name cannot be loaded.
    """

    text: str
    zone: str
    tz: dt.tzinfo | None = field(default=None, compare=False, repr=False)
    _set: RuleSet = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        place = zone_of(self.zone) if self.tz is None else Zone(self.zone, self.tz)
        rules = meaning(read(self.text), place)
        if not rules.fires():
            raise complaint(
                self.text,
                "it never fires, as its parts and dates leave no time over; correct one of them, "
                "or remove the entry",
            )
        object.__setattr__(self, "text", spelling(rules))
        object.__setattr__(self, "_set", rules)

    @property
    def fingerprint(self) -> str:
        """A short text that changes exactly when a rule, a date or the zone does."""
        return f"rrule:{self.text}:{self.zone}"

    @property
    def place(self) -> Zone:
        """The zone in which the text is told."""
        return self._set.place

    def step(self, moment: Micros) -> Micros | None:
        """Return the next instant after ``moment``."""
        return next(self.instants(moment), None)

    def stretch(self, change: Change) -> None:
        """Return nothing to be walked from its beginning: a step may begin anywhere."""

    def instants(self, after: Micros) -> Iterator[Micros]:
        """Yield the instants later than ``after``, ascending."""
        return self._set.instants(max(after, FLOOR))
