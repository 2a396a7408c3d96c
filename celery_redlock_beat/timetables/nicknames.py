"""What begins with @ in place of the fields of a cron expression; knows no field and no zone."""

from __future__ import annotations

import re
from fractions import Fraction

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.hints import hint
from celery_redlock_beat.ticks import SECOND, Micros

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
EVERY = "@every"
UNITS: dict[str, Micros] = {
    "d": 86_400 * SECOND,
    "h": 3600 * SECOND,
    "ms": SECOND // 1000,  # before m, which it begins with
    "m": 60 * SECOND,
    "s": SECOND,
    "us": 1,
    "µs": 1,
}
_PART = re.compile(rf"([0-9]{{1,15}}(?:\.[0-9]{{1,15}})?)({'|'.join(UNITS)})")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")


def spelled_out(expression: str) -> str | Micros:
    """Return the fields that a nickname stands for, or the period of ``@every``.

    Raises:
        ConfigurationError: It is no nickname, or has no duration; says which there are.

    """
    word, *rest = expression.split()
    if word.lower() == EVERY:
        return _period(expression, "".join(rest))
    nickname = " ".join([word, *rest]).lower()
    if nickname in NICKNAMES:
        return NICKNAMES[nickname]
    known = f"known are {', '.join(NICKNAMES)} and {EVERY} with a duration"
    meant = hint(nickname, [*NICKNAMES, EVERY], known)
    raise ConfigurationError(f"cron expression {expression!r}: unknown nickname; {meant}")


def _period(expression: str, duration: str) -> Micros:
    if not _DURATION.fullmatch(duration):
        raise ConfigurationError(
            f"cron expression {expression!r}: {EVERY} needs a duration as 90s, 1h30m, 500ms or 2d; "
            "understood are d, h, m, s, ms and us"
        )
    parts = _PART.findall(duration)
    period = sum(Fraction(number) * UNITS[unit] for number, unit in parts)
    if period < 1 or period.denominator > 1:
        raise ConfigurationError(
            f"cron expression {expression!r}: the duration must be above zero, and of whole "
            "microseconds; correct it, or remove the entry"
        )
    return int(period)
