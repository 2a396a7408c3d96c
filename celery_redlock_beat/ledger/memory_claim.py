"""The claims of a ledger in this process: what ``claim.lua`` does, tick by tick."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Answer, Grant, Orphan, Verdict, wire
from celery_redlock_beat.ledger.memory_server import NOBODY, Mark, Open
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from celery_redlock_beat.ledger import Ask
    from celery_redlock_beat.ledger.memory_server import MemoryServer
    from celery_redlock_beat.ticks import Micros

MOST_NAMED = 32


class Asking:
    """One call of ``claim`` by one node, at one instant of its server."""

    def __init__(self, server: MemoryServer, now: Micros, node: str, lease: Micros) -> None:
        self.server = server
        self.now = now
        self.node = node
        self.lease = lease

    def ask(self, asked: Ask) -> Answer:
        """Answer one ask by what is found, in the order of the script."""
        server, tick, now = self.server, asked.tick, self.now
        held, record = server.grant_of(tick), server.marks.get(tick.entry)
        if record is None:
            if held is None:
                return Answer(tick, Verdict.UNREGISTERED, -1)
            record = Mark(since=now)
        if tick.entry in server.paused:
            pause = wire.pause(tick.entry, server.paused[tick.entry])
            return replace(_refusal(tick, Verdict.PAUSED, record), pause=pause)
        if asked.due_at > now:
            return _refusal(tick, Verdict.EARLY, record, asked.due_at - now)
        if held is not None and tick.at > record.mark:
            # Its run was lost with its mark, unless an operator set the mark back.
            record.runs += tick.entry not in server.repairs
            record.mark, server.marks[tick.entry] = tick.at, record
        if isinstance(held, Open):
            return self._ask_open(tick, held, record)
        if tick.at <= record.mark or asked.expected not in (None, record.mark):
            return _refusal(tick, Verdict.SETTLED, record)
        refused = self._beyond(asked.limit, tick, record) if asked.limit is not None else None
        return refused or self._ask_new(tick, record)

    def orphan(self, tick: Tick, free_since: Micros) -> Orphan | None:
        """Return an open tick as an orphan, if anybody may take it."""
        held = self.server.grant_of(tick)
        if not isinstance(held, Open) or tick.entry in self.server.paused:
            return None
        return Orphan(tick, free_since, held.attempt)

    def named(self) -> dict[Tick, Micros] | None:
        """Return all open ticks, each with the mark before its grant, unless they are too many."""
        if len(self.server.open) > MOST_NAMED:
            return None
        held = {tick: self.server.grants.get(tick) for tick in self.server.open}
        return {
            tick: grant.previous if isinstance(grant, Open) else tick.at - 1
            for tick, grant in held.items()
        }

    def _ask_open(self, tick: Tick, held: Open, record: Mark) -> Answer:
        deadline = self.server.open.get(tick, 0)
        if deadline <= self.now:
            return _granted(Verdict.GRANTED, self._grant(tick, held), record)
        if held.owner == self.node:
            mine = Grant(tick, held.fence, held.attempt, held.previous, deadline, held.waited)
            return _granted(Verdict.MINE, mine, record)
        return _refusal(tick, Verdict.HELD, record, deadline - self.now)

    def _beyond(self, limit: int, tick: Tick, record: Mark) -> Answer | None:
        """Return what stands against one more tick of an entry that may have so many runs."""
        opened = self.server.open
        ends = opened.get(Tick(tick.entry, record.mark))
        if ends is None and record.runs >= limit:
            ends = min(
                (at for each, at in opened.items() if each.entry == tick.entry), default=None
            )
        if ends is not None:
            return _refusal(tick, Verdict.HELD, record, max(0, ends - self.now))
        return _refusal(tick, Verdict.FINISHED, record) if record.runs >= limit else None

    def _ask_new(self, tick: Tick, record: Mark) -> Answer:
        granted = self._grant(tick, Open(NOBODY, 0, 0, record.mark))
        record.mark, record.fence, record.runs = tick.at, granted.fence, record.runs + 1
        return _granted(Verdict.GRANTED, granted, record)

    def _grant(self, tick: Tick, held: Open) -> Grant:
        server, deadline = self.server, self.now + self.lease
        fence, attempt = server.next_fence(self.now), held.attempt + 1
        server.grants[tick] = held._replace(owner=self.node, fence=fence, attempt=attempt)
        server.open[tick] = deadline
        return Grant(tick, fence, attempt, held.previous, deadline, held.waited)


def _refusal(tick: Tick, verdict: Verdict, record: Mark, wait: Micros = 0) -> Answer:
    return Answer(tick, verdict, record.mark, wait, runs=record.runs)


def _granted(verdict: Verdict, grant: Grant, record: Mark) -> Answer:
    return Answer(grant.tick, verdict, record.mark, grant=grant, runs=record.runs)
