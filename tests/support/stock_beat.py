"""Celery's own beat, driven through simulated time; it must not know anything of ours.

It is the real class, with its own heap, entries and crontabs.  Only the clock is not, and what it
would send is written down.
"""

from __future__ import annotations

import copy
import datetime as dt
from typing import TYPE_CHECKING

from celery import Celery
from celery.beat import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from celery.schedules import crontab

SECOND = dt.timedelta(seconds=1)
PASS = dt.timedelta(milliseconds=10)
"""How long a pass takes: beat wakes up by so much too early, and then looks again and again."""


class Clockwork(Celery):
    """An app that is told what time it is."""

    at: dt.datetime

    def now(self) -> dt.datetime:
        return self.at.astimezone(self.timezone)


class StockBeat(Scheduler):
    """The stock scheduler, which notes in ``sent`` what it would send, and when."""

    producer = None

    def __init__(self, *args, **kwargs):
        self.sent: list[tuple[str, dt.datetime]] = []
        super().__init__(*args, **kwargs)

    def apply_async(self, entry, producer=None, advance=True, **kwargs):
        self.sent.append((entry.name, self.app.at))

    def run(
        self,
        until: dt.datetime,
        closely: Iterable[tuple[dt.datetime, dt.datetime]] = (),
        a_pass: dt.timedelta = PASS,
    ) -> list[tuple[str, dt.datetime]]:
        """Run up to an instant as ``celery beat`` does, and return what it sent, by the second.

        It sleeps for as long as its own ``tick`` says, but within the spans to be watched
        ``closely`` for no longer than a second.
        """
        app = self.app
        while app.at < until:
            delay = dt.timedelta(seconds=self.tick())
            if any(begin <= app.at <= end for begin, end in closely):
                delay = min(delay, SECOND)
            app.at += max(delay, a_pass)
        return [(name, at.replace(microsecond=0)) for name, at in self.sent]


def start_stock_beat(
    crontabs: Mapping[str, crontab], zone: str, start: dt.datetime, longest_sleep: int = 300
) -> StockBeat:
    """Return a beat that starts at an instant, in an app with a ``timezone``."""
    app = Clockwork(set_as_current=False)
    app.at = start
    app.conf.update(
        timezone=zone,
        beat_max_loop_interval=longest_sleep,
        result_expires=None,  # else it has an entry of its own
        beat_schedule={
            # A crontab keeps the zone of the first app that it is used in.
            name: {"task": "any", "schedule": copy.copy(spec)}
            for name, spec in crontabs.items()
        },
    )
    return StockBeat(app)
