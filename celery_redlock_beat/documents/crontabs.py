"""The five fields of Celery's crontab as they were written; it computes no instant."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from celery.schedules import ParseException, crontab

from celery_redlock_beat.copies import shallow_copy
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import shown
from celery_redlock_beat.timetables.crontab_fields import CrontabFields

RANGES = {
    "minute": "0-59",
    "hour": "0-23",
    "day_of_week": "0-6 or sun-sat",
    "day_of_month": "1-31",
    "month_of_year": "1-12 or jan-dec",
}
_REFUSED = (ParseException, ValueError, TypeError, KeyError, IndexError, OverflowError)


def written(spec: crontab) -> dict[str, Any]:
    """Return the fields of a crontab: texts and numbers as given, and sets as lists of numbers.

    Raises:
        ConfigurationError: It has a zone of its own, or its fields were changed since.

    """
    if "tz" in vars(spec):
        raise ConfigurationError(
            "its crontab has a 'tz' that was set by hand; give the entry a 'timezone' instead"
        )
    fields = {name: _field(spec, name) for name in RANGES}
    if CrontabFields.of(crontab(**fields)) != CrontabFields.of(spec):
        raise ConfigurationError(
            "the fields of its crontab were changed after it was made; make a new crontab"
        )
    return fields


def _field(spec: crontab, name: str) -> Any:
    given = getattr(spec, f"_orig_{name}")
    if isinstance(given, str):
        return str(given)
    # A whole set counts as a star around a change of clocks, and a list in a text does not.
    return int(given) if isinstance(given, int) else sorted(map(int, getattr(spec, name)))


def parse_field(value: object) -> Any:
    """Take a text, a whole number, or a list of them.

    Raises:
        ValueError: It is something else.

    """
    if isinstance(value, str):
        return value
    many = value if isinstance(value, list) else [value]
    if many and all(type(each) is int for each in many):
        return value
    raise ValueError("is no field: write a text such as '*/5', a number, or a list of numbers")


def made(**fields: Any) -> crontab:
    """Return the crontab of its fields; one that is not given is a star.

    Raises:
        ConfigurationError: A field is not valid, or they have no day in common.

    """
    values = ((name, tuple(v) if isinstance(v, list) else v) for name, v in fields.items())
    # Many entries have few crontabs, and Celery expands the fields of each into sets.
    return shallow_copy(_made(tuple(values)))


@lru_cache(maxsize=1024)
def _made(values: tuple[tuple[str, Any], ...]) -> crontab:
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in values}
    try:
        return crontab(**fields)
    except _REFUSED:
        for name, value in fields.items():
            _try(name, value)
        raise ConfigurationError(
            "this crontab never fires: its days do not occur in its months; correct its "
            "'day_of_month' or its 'month_of_year'"
        ) from None


def _try(name: str, value: Any) -> None:
    try:
        crontab(**{name: value})
    except _REFUSED:
        raise ConfigurationError(
            f"schedule.{name} = {shown(repr(value))} is not valid: allowed are {RANGES[name]}, "
            "'*', lists (a,b), ranges (a-b) and steps (/n)"
        ) from None
