"""Who is compared: a scheduler, how many nodes of it, and the settings that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

ENTRIES = 5
PERIOD = 1.0
TASK = "peers.entry_{}"
PROJECT = """
from celery import Celery

app = Celery("peers", broker={broker!r})
app.conf.redbeat_redis_url = {broker!r}
app.conf.update({settings!r})
app.conf.beat_schedule = {schedule!r}
"""


@dataclass(frozen=True)
class Contender:
    """One column: ``package`` is what must be installed, besides Celery."""

    name: str
    scheduler: str
    nodes: int = 3
    settings: Mapping[str, Any] = field(default_factory=dict)
    package: str = "celery"

    @property
    def installed(self) -> bool:
        try:
            return bool(version(self.package))
        except PackageNotFoundError:
            return False

    def project(self, broker: str) -> str:
        """Return the source of its Celery project, the same for all but for the settings."""
        schedule = {task: {"task": task, "schedule": PERIOD} for task in tasks()}
        return PROJECT.format(broker=broker, settings=dict(self.settings), schedule=schedule)


def tasks() -> list[str]:
    """Return the names of the tasks, one per entry."""
    return [TASK.format(number) for number in range(ENTRIES)]


STOCK = "celery.beat:PersistentScheduler"
REDBEAT = "redbeat.RedBeatScheduler"
CONTENDERS = (
    Contender("stock beat, 1 node", STOCK, nodes=1),
    Contender("stock beat, 3 nodes", STOCK),
    Contender("RedBeat, 3 nodes", REDBEAT, package="celery-redbeat"),
    Contender(
        "RedBeat, 3 nodes, lock 10 s",
        REDBEAT,
        settings={
            "redbeat_lock_timeout": 10,
            "beat_max_loop_interval": 2,  # which is also how often the others try to get the lock
            "redbeat_redis_options": {"retry_period": 30},
        },
        package="celery-redbeat",
    ),
    Contender("redlock, 3 nodes", "redlock", package="celery-redlock-beat"),
    Contender(
        "redlock, 3 nodes, catch up all",
        "redlock",
        settings={"redlock_beat_catch_up": "all"},
        package="celery-redlock-beat",
    ),
)
