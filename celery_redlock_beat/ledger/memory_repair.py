"""The repair of marks of a ledger in this process: what ``repair.lua`` does; no other verb may."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.ledger.memory_server import Done, Mark
from celery_redlock_beat.ticks import IN_DOUBT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.ledger.memory_server import MemoryServer
    from celery_redlock_beat.ticks import Micros


def repair(
    server: MemoryServer, now: Micros, marks: Mapping[str, Micros | None], who: str, why: str
) -> dict[str, tuple[str, Micros]]:
    """Set marks, also downwards; return the text of each record before, and the mark."""
    done: dict[str, tuple[str, Micros]] = {}
    fence, server.epoch = server.next_fence(now), uuid4().hex
    for entry, wanted in marks.items():
        mark = now if wanted is None else wanted
        before = server.marks[entry].text if entry in server.marks else ""
        record = server.marks.setdefault(entry, Mark(since=mark))
        record.mark, record.since = mark, min(record.since, mark)
        server.repairs[entry] = fence
        server.audit.append(
            {"at": str(now), "who": who, "entry": entry, "from": before}
            | {"to": str(mark), "why": why}
        )
        done[entry] = before, mark
    doubtful = [
        tick
        for tick, held in server.grants.items()
        if isinstance(held, Done) and held.outcome == IN_DOUBT.text
    ]
    for tick in [*server.open, *doubtful]:
        if tick.entry in done and tick.at > done[tick.entry][1]:
            server.open.pop(tick, None)
            server.settled.pop(tick, None)
            server.grants.pop(tick, None)
    return done
