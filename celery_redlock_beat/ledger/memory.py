"""The ledger in this process, for ``memory://`` and tests: each verb does what its script does.

Nothing here may answer, count or check otherwise than the scripts, or in another order; one suite
holds both to it. It is no ledger for production: other processes do not see it.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.errors import DeliveryImpossible, LedgerRecovering
from celery_redlock_beat.ledger import (
    MAY_MISS,
    MOST_PER_CALL,
    SETTLED_KEPT,
    Claimed,
    Closing,
    Record,
    Release,
    Settlement,
)
from celery_redlock_beat.ledger.memory_claim import Asking
from celery_redlock_beat.ledger.memory_recovery import Push
from celery_redlock_beat.ledger.memory_server import (
    DAY,
    MINUTE,
    NOBODY,
    Done,
    Mark,
    MemoryServer,
    Open,
    until,
)
from celery_redlock_beat.ticks import IN_DOUBT, SECOND, SENT, Tick

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from celery_redlock_beat.ledger import (
        Ask,
        Command,
        Doubt,
        Grant,
        Recovery,
        Registration,
        Testimony,
    )
    from celery_redlock_beat.ticks import Micros, Reason

__all__ = ["MemoryLedger", "MemoryServer"]


class MemoryLedger:
    """One node's hold on a :class:`MemoryServer`."""

    marks_key = "marks"

    def __init__(
        self,
        server: MemoryServer,
        *,
        node: str | None = None,
        lease: Micros = 5 * SECOND,
        hold_down: Micros = 3 * SECOND,
        settled_kept: Micros = SETTLED_KEPT,
        clock: LedgerClock | None = None,
    ) -> None:
        self._server = server
        self._clock = clock or LedgerClock()
        self._lease = lease
        self._keep = max(lease, settled_kept)
        self._hold_down = hold_down
        self.node = node or uuid4().hex
        self.epoch = "-"
        self.fence = 0

    def sibling(self) -> MemoryLedger:
        """Return the same node once more, for use beside an unfinished call."""
        return copy(self)

    def register(self, registrations: Sequence[Registration]) -> list[Record | None]:
        """Make entries known, and answer their records in the same order."""
        with self._call("register") as now:
            return [self._register(each, now) for each in registrations]

    def attend(self, entries: Sequence[str]) -> None:
        """Tell that this node still has these entries."""
        with self._call("attend") as now:
            self._server.present.update(dict.fromkeys(entries, now))

    def claim(self, asks: Sequence[Ask], cursor: int = 0) -> Claimed:
        """Ask for at most ``MOST_PER_CALL`` ticks, ascending per entry, and for orphans."""
        server = self._server
        with self._call("claim") as now:
            server.nodes[self.node] = now
            server.end_leases_of_a_later_clock(now + self._lease + 10 * MINUTE, now)
            for silent in [node for node, at in server.nodes.items() if at <= now - DAY]:
                del server.nodes[silent]
            asking = Asking(server, now, self.node, self._lease)
            answers = [asking.ask(each) for each in asks]
            free = until(server.open, now)[cursor : cursor + MOST_PER_CALL]
            return Claimed(
                now,
                answers,
                [orphan for tick, since in free if (orphan := asking.orphan(tick, since))],
                0 if len(free) < MOST_PER_CALL else cursor + MOST_PER_CALL,
                min((ends for ends in server.open.values() if ends > now), default=None),
                asking.named(),
            )

    def settle(self, settlements: Sequence[Settlement]) -> list[Closing]:
        """Close open ticks with their outcomes, counting what was passed over."""
        closings = []
        with self._call("settle") as now:
            for each in settlements:
                held = self._server.grants.get(each.grant.tick)
                closing = self._server.may_close(each.grant)
                if closing is Closing.DONE:
                    self._server.close(each, now, self._keep)
                    self._take_back_run(each, held)
                closings.append(closing)
        return closings

    def enqueue(
        self, grant: Grant, commands: Sequence[Command], passed: Mapping[Reason, int]
    ) -> Closing:
        """Push a message and settle its tick as sent, in one step or not at all."""
        server = self._server
        with self._call("enqueue") as now:
            closing = server.may_close(grant)
            if closing is not Closing.DONE:
                return closing
            if grant.tick.entry in server.paused:
                return Closing.PAUSED
            pushed = [command.key for command in commands if command.name == "LPUSH"]
            wrong = next((key for key in pushed if key in server.not_lists), None)
            if wrong is None:
                for command in commands:
                    server.push(command)
                server.close(Settlement(grant, SENT, passed), now, self._keep)
                return closing
        raise DeliveryImpossible(
            f"the key {wrong!r} of its queue is not a list; delete or rename it"
        )

    def release(self, grants: Sequence[Grant], back_off: Micros, why: Release) -> None:
        """Give grants back: the ticks stay open, without an owner, until the back-off ends."""
        server = self._server
        with self._call("release") as now:
            for grant in grants:
                held = server.grants.get(grant.tick)
                if not isinstance(held, Open) or held.fence != grant.fence:
                    continue
                if held.owner == NOBODY:
                    continue  # given back already, and the reply was lost
                server.grants[grant.tick] = held._replace(
                    owner=NOBODY,
                    attempt=held.attempt - (why is not Release.FAILED),
                    waited=held.waited or why is not Release.UNTRIED,
                )
                server.open[grant.tick] = now + back_off

    def recover(self, testimony: Testimony) -> Recovery:
        """Push what this node remembers, until the recovery is over."""
        with self._call("recover") as now:
            push = self._push(now)
            push.begin(self._hold_down)
            push.take(testimony, self.node)
            self.epoch = self._server.epoch or self.epoch
            return push.end(self._hold_down)

    def resolve(self, doubts: Mapping[Doubt, Sequence[Micros]]) -> list[Tick]:
        """Close the ticks that lie in each doubt as in doubt; return those that nobody closed."""
        with self._call("recover") as now:
            push = self._push(now)
            push.begin(self._hold_down)
            told = push.resolve(doubts, self.epoch, self._hold_down)
            self.epoch = self._server.epoch or self.epoch
            return told

    def repair(
        self, marks: Mapping[str, Micros | None], who: str, why: str
    ) -> dict[str, tuple[str, Micros]]:
        """Set marks, also downwards; return the text of each record before, and the mark."""
        server, done = self._server, {}
        with self._call("repair") as now:
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

    def _push(self, now: Micros) -> Push:
        return Push(self._server, now, self.fence, lease=self._lease, keep=self._keep)

    @contextmanager
    def _call(self, verb: str) -> Iterator[Micros]:
        """Do one call: alone on the server, at one instant, or refused before anything is done."""
        server = self._server
        asked = self._clock.monotonic()
        with server.lock:
            now = server.clock()
            self._clock.observe(asked, self._clock.monotonic(), now)
            epoch = server.epoch if verb == "repair" else self.epoch
            if verb != "recover" and server.must_recover(epoch or "", self.fence):
                raise LedgerRecovering(verb)
            yield now
            self.fence = max(self.fence, server.fence)

    def _register(self, asked: Registration, now: Micros) -> Record:
        server = self._server
        record = server.marks.get(asked.entry)
        if record is None:
            mark = 0 if asked.once else now
            record = server.marks[asked.entry] = Mark(mark, now, 0, 0, asked.fingerprint)
            if asked.run_on_start:
                self._open_now(asked.entry, record, now)
        elif (
            asked.again
            or server.was_missing(asked.entry, MAY_MISS)
            or record.fingerprint not in (asked.fingerprint, "")
        ):
            record.since, record.fingerprint = max(record.since, now), asked.fingerprint
        else:
            record.fingerprint = asked.fingerprint
        server.present[asked.entry] = now
        return Record(
            asked.entry, record.mark, record.since, record.fence, record.runs, record.fingerprint
        )

    def _take_back_run(self, settlement: Settlement, held: Open | Done | None) -> None:
        record = self._server.marks.get(settlement.grant.tick.entry)
        is_skipped = settlement.outcome.text.startswith("skipped:")
        if record and is_skipped and isinstance(held, Open) and held.attempt == 1:
            record.runs = max(0, record.runs - 1)

    def _open_now(self, entry: str, record: Mark, now: Micros) -> None:
        server, tick = self._server, Tick(entry, now)
        server.grants[tick] = Open(NOBODY, server.next_fence(now), 0, record.mark)
        server.open[tick] = now
        record.mark, record.runs = now, 1
