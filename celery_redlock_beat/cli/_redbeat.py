"""What the commands about RedBeat share: where it is, and whether one runs; it moves no entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from celery_redlock_beat.cli._command import app_of
from celery_redlock_beat.cli._words import length
from celery_redlock_beat.clock import wall_micros
from celery_redlock_beat.predecessors.redbeat.keys import Keys, held_by
from celery_redlock_beat.predecessors.redbeat.lock import OURS
from celery_redlock_beat.predecessors.redbeat.place import connect, label
from celery_redlock_beat.predecessors.redbeat.records import read
from celery_redlock_beat.predecessors.redbeat.settings import RedBeatSettings
from celery_redlock_beat.ticks import to_datetime
from celery_redlock_beat.timetables import app_zone

if TYPE_CHECKING:
    from datetime import datetime

    from celery_redlock_beat.predecessors.redbeat.records import Record
    from celery_redlock_beat.timetables.zones import Zone


@dataclass(frozen=True)
class RedBeat:
    """A RedBeat's data: ``label`` is where, without a password; ``now`` when it was opened."""

    client: Any
    keys: Keys
    label: str
    zone: Zone
    now: datetime

    def records(self) -> list[Record]:
        """Return its entries."""
        return read(self.client, self.keys, self.zone, self.now)

    def holder(self) -> str:
        """Return that a RedBeat holds its lock, and how long; empty where none does.

        By the interlock, our own nodes may have it.
        """
        held = held_by(self.client, self.keys)
        if held is None or held[0].startswith(OURS.encode()):
            return ""
        ends = f", which ends in {length(held[1])} if it is not renewed" if held[1] else ""
        return f"a RedBeat holds its lock{ends}"


def opened(ctx: click.Context, prefix: str | None, url: str | None) -> RedBeat:
    """Return the app's RedBeat, or that of a prefix and a URL; it is closed with the command."""
    app = app_of(ctx)
    settings = RedBeatSettings.from_app(app)
    client = connect(app, settings, url)
    ctx.call_on_close(client.close)
    place = label(app, settings, url)
    return RedBeat(
        client, Keys.of(settings, prefix), place, app_zone(app), to_datetime(wall_micros())
    )


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--prefix`` and ``--url``."""
    for option in (
        click.option("--url", help="Default: redbeat_redis_url, or else the broker's."),
        click.option("--prefix", help="Default: redbeat_key_prefix, or else 'redbeat:'."),
    ):
        command = option(command)
    return command
