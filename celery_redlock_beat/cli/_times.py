"""Instants and durations as they are typed on the command line; it asks no clock."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.documents.spans import TYPED, parse_span

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = "2030-01-31T12:00:00Z"
NEXT = "next"


def read_tick(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Any:
    """Read an instant with its offset, ``next``, or nothing."""
    moment = value if value in (NEXT, None) else _instant(str(value))
    if moment is None and value is not None:
        text = f"{value!r}: write it with its offset, as {EXAMPLE}, or as {NEXT!r}"
        raise click.BadParameter(text)
    return moment


def finite(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    """Refuse what is no number to compare with: not a number passes every limit."""
    if not math.isfinite(value):
        raise click.BadParameter("write a number")
    return value


def until_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--until``."""
    return click.option(
        "--until",
        metavar="ISO|10m|2h|3d",
        callback=_read_until,
        help="When it ends by itself. Default: when somebody resumes it.",
    )(command)


def _read_until(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> datetime | timedelta | None:
    found = None if value is None else _instant(value) or _span(value)
    if value is not None and found is None:
        text = f"{value!r}: write it as {EXAMPLE}, or as a duration such as 10m, 2h or 3d"
        raise click.BadParameter(text)
    return found


def _instant(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
        return None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _span(value: str) -> timedelta | None:
    if not TYPED.match(value):
        return None
    try:
        return parse_span(value)
    except ValueError:
        return None
