"""Rules that are built as objects of python-dateutil, as text; it reads them and keeps none.

They have no public way to tell what they consist of: hence their private attributes.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from dateutil import rrule as dateutil

from celery_redlock_beat.ticks import to_micros
from celery_redlock_beat.timetables.rule.spelling import spelt
from celery_redlock_beat.timetables.zones import Zone, zone_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator


def text_of(spec: object) -> tuple[str, Zone | None] | None:
    """Return the RFC 5545 text of an ``rrule`` or ``rruleset``, and the zone in which it is told.

    All else, and what is of a subclass, has no text: ``None``.
    """
    rules: dict[str, list[Any]] = {"RRULE": [spec]}
    dates: dict[str, list[dt.datetime]] = {}
    if type(spec) is dateutil.rruleset:
        own = vars(spec)
        rules = {"RRULE": own["_rrule"], "EXRULE": own["_exrule"]}
        dates = {"RDATE": own["_rdate"], "EXDATE": own["_exdate"]}
    elif type(spec) is not dateutil.rrule:
        return None
    starts = [rule._dtstart for rule in chain(*rules.values())]  # noqa: SLF001 (see above)
    zones = (zone_of(each.tzinfo) for each in chain(starts, *dates.values()) if each.tzinfo)
    zone = next(zones, None)
    return " ".join(_lines(rules, dates, zone)), zone


def _lines(
    rules: dict[str, list[Any]], dates: dict[str, list[dt.datetime]], zone: Zone | None
) -> Iterator[str]:
    for name, group in rules.items():
        for rule in group:
            yield f"DTSTART:{_stamp(rule._dtstart, zone)}"  # noqa: SLF001 (see above)
            yield f"{name}:{_parts(rule)}"
    for name, moments in dates.items():
        if moments:
            yield f"{name}:{','.join(_stamp(each, zone) for each in moments)}"


def _parts(rule: Any) -> str:
    parts = str(rule).partition("RRULE:")[2]
    until = rule._until  # noqa: SLF001 (see above)
    if until is None or until.tzinfo is None:
        return parts
    # dateutil writes what its clock shows, without its zone.
    return re.sub("UNTIL=[^;]*", f"UNTIL={spelt(to_micros(until))}", parts)


def _stamp(moment: dt.datetime, zone: Zone | None) -> str:
    if moment.tzinfo is None or zone_of(moment.tzinfo) == zone:
        return spelt(moment.replace(tzinfo=None))
    return spelt(to_micros(moment))
