"""The recovery of a ledger in this process: what ``recover.lua`` does, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.ledger import ESSENTIAL, Grant, Settlement
from celery_redlock_beat.ledger.memory_feed import Feed
from celery_redlock_beat.ledger.memory_server import HOUR, KEPT, Done, Mark, Open, Vouched
from celery_redlock_beat.ledger.testimony import Doubt, Recovery
from celery_redlock_beat.ticks import IN_DOUBT, Tick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery_redlock_beat.ledger.memory_call import Call
    from celery_redlock_beat.ledger.steering import Change
    from celery_redlock_beat.ledger.testimony import Memory, Testimony
    from celery_redlock_beat.ticks import Micros


class Push:
    """One call of ``recover`` by one node, at one instant of its server."""

    def __init__(self, call: Call, seen: int, *, lease: Micros) -> None:
        self.call = call
        self.server = server = call.server
        self.now = call.now
        self.seen = seen
        self.lease = lease
        self.feed = Feed(server, call.now)
        self.refused: list[str] = []
        self.repaired: dict[str, Micros] = {}
        self.in_doubt: list[Tick] = []
        self.held: Sequence[Grant] = ()
        self.lost = server.lost_keys()

    def begin(self, hold_down: Micros) -> None:
        """Start a recovery where this server is another one, or has lost something."""
        server = self.server
        moved = server.recovering is not None or server.identity != server.replid
        if self.lost or (
            server.recovering != server.replid and (moved or self.seen > server.fence)
        ):
            if "open" in self.lost:
                self._rebuild_open()
            server.keepers = set(KEPT)
            if self.lost:
                self.feed.forget(self.lost)
            if len(self.lost) == len(ESSENTIAL):
                server.began = self.now
            server.recovering, server.epoch = server.replid, uuid4().hex
            server.hold_down = self.now + hold_down
        server.fence = max(server.fence, self.seen)

    def take(self, testimony: Testimony) -> None:
        """Raise marks, close what is known settled, and reopen what was never tried."""
        if testimony.memories or testimony.settled or testimony.held:
            self.server.began = 0
        for memory in testimony.memories:
            self._mark(memory)
        for settlement in testimony.settled:
            self._settled(settlement)
        self.held = testimony.held
        for grant in testimony.held:
            self._held(grant)

    def restore(self, changes: Sequence[Change], epoch: str) -> None:
        """Have what was stored, removed, paused and resumed as a node remembers it."""
        server = self.server
        if changes:
            server.began = 0
        # Below the highest revision nobody would hear of it, but at the end of a recovery.
        above = 0 if server.recovering else server.revision
        for change in changes if epoch == server.epoch else ():
            if change.revision > above:
                self.feed.restore(change)

    def end(self, hold_down: Micros) -> Recovery:
        """End the recovery if all is heard, or tell how long to wait, or what is in doubt."""
        server, now = self.server, self.now
        left = self._wait_left(hold_down)
        if left > 0:
            return self._told(left)
        for tick in list(server.open):
            known = server.vouched.get(tick.entry)
            if known and known.is_closed(tick.at):
                held = server.grants.get(tick)
                self._close(tick, held)
                if isinstance(held, Open):
                    server.passed_over[tick] = held.previous
        doubts = [
            Doubt(entry, floor, known.mark)
            for entry, known in server.vouched.items()
            if (floor := max(known.floor, now - HOUR)) < known.mark
        ]
        doubts += [
            Doubt(tick.entry, previous, tick.at) for tick, previous in server.passed_over.items()
        ]
        if not doubts:
            server.vouched.clear()
            self.feed.find_end()
            server.identity, server.recovering, server.hold_down = server.replid, None, 0
        return self._told(0, doubts)

    def resolve(
        self, doubts: Mapping[Doubt, Sequence[Micros]], epoch: str, hold_down: Micros
    ) -> list[Tick]:
        """Close as in doubt what is neither open nor known settled."""
        if doubts:
            self.server.began = 0
        for doubt, instants in doubts.items():
            known = self.server.vouched.get(doubt.entry)
            if known is None or epoch != self.server.epoch or self._wait_left(hold_down):
                continue
            for tick in (Tick(doubt.entry, at) for at in instants):
                is_known = tick in self.server.grants or tick in self.server.open
                if not is_known and not self._is_passed_over(tick):
                    self._close(tick)
            self.server.passed_over.pop(Tick(doubt.entry, doubt.mark), None)
            floor = max(known.floor, doubt.mark)
            self.server.vouched[doubt.entry] = known._replace(floor=floor)
        return self.in_doubt

    def _mark(self, memory: Memory) -> None:
        server, entry = self.server, memory.entry
        record = server.marks.get(entry)
        if record and self.seen < server.repairs.get(entry, 0):
            self.repaired[entry] = record.mark
        elif memory.mark > self.now + HOUR:
            self.refused.append(entry)
        else:
            before = record.mark if record else 0
            raised = self._raise(entry, memory.mark, memory.since, memory.fingerprint, memory.runs)
            known = server.vouched.get(entry, Vouched(0, before, 0, before))
            more = ((memory.closed, memory.still_open),) if memory.still_open else ()
            server.vouched[entry] = Vouched(
                max(known.closed, 0 if more else memory.closed),
                max(known.floor, memory.sure, raised.since),
                raised.mark,
                known.before,
                (*(each for each in known.but_for if each not in more), *more),
            )

    def _settled(self, settlement: Settlement) -> None:
        tick = settlement.grant.tick
        held = self.server.grants.get(tick)
        if isinstance(held, Done) or (held is None and self._was_closed_here(tick)):
            return
        # Above the mark of this copy, what it passed over is in doubt like all else there.
        known = self.server.vouched.get(tick.entry)
        is_here = known is not None and tick.at <= known.before
        if is_here and held and held.previous != settlement.grant.previous:
            self.server.passed_over[tick] = held.previous
            is_here = False
        attempt, told = held.attempt if held else 0, settlement.grant
        grant = Grant(tick, told.fence, attempt, told.previous, 0)
        passed = settlement.passed if is_here else {}
        self.call.close(Settlement(grant, settlement.outcome, passed))

    def _held(self, grant: Grant) -> None:
        server, tick = self.server, grant.tick
        held = server.grants.get(tick)
        is_older = isinstance(held, Open) and held.fence < grant.fence
        is_ours = held is None and not self._was_closed_here(tick)
        if server.recovering is not None and (is_ours or is_older):
            server.grants[tick] = Open(
                self.call.node, grant.fence, grant.attempt, grant.previous, grant.waited
            )
            server.open[tick] = min(grant.deadline, self.now + self.lease)
            self._raise(tick.entry, tick.at, 0, "", 0)

    def _was_closed_here(self, tick: Tick) -> bool:
        """Tell whether this copy had closed a tick that it has no grant of: by its own mark."""
        known = self.server.vouched.get(tick.entry)
        if known is None or tick in self.server.open:
            return False
        return tick.at <= known.before

    def _wait_left(self, hold_down: Micros) -> Micros:
        server = self.server
        if server.recovering is None:
            return 0
        server.hold_down = min(server.hold_down, self.now + hold_down)
        return max(0, server.hold_down - self.now)

    def _raise(self, entry: str, mark: Micros, since: Micros, fingerprint: str, runs: int) -> Mark:
        record, known = self.server.marks.setdefault(entry, Mark()), self.server.vouched.get(entry)
        # A copy that has the mark has its runs, and knows what was skipped since.
        had = min(known.before, record.mark) if known else record.mark  # or has lost since
        if mark > had:
            record.runs = max(record.runs, runs)
        record.mark, record.since = max(record.mark, mark), max(record.since, since)
        record.fingerprint = record.fingerprint or fingerprint
        return record

    def _is_passed_over(self, tick: Tick) -> bool:
        # What an open tick passed over is counted when it is closed, and not in doubt.
        return any(
            each.entry == tick.entry
            and isinstance(held, Open)
            and held.previous < tick.at < each.at
            for each, held in self.server.grants.items()
        )

    def _close(self, tick: Tick, held: Open | Done | None = None) -> None:
        grant = Grant(tick, held.fence if held else 0, 0, tick.at, 0)
        if isinstance(held, Open):
            grant = replace(grant, attempt=held.attempt, previous=held.previous)
        self.call.close(Settlement(grant, IN_DOUBT))
        self.in_doubt.append(tick)

    def _rebuild_open(self) -> None:
        for tick, held in self.server.grants.items():
            if isinstance(held, Open):
                self.server.open.setdefault(tick, self.now + self.lease)

    def _told(self, wait: Micros, doubts: Sequence[Doubt] = ()) -> Recovery:
        grants = self.server.grants
        not_in_force = [
            grant.tick
            for grant in self.held
            if not (isinstance(held := grants.get(grant.tick), Open) and held.fence == grant.fence)
        ]
        return Recovery(
            wait,
            self.refused,
            self.repaired,
            self.lost,
            list(doubts),
            self.in_doubt,
            not_in_force,
            self.server.revision,
            self.server.began,
        )
