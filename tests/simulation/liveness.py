"""Whether a fleet whose faults are over has come to rest: nothing late is open, owed or stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, Micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from celery_redlock_beat.ledger.memory_server import Mark
    from simulation.plan import Job
    from simulation.world import World

SOON: Micros = 3 * SECOND
"""How old a tick or a node's last claim may be in a fleet that is well."""


def unsettled(world: World) -> Iterator[str]:
    """Say what keeps the fleet from being at rest."""
    server, past = world.server, world.server.clock() - SOON
    if server.recovering is not None:
        yield "a recovery is running"
    for tick in server.open:
        if tick.at < past:
            yield f"{tick} is open"
    for entry in server.paused:
        yield f"{entry!r} is paused"
    for entry, job in world.jobs.items():
        record = server.marks.get(entry)
        if record is None or not has_all(record, job, past):
            yield f"{entry!r} has ticks that nobody asked for"
    for node in world.nodes:
        if world.baton.now - world.oracle.minds[node].claimed_at > SOON:
            yield f"{node.name} claims nothing"
        if node.news:
            yield f"{node.name} has not heard of a deploy"


def has_all(record: Mark, job: Job, until: Micros) -> bool:
    """Whether an entry's ticks were all asked for, or it has run as often as it may."""
    limit = job.policy.max_runs
    is_over = limit is not None and record.runs >= limit
    return is_over or record.mark >= job.timetable.latest_until(until)
