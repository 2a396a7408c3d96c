"""Which late ticks are sent and which are passed over, and why; the time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import COUNT_LIMIT, SECOND, Micros, Reason
from celery_redlock_beat.timetables import Interval, Once, Opaque
from celery_redlock_beat.timetables.jitter import due_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.ticks import Timetable

DAY: Micros = 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Policy:
    """What the policies of an entry and the settings come to; durations are microseconds.

    ``tolerance`` is how late a tick may be and still count as on time, for ``catch_up="none"``;
    ``expires`` whether a message does when the next tick is due.
    """

    catch_up: str = "latest"
    window: Micros = DAY
    limit: int = COUNT_LIMIT
    grace: Micros | None = None
    tolerance: Micros = 10 * SECOND
    jitter: Micros = 0
    expires: bool = False
    max_runs: int | None = None
    run_on_start: bool = False
    enabled: bool = True

    def refusal(self, late: Micros) -> Reason | None:
        """Return why a tick that is ``late`` must not be sent, or ``None``."""
        if self.grace is not None and late > self.grace:
            return Reason.GRACE
        allowed = {"none": self.tolerance, "all": self.window}.get(self.catch_up)
        return Reason.WINDOW if allowed is not None and late > allowed else None

    @property
    def reach(self) -> Micros:
        """How late a tick may be that ``catch_up="all"`` sends."""
        return self.window if self.grace is None else min(self.window, self.grace)

    @property
    def tightest(self) -> Micros:
        """How late a tick may be to be sent, where that is limited; else a day."""
        limits = {"all": self.window, "none": self.tolerance}
        return min(limits.get(self.catch_up, DAY), DAY if self.grace is None else self.grace)

    @property
    def passed_over_as(self) -> Reason:
        """The reason for which ticks are passed over without being asked for."""
        if self.catch_up == "latest":
            return Reason.SUPERSEDED
        return Reason.WINDOW if self.reach == self.window else Reason.GRACE


@dataclass(frozen=True, slots=True)
class PassedOver:
    """How many earlier ticks were skipped with one, by reason; ``exact``, or at least so many."""

    counts: Mapping[Reason, int] = field(default_factory=dict)
    exact: bool = True

    @property
    def total(self) -> int:
        """How many they are together."""
        return sum(self.counts.values())


NONE_PASSED_OVER = PassedOver()


@dataclass(slots=True)
class Slot:
    """An entry as the due queue knows it.

    ``cursor`` is the highest mark that the ledger answered; nothing before ``since`` is caught up;
    before ``retry_at`` it is not asked for; ``look_again`` is when an opaque schedule wants to be
    asked after a run, whoever does it. Of a backlog up to ``backlog_end``, what is not later than
    ``floor`` is passed over. ``revision`` is that under which the entry is stored, if it is.
    ``takes_phase`` tells that it is an interval which says no phase of its own.
    """

    name: str
    timetable: Timetable | Opaque
    policy: Policy
    cursor: Micros = 0
    since: Micros = 0
    retry_at: Micros = 0
    look_again: Micros = 0
    floor: Micros = 0
    backlog_end: Micros = 0
    revision: int | None = None
    takes_phase: bool = False

    @property
    def period(self) -> Micros | None:
        """The period of an interval, ``None`` for all else."""
        inner = getattr(self.timetable, "inner", self.timetable)
        return inner.period if isinstance(inner, Interval) else None

    @property
    def goes_on(self) -> bool:
        """Whether it goes on with the phase of the scheduler that sent it before."""
        return bool(getattr(getattr(self.timetable, "inner", self.timetable), "goes_on", False))

    @property
    def own_fingerprint(self) -> str:
        """The fingerprint without a phase that goes on: of that, the ledger decides."""
        if not self.goes_on:
            return self.fingerprint
        own = replace(self)
        own.go_on("")
        return own.fingerprint

    def go_on(self, fingerprint: str) -> None:
        """Have the phase that the ledger has of it, if its entry says none."""
        going_on = getattr(self.timetable, "going_on", None)
        if self.takes_phase and going_on:
            self.timetable = going_on(fingerprint)

    def go_on_from(self, instant: Micros) -> None:
        """Have the phase of a scheduler that sent it at an instant, if its entry says none."""
        if self.period:
            self.go_on(f"interval:{self.period}~{instant % self.period}")

    @property
    def fingerprint(self) -> str:
        """What the ledger knows it by: once that changes, nothing earlier is caught up."""
        disabled = "" if self.policy.enabled else "disabled "
        limit = f"|{self.policy.max_runs} times" if self.policy.max_runs else ""
        return f"{disabled}{self.timetable.fingerprint}{limit}"

    @property
    def is_once(self) -> bool:
        """Whether it is due at one instant only."""
        inner = getattr(self.timetable, "inner", self.timetable)
        return isinstance(inner, Once)

    def due_at(self, tick: Micros) -> Micros:
        """Return when a tick is due: at its instant, or by its jitter later."""
        if not self.policy.jitter or isinstance(self.timetable, Opaque):
            return tick
        return due_at(self.name, tick, self.policy.jitter, self.timetable)

    def refusal(self, tick: Micros, now: Micros) -> Reason | None:
        """Return why a granted tick must not be sent, or ``None``."""
        if tick < self.since:
            return Reason.BEFORE_REGISTRATION
        if self.has_ended_before(tick):
            return Reason.END
        return self.policy.refusal(now - self.due_at(tick))

    def has_ended_before(self, tick: Micros) -> bool:
        """Whether a tick, claimed under another definition, lies behind the end of this one."""
        end = getattr(self.timetable, "end", None)
        return end is not None and tick > end

    def expires_at(self, tick: Micros, now: Micros) -> Micros | None:
        """Return when a message that is sent now is to expire, if ever: when the next tick is due.

        The next one from now on: what is caught up late shall be run as well.
        """
        if not self.policy.expires or isinstance(self.timetable, Opaque):
            return None
        if self.policy.jitter:
            here = self.timetable.latest_until(now)
            if here is not None and here > tick and self.due_at(here) > now:
                return self.due_at(here)
        following = self.timetable.next_after(max(tick, now))
        return None if following is None else self.due_at(following)

    def passed_over(self, previous: Micros, tick: Micros) -> PassedOver:
        """Count the ticks strictly between the previous mark and ``tick``, by reason."""
        if isinstance(self.timetable, Opaque):
            return NONE_PASSED_OVER
        border = min(self.since, tick)
        before = self.timetable.count_between(previous, border)
        after = self.timetable.count_between(max(previous, border - 1), tick)
        counts = {Reason.BEFORE_REGISTRATION: before, self.policy.passed_over_as: after}
        return PassedOver(
            {reason: count.number for reason, count in counts.items() if count.number},
            before.exact and after.exact,
        )
