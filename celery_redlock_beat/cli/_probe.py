"""Whether the node that wrote a health file is alive and ready; it reaches no server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.health_file import Health, read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether one node is alive and ready, with what is wrong; ``age`` is in seconds."""

    alive: bool
    ready: bool
    problems: Sequence[str]
    warnings: Sequence[str] = ()
    node: str = ""
    age: float | None = None


def probe(path: Path, max_age: float, now: float) -> Probe:
    """Ask the file that a node writes again and again; ``now`` is in seconds since the epoch.

    A node is alive if it wrote it no longer than ``max_age`` seconds ago, and ready if it says so.
    """
    told = read(path)
    if isinstance(told, str):
        return Probe(alive=False, ready=False, problems=[told])
    age = now - told.at
    if abs(age) > max_age:
        problems = [_out_of_date(age, max_age), *told.problems]
        return Probe(alive=False, ready=False, problems=problems, node=told.node, age=age)
    problems = list(told.problems) or _unsaid(told)
    return Probe(alive=True, ready=told.ready, problems=problems, node=told.node, age=age)


def _out_of_date(age: float, max_age: float) -> str:
    if age < 0:
        return f"it was written {-age:.0f} s ahead of this clock, which was set back"
    return f"it was written {age:.0f} s ago, and not within {max_age:g} s: beat hangs, or has died"


def _unsaid(told: Health) -> list[str]:
    return [] if told.ready else ["the node says that it is not ready"]
