"""Which late ticks are sent and which are passed over, and why; the time is an argument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, Micros, Reason
from celery_redlock_beat.timetables.opaque import Opaque

if TYPE_CHECKING:
    from celery_redlock_beat.ticks import Timetable

DAY: Micros = 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens to late ticks: which are sent, how far back, how late at most.

    ``tolerance`` is how late a tick may be and still count as on time, for ``catch_up="none"``.
    """

    catch_up: str = "latest"
    window: Micros = DAY
    grace: Micros | None = None
    tolerance: Micros = 10 * SECOND

    def refusal(self, late: Micros) -> Reason | None:
        """Return why a tick that is ``late`` must not be sent, or ``None``."""
        if self.grace is not None and late > self.grace:
            return Reason.GRACE
        allowed = {"none": self.tolerance, "all": self.window}.get(self.catch_up)
        return Reason.WINDOW if allowed is not None and late > allowed else None

    @property
    def reach(self) -> Micros:
        """How far back ``catch_up="all"`` asks for ticks."""
        return self.window if self.grace is None else min(self.window, self.grace)

    @property
    def passed_over_as(self) -> Reason:
        """The reason for which ticks are passed over without being asked for."""
        if self.catch_up == "latest":
            return Reason.SUPERSEDED
        return Reason.WINDOW if self.reach == self.window else Reason.GRACE


@dataclass(slots=True)
class Slot:
    """An entry as the due queue knows it.

    ``cursor`` is the highest mark that the ledger answered; nothing before ``since`` is caught up;
    before ``retry_at`` it is not asked for; ``look_again`` is when an opaque schedule wants to be
    asked after a run, whoever does it.
    """

    name: str
    timetable: Timetable | Opaque
    policy: Policy
    cursor: Micros = 0
    since: Micros = 0
    retry_at: Micros = 0
    look_again: Micros = 0

    def refusal(self, tick: Micros, now: Micros) -> Reason | None:
        """Return why a granted tick must not be sent, or ``None``."""
        if tick < self.since:
            return Reason.BEFORE_REGISTRATION
        return self.policy.refusal(now - tick)

    def passed_over(self, previous: Micros, tick: Micros) -> dict[Reason, int]:
        """Count the ticks strictly between the previous mark and ``tick``, by reason."""
        if isinstance(self.timetable, Opaque):
            return {}
        border = min(self.since, tick)
        before = self.timetable.count_between(previous, border).number
        after = self.timetable.count_between(max(previous, border - 1), tick).number
        counts = {Reason.BEFORE_REGISTRATION: before, self.policy.passed_over_as: after}
        return {reason: number for reason, number in counts.items() if number}
