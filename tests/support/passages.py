"""The ledger's history, read as plain data: what was closed, and what was skipped with it.

It judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ledger.redis_scripts import ledger_keys

if TYPE_CHECKING:
    from redis import Redis

    from celery_redlock_beat.ticks import Micros


@dataclass(frozen=True, slots=True)
class Passage:
    """A record of the history: a tick closed, or a deed that ended ticks.

    ``counted`` ticks after ``previous`` were skipped with it; those before ``tick``, or with a deed
    also that one.
    """

    entry: str
    tick: Micros
    previous: Micros
    outcome: str
    counted: int
    passed: str = ""

    @property
    def closes(self) -> bool:
        """Whether its tick itself is what it tells of."""
        return self.outcome.partition(":")[0] in {"sent", "skipped", "in_doubt"}

    def has_passed(self, at: Micros) -> bool:
        """Whether a tick may be among those that were skipped with it."""
        return self.previous < at < self.tick + (not self.closes) and self.counted > 0


def history(client: Redis, namespace: str) -> list[Passage]:
    """Read all of the history."""
    told: Any = client.xrange(ledger_keys(namespace)["history"])
    return [
        _passage({key.decode(): value.decode() for key, value in row.items()}) for _, row in told
    ]


def _passage(row: Mapping[str, str]) -> Passage:
    counted = sum(int(part.split(" ")[1]) for part in row["passed"].split(",") if part)
    where = int(row["tick"]), int(row["previous"])
    return Passage(row["entry"], *where, row["outcome"], counted, row["passed"])
