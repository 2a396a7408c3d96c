"""RedBeat's ``rrule``, made as there and a rule of ours from then on; it computes no instant.

``rrule(…)`` answers a :class:`celery_redlock_beat.rrule` that also has RedBeat's attributes, so
that entries, documents and every scheduler of ours take it. What differs from RedBeat: ``byeaster``
is refused, since RFC 5545 has no such part; of ``count`` and ``until`` together, what ends first is
kept; a rule that is over answers ``remaining_estimate`` with a hundred years and not with ``None``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery import current_app
from celery.utils.time import maybe_make_aware

from celery_redlock_beat.contrib.redbeat.rules import (
    ARGUMENTS,
    arguments_of,
    dateutil_rule,
    frequency_of,
    in_named_zone,
    parts_of,
)
from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables import rrule as Rule  # noqa: N812 - a class, named as Celery's

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

NOT_SAID = "begins_when_made"
"""What tells so of a rule without a start: no entry from code can have such a one."""


class _AsOurs(type):
    """What it makes is of our own class: a schedule is known by that exactly."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if cls is rrule:  # a subclass of the user's may mean something else
            made.__class__ = Rule
        return made

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is rrule and type(instance) is Rule:
            return "freq" in vars(instance)
        return super().__instancecheck__(instance)


class rrule(Rule, metaclass=_AsOurs):  # noqa: N801 - named as RedBeat's
    """Schedule by the arguments of python-dateutil's ``rrule``, as RedBeat does.

    Arguments:
        freq: A name as ``"WEEKLY"``, or python-dateutil's number of it.
        dtstart: The start; a naive one is in UTC, as for RedBeat. Without one it starts when it is
            made, which is no good in ``beat_schedule``: each node makes its own.
        until: The last instant; naive as ``dtstart``.
        nowfun: As Celery's; a schedule with one is code, and cannot be saved.
        app: The app whose ``timezone`` is that of what is naive; by default the current one.

    The others are python-dateutil's. Its attributes have the names of its arguments, and ``rrule``
    is the rule of python-dateutil.

    Raises:
        ConfigurationError: There is no such rule, or it never fires.

    """

    def __init__(  # noqa: PLR0913, PLR0917 - RedBeat's own signature
        self,
        freq: int | str,
        dtstart: dt.datetime | None = None,
        interval: int = 1,
        wkst: Any = None,
        count: int | None = None,
        until: dt.datetime | None = None,
        bysetpos: Any = None,
        bymonth: Any = None,
        bymonthday: Any = None,
        byyearday: Any = None,
        byeaster: Any = None,
        byweekno: Any = None,
        byweekday: Any = None,
        byhour: Any = None,
        byminute: Any = None,
        bysecond: Any = None,
        *,
        nowfun: Callable[[], dt.datetime] | None = None,
        app: Any = None,
    ) -> None:
        given = locals()
        said = {name: given[name] for name in ARGUMENTS}
        if byeaster is not None:
            raise ConfigurationError(
                "byeaster has no place in RFC 5545: give the entry a schedule class of your own in "
                "beat_schedule, or the dates of some years as RDATE of a celery_redlock_beat.rrule"
            )
        zone = (app or current_app).timezone
        start = dtstart or (nowfun or (app or current_app).now)()
        said["freq"] = frequency_of(freq)
        said["dtstart"] = in_named_zone(maybe_make_aware(start, zone))
        said["until"] = maybe_make_aware(until, zone) if until else None
        made = dateutil_rule(said)
        super().__init__(parts_of(made), said["dtstart"], nowfun=nowfun, app=app)
        # RedBeat shows the offset that was given, where a document needs the name of a zone.
        said["dtstart"] = maybe_make_aware(start, zone)
        self.__dict__.update(said, rrule=made)
        if dtstart is None:
            self.__dict__[NOT_SAID] = True


def begins_when_made(spec: object) -> bool:
    """Answer whether a schedule is a rule that starts whenever a process makes it."""
    return bool(getattr(spec, NOT_SAID, False))


def as_redbeat_has_it(spec: Any) -> Any:
    """Return a schedule, with RedBeat's attributes if it is a rule that RedBeat could have."""
    if type(spec) is Rule and "freq" not in vars(spec):
        try:
            said = arguments_of(spec)
        except ConfigurationError:
            return spec
        if spec.dtstart is not None:
            return shallow_copy(spec, **said, rrule=dateutil_rule(said))
        if said["dtstart"] is not None:
            return rrule(**said, nowfun=spec.nowfun)
    return spec
