"""What is typed for ``add`` and ``edit``, as fields of an entry; whether they fit, others say."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.documents import schedules
from celery_redlock_beat.documents.arguments import KEYS, call_of
from celery_redlock_beat.documents.json_text import parsed
from celery_redlock_beat.documents.spans import TYPED, number, parse_span
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.policies import PARSERS, hint_for
from celery_redlock_beat.timetables import once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SETTABLE = (*PARSERS, "relative")
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?\Z")
OTHER_UNITS = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[^\W\d_]+)+\Z")
FLAGS = ("enabled", "run_on_start", "relative")
WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
DURATIONS = ("catch_up_window", "misfire_grace_time", "jitter", "phase")
TAKEN_OUT: Any = object()
"""What was typed as null: it is taken out, and not left as it is."""
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
SCHEDULE_HELP = (
    "A cron string, a duration as 30s or 2h, @hourly, RRULE:…, an instant as 2030-01-31T12:00, or "
    "JSON with a 'kind'."
)


def _schedule(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Any:
    """Read a schedule by its form; what it means, the modules know that know its kind."""
    try:
        return None if text is None else schedule_of(text.strip())
    except (ConfigurationError, ValueError) as problem:
        raise click.BadParameter(str(problem)) from None


def schedule_of(text: str) -> Any:
    """Return what ``RedlockEntry(schedule=…)`` takes, of a schedule as people type it.

    Raises:
        ConfigurationError: It is none.
        ValueError: It is a duration that cannot be.

    """
    if text.startswith("{"):
        return schedules.read(parsed(text))
    if NUMBER.match(text):
        return parse_span(float(text) if "." in text else int(text))
    if TYPED.match(text):
        return parse_span(text)
    if OTHER_UNITS.match(text):
        raise ConfigurationError(f"{text!r}: durations have the units d, h, m and s, as 1h30m")
    if DATE.match(text):
        return once(_instant(text))
    return schedules.read(text)


def _instant(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is no instant; write it as 2030-01-31T12:00 or 2030-01-31T12:00:00Z"
        ) from None


def _part(_ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    """Read what a task is called with, as documents have it."""
    key = str(param.name)
    try:
        value = None if text is None else parsed(text)
        return TAKEN_OUT if text and value is None else call_of({key: value}).get(key)
    except ConfigurationError as problem:
        raise click.BadParameter(str(problem)) from None


def _settings(
    _ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    """Read ``key=value``; a value is a word for yes or no, a duration, JSON, or else a text."""
    said = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals:
            raise click.BadParameter(f"{each!r}: write it as key=value, as in catch_up=all")
        if key not in SETTABLE:
            raise click.BadParameter(f"unknown key {key!r}; {hint_for(key, SETTABLE)}")
        said[key] = _value(key, value)
    return said


def _value(key: str, text: str) -> Any:
    if key in FLAGS and text.lower() in WORDS:
        return WORDS[text.lower()]
    if key in DURATIONS and OTHER_UNITS.match(text.removeprefix("-")):
        return _seconds(key, text)
    try:
        return parsed(text)
    except ConfigurationError:
        return text


def _seconds(key: str, text: str) -> float:
    """Return the seconds of a duration, which may be none, or go back."""
    span = text.removeprefix("-")
    if not TYPED.match(span):
        raise click.BadParameter(f"{key}: {text!r}: its units are d, h, m and s, as in 1h30m")
    if not span.strip("0.dhms"):
        return 0
    try:
        seconds = number(parse_span(span).total_seconds())
    except ValueError as problem:
        raise click.BadParameter(f"{key}: {text!r} {problem}") from None
    return -seconds if span != text else seconds


def definition_options(*, required: bool) -> Callable[[Any], Any]:
    """Return the decorator that adds the options of an entry's fields."""
    options = [
        click.option("--task", required=required, help="The name of the task."),
        click.option("--schedule", required=required, callback=_schedule, help=SCHEDULE_HELP),
        click.option("--args", metavar="JSON", callback=_part, help="As [1, 2]."),
        click.option("--kwargs", metavar="JSON", callback=_part, help="""As {"key": "value"}."""),
        click.option("--options", metavar="JSON", callback=_part, help="""As {"queue": "low"}."""),
        click.option("--timezone", metavar="ZONE", help="As Europe/Berlin. Default: the app's."),
        click.option(
            "--set",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            callback=_settings,
            help="A policy, as catch_up=all or jitter=30s; null takes it out.",
        ),
        click.option("--tag", "tags", multiple=True, help="A tag; may be given more than once."),
        click.option("--description", help="What it is for."),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were given, as ``Control`` takes them."""
    keys = ("task", "schedule", *KEYS, "timezone", "description")
    typed = {key: given[key] for key in keys if given[key] is not None}
    said = {key: None if value is TAKEN_OUT else value for key, value in typed.items()}
    if given["tags"]:
        said["tags"] = given["tags"]
    return {**said, **given["settings"]}
