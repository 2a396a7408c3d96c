"""Which parts of an RFC 5545 rule fit together, and which need a start; computes no instant."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from celery_redlock_beat.timetables.rule.parts import FREQUENCIES, TIMES

if TYPE_CHECKING:
    from celery_redlock_beat.timetables.rule.parts import Parts

_UNFIT = {
    "BYWEEKNO": (FREQUENCIES[1:], "use FREQ=YEARLY"),
    "BYYEARDAY": (("MONTHLY", "WEEKLY", "DAILY"), "use FREQ=YEARLY"),
    "BYMONTHDAY": (("WEEKLY",), "use FREQ=MONTHLY"),
}
_DAYS = {"BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"}
_WEEKS_OF_A_MONTH = 5
# How often a rule of this frequency recurs in a day.
_A_DAY = {"HOURLY": 24, "MINUTELY": 24 * 60, "SECONDLY": 24 * 60 * 60}


def check_fit(parts: Parts) -> None:
    """Refuse parts that do not go together.

    Raises:
        ValueError: Two of them do not; names them.

    """
    for name, (frequencies, way_out) in _UNFIT.items():
        if name in parts.by and parts.freq in frequencies:
            raise ValueError(f"{name} does not go with FREQ={parts.freq}; {way_out}")
    _check_days(parts)
    most = _most_in_a_period(parts)
    if most and not any(abs(place) <= most for place in parts.by.get("BYSETPOS", (1,))):
        raise ValueError(
            f"BYSETPOS picks from the instants of a period, and FREQ={parts.freq} has {most} with "
            "these parts, so it never fires; use a coarser FREQ, or leave BYSETPOS out"
        )


def check_start(parts: Parts) -> None:
    """Refuse a rule without a start whose instants depend on the start.

    Raises:
        ValueError: They do; names the part.

    """
    every_day = _A_DAY.get(parts.freq, 1) % parts.interval == 0
    if parts.count is not None:
        problem = f"COUNT={parts.count} counts from a start"
    elif not every_day:
        problem = f"INTERVAL={parts.interval} counts from a start"
    elif parts.freq == "WEEKLY" and "BYDAY" not in parts.by:
        problem = "it does not say on which day of the week (BYDAY)"
    elif parts.freq == "MONTHLY" and not _DAYS & parts.by.keys():
        problem = "it does not say on which day of the month (BYMONTHDAY or BYDAY)"
    elif parts.freq == "YEARLY" and not _DAYS & parts.by.keys():
        problem = "it does not say on which day of the year (BYMONTH with BYMONTHDAY, or BYDAY)"
    else:
        return
    raise ValueError(f"{problem}; add a line DTSTART:20260131T090000, or dtstart=")


def _check_days(parts: Parts) -> None:
    days = parts.by.get("BYDAY", ())
    numbers = [number for _, number in days if number]
    if "BYWEEKNO" in parts.by and not days:
        raise ValueError("BYWEEKNO does not say on which days of the week; add BYDAY, as BYDAY=MO")
    if numbers and (parts.freq not in ("YEARLY", "MONTHLY") or "BYWEEKNO" in parts.by):
        raise ValueError(
            "BYDAY can have numbers, as in 1MO, only with FREQ=MONTHLY or FREQ=YEARLY and without "
            "BYWEEKNO; leave the numbers out"
        )
    if numbers and len(numbers) < len(days):
        raise ValueError(
            "BYDAY mixes days with a number and days without; write an RRULE line for each kind"
        )
    in_a_month = parts.freq == "MONTHLY" or "BYMONTH" in parts.by
    if in_a_month and any(abs(number) > _WEEKS_OF_A_MONTH for number in numbers):
        raise ValueError("BYDAY counts within a month here, where numbers go up to 5")


def _most_in_a_period(parts: Parts) -> int:
    """Return how many instants a period has at most, or 0 if that depends on its length."""
    if parts.freq in ("YEARLY", "MONTHLY"):
        return 0
    level = FREQUENCIES.index(parts.freq)
    names = [name for name, freq in TIMES.items() if level < FREQUENCIES.index(freq)]
    if parts.freq == "WEEKLY":
        names.append("BYDAY")
    return prod(len(parts.by.get(name, "1")) for name in names)
