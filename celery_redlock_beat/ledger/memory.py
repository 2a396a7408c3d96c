"""The ledger in this process, for ``memory://`` and tests: each verb does what its script does.

Nothing here may answer, count or check otherwise than the scripts, or in another order; one suite
holds both to it. It is no ledger for production: other processes do not see it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger import (
    HISTORY,
    MOST_PER_CALL,
    SETTLED_KEPT,
    Claimed,
    Closing,
    Record,
    Release,
    Settlement,
    memory_deeds,
)
from celery_redlock_beat.ledger.memory_call import Hold, no_list
from celery_redlock_beat.ledger.memory_claim import Asking
from celery_redlock_beat.ledger.memory_feed import Feed
from celery_redlock_beat.ledger.memory_recovery import Push
from celery_redlock_beat.ledger.memory_registration import register
from celery_redlock_beat.ledger.memory_repair import repair
from celery_redlock_beat.ledger.memory_server import (
    DAY,
    MINUTE,
    NOBODY,
    Done,
    MemoryServer,
    Open,
    until,
)
from celery_redlock_beat.ticks import SECOND, SENT, Tick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery_redlock_beat.ledger import Ask, Command, Grant, Registration
    from celery_redlock_beat.ledger.memory_call import Call
    from celery_redlock_beat.ledger.steering import Change, Changes, Look, Resumption, Steered
    from celery_redlock_beat.ledger.testimony import Doubt, Recovery, Testimony
    from celery_redlock_beat.ticks import Micros, Reason

__all__ = ["MemoryLedger", "MemoryServer"]


class MemoryLedger(Hold):
    """One node's hold on a :class:`MemoryServer`."""

    marks_key = "marks"

    def __init__(
        self,
        server: MemoryServer,
        *,
        node: str | None = None,
        history: int = HISTORY,
        lease: Micros = 5 * SECOND,
        hold_down: Micros = 3 * SECOND,
        settled_kept: Micros = SETTLED_KEPT,
        clock: LedgerClock | None = None,
    ) -> None:
        keep = max(lease, settled_kept)
        super().__init__(server, clock or LedgerClock(), node or uuid4().hex, keep, history)
        self._lease = lease
        self._hold_down = hold_down

    def sibling(self) -> MemoryLedger:
        """Return the same node once more, for use beside an unfinished call."""
        return copy(self)

    def register(self, registrations: Sequence[Registration]) -> list[Record | None]:
        """Make entries known, and answer their records in the same order."""
        with self._call("register") as call:
            return [register(call, each) for each in registrations]

    def attend(self, entries: Sequence[str]) -> None:
        """Tell that this node still has these entries."""
        with self._call("attend") as call:
            self._server.present.update(dict.fromkeys(entries, call.now))

    def claim(self, asks: Sequence[Ask], cursor: int = 0, told: str = "") -> Claimed:
        """Ask for at most ``MOST_PER_CALL`` ticks, ascending per entry, and for orphans."""
        server = self._server
        with self._call("claim") as call:
            now = call.now
            self._beat(told, now)
            server.end_leases_of_a_later_clock(now + self._lease + 10 * MINUTE, now)
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
                server.revision,
                Feed(server, now).is_stirred(),
            )

    def settle(self, settlements: Sequence[Settlement]) -> list[Closing]:
        """Close open ticks with their outcomes, counting what was passed over."""
        closings = []
        with self._call("settle") as call:
            for each in settlements:
                held = self._server.grants.get(each.grant.tick)
                closing = self._server.may_close(each.grant)
                if closing is Closing.DONE:
                    call.close(_as_held(each, held))
                    self._take_back_run(each, held)
                closings.append(closing)
        return closings

    def enqueue(
        self, grant: Grant, commands: Sequence[Command], passed: Mapping[Reason, int]
    ) -> Closing:
        """Push a message and settle its tick as sent, in one step or not at all."""
        server = self._server
        with self._call("enqueue") as call:
            closing = server.may_close(grant)
            if closing is not Closing.DONE:
                return closing
            if grant.tick.entry in server.paused:
                return Closing.PAUSED
            wrong = server.no_list(commands)
            if wrong is None:
                for command in commands:
                    server.push(command)
                held = server.grants.get(grant.tick)
                call.close(_as_held(Settlement(grant, SENT, passed), held))
                return closing
        raise no_list(wrong)

    def release(self, grants: Sequence[Grant], back_off: Micros, why: Release) -> None:
        """Give grants back: the ticks stay open, without an owner, until the back-off ends."""
        server = self._server
        with self._call("release") as call:
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
                server.open[grant.tick] = call.now + back_off

    def recover(self, testimony: Testimony) -> Recovery:
        """Push what this node remembers, until the recovery is over."""
        with self._call("recover") as call:
            push = self._push(call)
            push.take(testimony)
            self.epoch = self._server.epoch or self.epoch
            return push.end(self._hold_down)

    def restore(self, changes: Sequence[Change]) -> None:
        """Push what was stored, removed, paused and resumed, ascending, where it is not known."""
        with self._call("recover") as call:
            self._push(call).restore(changes, self.epoch)

    def resolve(self, doubts: Mapping[Doubt, Sequence[Micros]]) -> list[Tick]:
        """Close the ticks that lie in each doubt as in doubt; return those that nobody closed."""
        with self._call("recover") as call:
            return self._push(call).resolve(doubts, self.epoch, self._hold_down)

    def changes(self, since: int, *, going_on: bool = False) -> Changes:
        """Tell what was stored, removed, paused and resumed after a revision."""
        with self._call("changes") as call:
            return Feed(self._server, call.now).tell(since, going_on=going_on)

    def look(self, entries: Sequence[str]) -> list[Look]:
        """Tell all that is known of entries, in the same order; this changes nothing."""
        with self._call("look") as call:
            return [memory_deeds.look(call, entry) for entry in entries]

    def resume(self, resumptions: Sequence[Resumption]) -> list[Steered]:
        """End pauses, also those whose time is over."""
        with self._call("resume") as call:
            return [memory_deeds.resume(call, each) for each in resumptions]

    def depart(self, told: str) -> None:
        """Tell that this node has left."""
        with self._call("depart"):
            self._server.beats[self.node] = told

    def repair(
        self, marks: Mapping[str, Micros | None], who: str, why: str
    ) -> dict[str, tuple[str, Micros]]:
        """Set marks, also downwards; return the text of each record before, and the mark."""
        with self._call("repair") as call:
            return repair(self._server, call.now, marks, who, why)

    def _beat(self, told: str, now: Micros) -> None:
        server = self._server
        server.nodes[self.node] = now
        for silent in [node for node, at in server.nodes.items() if at <= now - DAY]:
            del server.nodes[silent]
            server.beats.pop(silent, None)
        if told:
            server.beats[self.node] = told

    def _push(self, call: Call) -> Push:
        push = Push(call, self.fence, lease=self._lease)
        push.begin(self._hold_down)
        return push

    def _take_back_run(self, settlement: Settlement, held: Open | Done | None) -> None:
        record = self._server.marks.get(settlement.grant.tick.entry)
        is_skipped = settlement.outcome.text.startswith("skipped:")
        if record and is_skipped and isinstance(held, Open) and held.attempt == 1:
            record.runs = max(0, record.runs - 1)


def _as_held(settlement: Settlement, held: Open | Done | None) -> Settlement:
    """Return it with what the ledger itself knows of its grant."""
    if not isinstance(held, Open):
        return settlement
    grant = replace(settlement.grant, attempt=held.attempt, previous=held.previous)
    return replace(settlement, grant=grant)
