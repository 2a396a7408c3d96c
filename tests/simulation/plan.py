"""What a seed chooses: how large the fleet is, what it sends how, and which faults may happen.

Each seed enables some kinds of faults only, so that there are quiet runs, runs with one kind, and
runs with all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from celery_redlock_beat.lateness import Policy
from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.timetables.cron import Cron
from celery_redlock_beat.timetables.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

NAMESPACE = "simulation"
START: Micros = 1_800_000_000 * SECOND
TIMETABLES = (
    *(Interval(seconds * SECOND) for seconds in (1, 2, 3, 5)),
    Interval(2_500_000, phase=700_000),
    Cron("*/4 * * * * *", "UTC"),
)
LIMITS = (None, None, None, None, None, None, None, 1, 4, 9)
"""How many runs an entry may have."""
NAMES = ("tidy", "send: mail", "über", "sync", "poll")
DELIVERIES = ("enqueue", "enqueue", "enqueue", "publish", "at_most_once")
CALL_FAULTS = ("request lost", "reply lost", "late request", "slow call")
ENDS_IN_CALLS = ("crash in a call", "stop in a call")
BROKER_FAULTS = (
    "broker unreachable",
    "delivery failed",
    "delivery failed but out",
    "late message",
    "slow broker",
)
EVENTS = {
    "crash": 10,
    "leave": 15,
    "join": 20,
    "stop": 6,
    "cut": 8,
    "server down": 15,
    "broker away": 10,
    "deploy": 6,
    "pause entry": 12,
    "restart": 12,
    "failover": 10,
    "flush": 20,
    "lost key": 20,
    "clock": 15,
}
"""Timed faults, and how many seconds lie between two of a kind on average."""


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of the schedule, as the deploys know it."""

    timetable: Interval | Cron
    policy: Policy


@dataclass
class Plan:
    """All that is fixed before a run begins."""

    nodes: int
    delivery: str
    lease: Micros
    timeout: Micros
    poll: Micros
    latency: Micros
    duration: Micros
    jobs: dict[str, Job]
    call_faults: dict[str, float] = field(default_factory=dict)
    broker_faults: dict[str, float] = field(default_factory=dict)
    ends_in_calls: dict[str, float] = field(default_factory=dict)
    lost_writes: float = 0.0
    stop_at_clock: float = 0.0
    events: list[tuple[Micros, str]] = field(default_factory=list)

    hold_down: Micros = 3 * SECOND

    def told(self) -> str:
        """Say in one line what was chosen."""
        jobs = ", ".join(
            f"{name!r} {job.timetable.fingerprint} {job.policy.catch_up}"
            + (f" at most {job.policy.max_runs}" if job.policy.max_runs else "")
            for name, job in self.jobs.items()
        )
        kinds = {
            *self.call_faults,
            *self.broker_faults,
            *self.ends_in_calls,
            *(["lost write"] if self.lost_writes else []),
            *(["stop at clock"] if self.stop_at_clock else []),
            *(kind for _, kind in self.events),
        }
        return (
            f"{self.nodes} nodes, {self.delivery}, lease {self.lease / SECOND:g} s, "
            f"{self.duration / SECOND:g} s of [{jobs}], "
            f"faults: {', '.join(sorted(kinds)) or 'none'}"
        )


def job_by(rng: Random, lease: Micros) -> Job:
    catch_up = rng.choice(("all", "latest", "none"))
    grace = rng.choice((None, None, None, 3 * SECOND))
    window = rng.choice((86_400 * SECOND, 10 * SECOND))
    max_runs = rng.choice(LIMITS)
    policy = Policy(catch_up, window, grace=grace, tolerance=2 * lease, max_runs=max_runs)
    return Job(rng.choice(TIMETABLES), policy)


def plan_by(rng: Random) -> Plan:
    """Choose everything by one source of chance."""
    lease = rng.choice((2, 5, 5)) * SECOND
    names = rng.sample(NAMES, rng.choice((1, 2, 3)))
    plan = Plan(
        nodes=rng.choice((2, 2, 3, 3, 4, 5)),
        delivery=rng.choice(DELIVERIES),
        lease=lease,
        timeout=rng.choice((SECOND // 4, SECOND)),
        poll=rng.choice((SECOND // 2, SECOND // 2, SECOND)),
        latency=rng.choice((300, 2_000, 20_000)),
        duration=rng.randint(12, 24) * SECOND,
        jobs={name: job_by(rng, lease) for name in names},
    )
    _choose_faults(plan, rng, rng.choice((0.0, 0.15, 0.3, 0.5)))
    return plan


def _choose_faults(plan: Plan, rng: Random, boldness: float) -> None:
    """Enable some kinds of faults: each with the same chance, rare ones with half of it."""

    def some(kinds: Iterable[str], chance: float, rates: tuple[float, ...]) -> dict[str, float]:
        return {kind: rng.choice(rates) for kind in kinds if rng.random() < chance}

    rarely = boldness / 2
    plan.call_faults = some(CALL_FAULTS, boldness, (0.01, 0.04, 0.1))
    if plan.delivery != "enqueue":
        plan.broker_faults = some(BROKER_FAULTS, boldness, (0.02, 0.1, 0.2))
    plan.ends_in_calls = some(ENDS_IN_CALLS, rarely, (0.005, 0.02))
    plan.lost_writes = some(["lost write"], rarely, (0.01, 0.05)).get("lost write", 0.0)
    plan.stop_at_clock = some(["stop at clock"], rarely, (0.001,)).get("stop at clock", 0.0)
    scarcity = rng.choice((0.5, 1.0, 2.0))
    for kind in some(EVENTS, boldness, (1.0,)):
        plan.events += _times(rng, kind, EVENTS[kind] * scarcity, plan.duration)
    plan.events.sort()


def _times(rng: Random, kind: str, mean: float, duration: Micros) -> list[tuple[Micros, str]]:
    times = []
    at = SECOND + round(rng.expovariate(1 / mean) * SECOND)
    while at < duration:
        times.append((at, kind))
        at += round(rng.expovariate(1 / mean) * SECOND)
    return times
