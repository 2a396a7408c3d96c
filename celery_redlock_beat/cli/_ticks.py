"""How ticks are asked for and printed, for ``next`` and ``explain``; it computes none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.diagnostics.findings import instant
from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.timetables.zones import Zone, zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.diagnostics.schedules import Forthcoming, Outlook

MOST = 1000
YEARS = range(1970, 2256)


def _begin(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime:
    """Read a moment, with or without an offset; by default it is now."""
    if value is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r}: write it as 2030-01-31T12:00 or 2030-01-31") from None
    if moment.year not in YEARS:
        raise click.BadParameter(f"{value!r}: it must lie between {YEARS[0]} and {YEARS[-1]}")
    return moment


def _zone(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Zone | None:
    try:
        return None if value is None else zone_of(value)
    except ConfigurationError as exc:
        raise click.BadParameter(str(exc)) from None


def ticks_options(number: int, zone_help: str) -> Callable[[Any], Any]:
    """Return the decorator that adds ``-n``, ``--from`` and ``--timezone``."""
    options = [
        click.option(
            "-n",
            "number",
            type=click.IntRange(1, MOST),
            default=number,
            show_default=True,
            help="How many ticks.",
        ),
        click.option(
            "--from",
            "begin",
            metavar="ISO",
            callback=_begin,
            help="From when on, as 2030-01-31T12:00; in the zone that is shown, unless it has an "
            "offset. Default: now.",
        ),
        click.option("--timezone", "zone", metavar="ZONE", callback=_zone, help=zone_help),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def lines_of(outlook: Outlook) -> Iterator[str]:
    """Yield the lines that tell of one entry."""
    yield outlook.name
    for name, value in outlook.facts.items():
        yield f"  {name:<9} {value}"
    for tick in outlook.ticks:
        yield "  " + "  ".join(_columns(tick))
    if outlook.end:
        yield f"  {outlook.end}"


def document_of(name: str, outlook: Outlook) -> dict[str, Any]:
    """Return what tells of one entry as JSON can have it; ``due`` is null if it is the tick."""
    ticks = [
        {
            "tick": instant(each.at),
            "local": each.local.isoformat(),
            "due": each.due.isoformat() if each.due else None,
            "remarks": list(each.remarks),
        }
        for each in outlook.ticks
    ]
    return {"name": name, "facts": dict(outlook.facts), "ticks": ticks, "end": outlook.end}


def _columns(tick: Forthcoming) -> Iterator[str]:
    yield _told(tick.local)
    if tick.local.tzinfo is not UTC:
        yield instant(tick.at)
    if tick.due:
        same_day = tick.due.date() == tick.local.date()
        yield f"due {tick.due.time().isoformat() if same_day else _told(tick.due)}"
    if tick.remarks:
        yield f"({'; '.join(tick.remarks)})"


def _told(moment: datetime) -> str:
    return f"{moment:%a} {moment.isoformat(' ')}"
