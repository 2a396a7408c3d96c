"""What is done to each contender, the same to all, at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trial import Trial

AWAY = 1.5
FROZEN = 8.0
BEHIND = 0.5


@dataclass(frozen=True)
class Fault:
    """One row: what happens to a trial; ``quick`` ones are shown even in a short run."""

    name: str
    strike: Callable[[Trial], None]
    replicated: bool = False
    quick: bool = False


FAULTS = (
    Fault("none", lambda _: None),
    Fault("the node that sends is killed", lambda trial: trial.kill_the_sender(), quick=True),
    Fault(
        f"the node that sends is frozen for {FROZEN:g} s",
        lambda trial: trial.freeze_the_sender(FROZEN),
    ),
    Fault(
        f"Redis restarts with its data, away for {AWAY:g} s",
        lambda trial: trial.broker.restart(AWAY),
        quick=True,
    ),
    Fault("Redis loses its data (FLUSHALL)", lambda trial: trial.broker.flush(), quick=True),
    Fault(
        f"failover to a replica {BEHIND:g} s behind, away for {AWAY:g} s",
        lambda trial: trial.broker.fail_over(BEHIND, AWAY),
        replicated=True,
    ),
)
