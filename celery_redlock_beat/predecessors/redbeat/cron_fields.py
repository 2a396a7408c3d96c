"""A cron string as the fields of Celery's crontab, where both mean the same; it knows no zone."""

from __future__ import annotations

from cronsim.cronsim import CronSim, Field

from celery_redlock_beat.errors import ConfigurationError

FIVE = 5
FIELDS = {
    "minute": Field.MINUTE,
    "hour": Field.HOUR,
    "day_of_week": Field.DOW,
    "day_of_month": Field.DAY,
    "month_of_year": Field.MONTH,
}
"""In the order in which RedBeat writes them."""


def crontab_fields(expression: str) -> dict[str, str]:
    """Return the fields of an equal crontab, of an expression in which nothing is left to choose.

    Raises:
        ConfigurationError: A crontab cannot say it; tells what.

    """
    parts = expression.split()
    if len(parts) > FIVE:
        second, *parts = parts
        if Field.SECOND.parse(second) != {0}:
            raise ConfigurationError(f"RedBeat has no seconds in a crontab: {expression!r}")
    minute, hour, day, month, weekday = parts
    # Debian fires on days that match one of both fields, and Celery on those that match both.
    if not (day.startswith("*") or weekday.startswith("*")):
        raise ConfigurationError(
            f"{expression!r} means the days of the month and those of the week, and RedBeat's "
            "crontab only the days that are both: make two entries of it"
        )
    texts = {"minute": minute, "hour": hour, "day_of_month": day, "month_of_year": month}
    texts["day_of_week"] = weekday
    return {name: _field(texts[name], field) for name, field in FIELDS.items()}


def _field(text: str, field: Field) -> str:
    if text == "*":
        return text
    values = field.parse(text)
    numbers = {each for each in values if isinstance(each, int)}
    if numbers != values or numbers & {CronSim.LAST, CronSim.LAST_WEEKDAY}:
        raise ConfigurationError(f"RedBeat's crontab has nothing like {text!r}: write days of it")
    if field is Field.DOW:
        numbers = {number % 7 for number in numbers}
    return ",".join(map(str, sorted(numbers)))
