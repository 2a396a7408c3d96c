"""Reading a cron expression, and saying what is wrong with it; knows no zone and no Celery."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import TYPE_CHECKING

from cronsim import CronSim, CronSimError

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables.hashed import spread
from celery_redlock_beat.timetables.nicknames import spelled_out

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Micros

FIELDS = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT, also 5L and MON#2",
}
_REFERENCE = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


def meaning(expression: str) -> str | Micros:
    """Return what a cron string says: its fields, normalised, or the period of an ``@every``.

    Raises:
        ConfigurationError: As ``normalised``, or it begins with @ and is no nickname.

    """
    if not isinstance(expression, str):
        raise ConfigurationError(f"a cron expression must be a string, not {expression!r}")
    if expression.lstrip().startswith("@"):
        return spelled_out(expression)
    return normalised(expression)


@lru_cache(maxsize=4096)
def normalised(expression: str) -> str:
    """Return a valid expression of fields in capitals and single blanks; each H stays.

    Raises:
        ConfigurationError: It cannot be read, or never fires; names the field and the way out.

    """
    parts = expression.upper().split()
    if len(parts) not in (5, 6):
        raise ConfigurationError(
            f"cron expression {expression!r}: it has {len(parts)} fields; write 5 (minute, hour, "
            "day of month, month, day of week), or 6 with the second in front"
        )
    fields = " ".join(parts)
    try:
        next(CronSim(spread(fields), _REFERENCE))
    except CronSimError as error:
        raise ConfigurationError(_explain(expression, parts, str(error))) from None
    except StopIteration:
        raise ConfigurationError(_never(expression)) from None
    except ValueError:
        raise ConfigurationError(
            f"cron expression {expression[:40]!r}…: a number in it is far too long; shorten it"
        ) from None
    return fields


def _explain(expression: str, parts: list[str], problem: str) -> str:
    name = problem.removeprefix("Bad ")
    if name not in FIELDS:
        return f"cron expression {expression!r}: {problem}"
    if name == "day-of-month" and _is_valid([*parts[:-2], "*", parts[-1]]):
        return _never(expression)  # the day is valid, but not in any of these months
    place = list(FIELDS).index(name) - (6 - len(parts))
    return (
        f"cron expression {expression!r}: the {name} field {parts[place]!r} is not valid; "
        f"allowed are {FIELDS[name]}, '*', lists (a,b), ranges (a-b, upwards) and steps (/n), and "
        "H, H(a-b), H/n, where n is at least 2 and at most the number of values"
    )


def _is_valid(parts: list[str]) -> bool:
    try:
        CronSim(spread(" ".join(parts)), _REFERENCE)
    except CronSimError:
        return False
    return True


def _never(expression: str) -> str:
    return (
        f"cron expression {expression!r}: its day-of-month, month and day-of-week fields have no "
        "day in common, so it never fires; correct one of them, or remove the entry"
    )
