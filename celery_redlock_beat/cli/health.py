"""``celery redlock health``: print whether all is well, for people and probes; it judges not."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import click

from celery_redlock_beat.cli._command import (
    RedlockCommand,
    control_of,
    json_option,
    print_json,
    say,
)
from celery_redlock_beat.cli._probe import Probe, probe
from celery_redlock_beat.cli._tables import fact_lines
from celery_redlock_beat.cli._times import finite
from celery_redlock_beat.cli._words import counts, instant, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.control import Health


@click.command(
    cls=RedlockCommand,
    examples=(
        "health",
        "health --json",
        "celery redlock health --file /run/beat/health",
        "celery redlock health --live --file /run/beat/health --max-age 60",
    ),
    exits={0: "ready, or with --live: alive", 1: "not so"},
)
@click.option("--live", is_flag=True, help="Let the exit code tell whether it is alive, at least.")
@click.option(
    "--file",
    "path",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Ask the file that a node writes (redlock_beat_health_file), and no server.",
)
@click.option(
    "--max-age",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    callback=finite,
    default=30.0,
    show_default=True,
    help="How old the file may be.",
)
@json_option
@click.pass_context
def health(
    ctx: click.Context, *, live: bool, path: Path | None, max_age: float, as_json: bool
) -> None:
    """Tell whether the nodes send what is due, and what is wrong.

    Alive is that the ledger answers, and a node lives; ready is that what is due is sent. With
    --file it is asked for one node, by the file that it writes: neither an app nor Redis is needed.
    """
    if path is None:
        told: Health | Probe = control_of(ctx).health()
    else:
        told = probe(path, max_age, time())
    if as_json:
        print_json(ctx, told)
    else:
        say(ctx, lines_of(told))
    ctx.exit(0 if (told.alive if live else told.ready) else 1)


def verdict(told: Health | Probe) -> str:
    """Return how it stands in one or two words."""
    if told.ready:
        return "ready"
    return "alive, not ready" if told.alive else "not alive"


def lines_of(told: Health | Probe) -> Iterator[str]:
    """Yield the verdict, what is wrong, and the numbers."""
    yield verdict(told)
    yield from (f"  problem: {printable(each)}" for each in told.problems)
    yield from (f"  warning: {printable(each)}" for each in told.warnings)
    if not isinstance(told, Probe):
        yield from fact_lines(list(_facts(told)))


def _facts(told: Health) -> Iterator[tuple[str, str]]:
    since = f", the oldest of {instant(told.oldest_open)}" if told.oldest_open else ""
    yield "nodes", f"{told.nodes:,} alive"
    yield "entries", counts(told.entries)
    yield "open", f"{told.open:,}{since}"
    yield "totals", counts(told.totals)
