"""The claims of a ledger in this process: what ``claim.lua`` does, tick by tick."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Answer, Grant, Orphan, Verdict, wire
from celery_redlock_beat.ledger.memory_server import NOBODY, Done, Mark, Open
from celery_redlock_beat.ledger.steering import Kind
from celery_redlock_beat.ticks import Tick

if TYPE_CHECKING:
    from celery_redlock_beat.ledger import Ask, Pause
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
        server, tick = self.server, asked.tick
        held, record = server.grant_of(tick), server.marks.get(tick.entry)
        stored = server.changes.get((Kind.ENTRY, tick.entry))
        if asked.revision is not None and asked.revision != stored:
            return Answer(tick, Verdict.CHANGED, -1)
        if record is None and held is None:
            return Answer(tick, Verdict.UNREGISTERED, -1)
        answer = self._ask_known(asked, held, record or Mark(since=self.now))
        if answer.grant is None:
            return answer
        unwanted = tick.at in server.unwanted.get(tick.entry, ())
        return replace(answer, grant=replace(answer.grant, unwanted=unwanted, due_at=asked.due_at))

    def orphan(self, tick: Tick, free_since: Micros) -> Orphan | None:
        """Return an open tick as an orphan, if anybody may take it."""
        held = self.server.grant_of(tick)
        pause = self._pause(tick.entry)
        # Whoever asks for a tick whose entry's pause is over ends it.
        if not isinstance(held, Open) or (pause and not pause.is_over(self.now)):
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

    def _pause(self, entry: str) -> Pause | None:
        told = self.server.paused.get(entry)
        return None if told is None else wire.pause(entry, wire.text(told))

    def _ask_known(self, asked: Ask, held: Open | Done | None, record: Mark) -> Answer:
        server, tick, now = self.server, asked.tick, self.now
        if tick.entry in server.paused:
            return replace(_refusal(tick, Verdict.PAUSED, record), pause=self._pause(tick.entry))
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
