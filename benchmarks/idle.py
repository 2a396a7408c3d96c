"""Ten thousand entries and nothing due: what a beat costs while it waits."""

from __future__ import annotations

import time
from dataclasses import dataclass

from beats import SCHEDULERS, running

ENTRIES = 10_000
SETTLE = 30.0
"""Seconds after the start that are not measured: loading the schedule, registering, warming up."""
SPAN = 20.0


@dataclass
class Idle:
    """What one second of waiting costs: CPU, and commands at the server (scripts' own included)."""

    name: str
    cpu_per_second: float
    commands_per_second: float


def measure() -> list[Idle]:
    """Measure each beat for the same span, one after the other."""
    return [_idle(name) for name in SCHEDULERS]


def _idle(name: str) -> Idle:
    with running(
        name, 'crontab(minute="0", hour="0", day_of_month="29", month_of_year="2")', ENTRIES
    ) as beat:
        time.sleep(SETTLE)
        cpu, commands = beat.cpu_seconds(), beat.commands()
        time.sleep(SPAN)
        return Idle(
            name,
            (beat.cpu_seconds() - cpu) / SPAN,
            (beat.commands() - commands - 1) / SPAN,
        )
