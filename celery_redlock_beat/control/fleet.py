"""The nodes as they told of themselves, and what is odd about one beside others; it asks nobody."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from celery_redlock_beat.control.access import moment
from celery_redlock_beat.control.views import NodeView
from celery_redlock_beat.diagnostics.findings import many, span
from celery_redlock_beat.store.heartbeats import heartbeats
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from celery_redlock_beat.store.heartbeats import Heartbeat
    from celery_redlock_beat.store.registry import Condition
    from celery_redlock_beat.ticks import Micros

LARGEST_OFFSET = 1.0
"""Seconds that a node's own clock may be from the ledger's without a remark."""


def beats_of(condition: Condition) -> list[Heartbeat]:
    """Return the heartbeats, those of live nodes first."""
    beats = heartbeats(condition.nodes, condition.told, condition.now)
    return sorted(beats, key=lambda beat: not beat.is_alive)  # and the newest first, as before


def views(beats: Sequence[Heartbeat], now: Micros) -> list[NodeView]:
    """Return the nodes of heartbeats, in the same order, each with remarks."""
    usual = _Usual([beat for beat in beats if beat.is_alive])
    return [_view(beat, [*_remarks(beat, usual, now)]) for beat in beats]


class _Usual:
    """The version and the schedule that most of the live nodes have."""

    def __init__(self, alive: Sequence[Heartbeat]) -> None:
        self.version = _most([beat.version for beat in alive])
        self.schedule = _most([beat.schedule for beat in alive])


def _most(told: Sequence[str]) -> str:
    counted = Counter(each for each in told if each)
    return counted.most_common(1)[0][0] if counted else ""


def _remarks(beat: Heartbeat, usual: _Usual, now: Micros) -> Iterator[str]:
    if beat.left:
        yield "it has left"
    elif not beat.is_alive:
        yield f"silent for {span(now - beat.at)}"
    if not beat.is_alive:
        return
    if beat.version and beat.version != usual.version:
        yield f"version {beat.version}, and others have {usual.version}"
    if beat.schedule and beat.schedule != usual.schedule:
        yield "its schedule from code is another one than that of most nodes"
    if beat.offset is not None and abs(beat.offset) > LARGEST_OFFSET:
        ahead = "ahead of" if beat.offset > 0 else "behind"
        off = span(round(abs(beat.offset) * SECOND))
        yield f"its clock is {off} {ahead} the ledger's"
    yield from beat.problems
    if beat.bad and not beat.problems:
        yield f"it leaves out {many(beat.bad, 'bad entry', 'bad entries')}"


def _view(beat: Heartbeat, remarks: Sequence[str]) -> NodeView:
    return NodeView(
        id=beat.node,
        alive=beat.is_alive,
        left=beat.left,
        heartbeat=moment(beat.at),
        host=beat.host,
        pid=beat.pid,
        version=beat.version,
        started=None if beat.started is None else moment(beat.started),
        offset=beat.offset,
        schedule=beat.schedule,
        entries=beat.entries,
        bad_entries=beat.bad,
        lateness=beat.lateness,
        ready=beat.ready,
        remarks=remarks,
    )
