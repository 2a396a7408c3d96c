"""The ledger in Redis: each verb is one script; it decides nothing that the scripts decide."""

from __future__ import annotations

import os
import re
import socket
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from celery_redlock_beat.errors import DeliveryImpossible
from celery_redlock_beat.ledger import (
    HISTORY,
    MAY_MISS,
    MOST_PER_CALL,
    SETTLED_KEPT,
    Claimed,
    Closing,
    wire,
    wire_steering,
)
from celery_redlock_beat.ledger.redis_looks import RedisLooks
from celery_redlock_beat.ledger.steering import Changes
from celery_redlock_beat.ledger.testimony import Recovery, Testimony
from celery_redlock_beat.ledger.wire_steering import MOST_CHANGES
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from redis import Redis

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.ledger import (
        Ask,
        Command,
        Grant,
        Record,
        Registration,
        Release,
        Settlement,
    )
    from celery_redlock_beat.ledger.steering import Change
    from celery_redlock_beat.ledger.testimony import Doubt
    from celery_redlock_beat.ticks import Micros, Reason, Tick

MOST_ROWS = 500
MOST_DOUBTS = 20


class RedisLedger(RedisLooks):
    """One node's hold on a ledger in Redis 6.2 or newer, or Valkey.

    Its identity tells host and process, and is random behind that: a pod's name and pid 1 repeat.
    """

    def __init__(
        self,
        connect: Callable[[], Redis],
        clock: LedgerClock,
        namespace: str,
        *,
        prefix: str = "",
        history: int = HISTORY,
        lease: Micros = 5 * SECOND,
        socket_timeout: Micros = SECOND,
        hold_down: Micros = 3 * SECOND,
        settled_kept: Micros = SETTLED_KEPT,
    ) -> None:
        super().__init__(connect, clock, namespace, prefix=prefix, history=history)
        self.marks_key = self._named["marks"]
        self._lease = lease
        self._keep = max(lease, 2 * socket_timeout, settled_kept)
        self._hold_down = hold_down
        self._has_told = False

    def sibling(self) -> RedisLedger:
        """Return the same node on a connection of its own, for use beside an unfinished call."""
        twin = object.__new__(RedisLedger)
        twin.__dict__.update(self.__dict__)
        twin._client = self._connect()
        return twin

    def register(self, registrations: Sequence[Registration]) -> list[Record | None]:
        """Make entries known, and answer their records in the same order; unreadable: ``None``."""
        records: list[Record | None] = []
        for chunk in wire.chunks(registrations, MOST_PER_CALL):
            fields = wire.flat(map(wire.known_as, chunk))
            (texts,) = self._call(
                "register",
                [MAY_MISS, *fields],
                keys=[self._named["present"], self._named["beats"]],
            )
            records += [wire.record(r.entry, text) for r, text in zip(chunk, texts, strict=True)]
        return records

    def attend(self, entries: Sequence[str]) -> None:
        """Tell that this node still has these entries."""
        for chunk in wire.chunks(entries, MOST_PER_CALL):
            self._call("attend", list(chunk), keys=[self._named["present"]])

    def claim(self, asks: Sequence[Ask], cursor: int = 0, told: str = "") -> Claimed:
        """Ask for at most ``MOST_PER_CALL`` ticks, ascending per entry, and for orphans."""
        fields = wire.flat(map(wire.asked, asks))
        answers, orphans, next_cursor, deadline, opened, revision, stirred = self._call(
            "claim",
            [self._lease, cursor, MOST_PER_CALL, told, *fields],
            keys=[self._named["beats"]],
        )
        return Claimed(
            self._told,
            [wire.answer(ask, told) for ask, told in zip(asks, answers, strict=True)],
            [wire.orphan(told) for told in orphans],
            int(next_cursor),
            int(deadline) if deadline else None,
            wire.named(opened) if isinstance(opened, list) else None,
            int(revision),
            stirred == b"1",
        )

    def settle(self, settlements: Sequence[Settlement]) -> list[Closing]:
        """Close open ticks with their outcomes, counting what was passed over."""
        closings: list[Closing] = []
        for chunk in wire.chunks(settlements, MOST_PER_CALL):
            fields = wire.flat(map(wire.settled, chunk))
            (told,) = self._call("settle", [self._keep, *fields])
            closings += [Closing(wire.text(closing)) for closing in told]
        return closings

    def enqueue(
        self, grant: Grant, commands: Sequence[Command], passed: Mapping[Reason, int]
    ) -> Closing:
        """Push a message and settle its tick as sent, in one step or not at all."""
        told = self._call(
            "enqueue",
            [
                self._keep,
                *wire.proof(grant),
                grant.due,
                *wire.counted(passed),
                *wire.flat((command.name, command.argument) for command in commands),
            ],
            keys=[command.key for command in commands],
        )
        if wire.text(told[0]) == "WRONGTYPE":
            msg = f"the key {wire.text(told[1])!r} of its queue is not a list; delete or rename it"
            raise DeliveryImpossible(msg)
        return Closing(wire.text(told[0]))

    def release(self, grants: Sequence[Grant], back_off: Micros, why: Release) -> None:
        """Give grants back: the ticks stay open, without an owner, until the back-off ends."""
        for chunk in wire.chunks(grants, MOST_PER_CALL):
            self._call("release", [back_off, str(why), *wire.flat(map(wire.proof, chunk))])

    def recover(self, testimony: Testimony) -> Recovery:
        """Push what this node remembers, until the recovery is over."""
        told: list[Recovery] = []
        known = self.epoch if self._has_told else ""
        if known:
            # All was said, and while nobody grants anything nothing is new: look how it stands,
            # and at its end whether what is held is in force.
            told.append(self._push([], is_whole=False))
            if self.epoch == known and not told[-1].wait:
                told.append(self._push(wire.rows(Testimony(held=testimony.held))))
        if self.epoch != known:
            told.append(self._push(wire.rows(testimony)))
        self._has_told = bool(told[-1].wait or told[-1].doubts)
        return wire.merged(told)

    def restore(self, changes: Sequence[Change]) -> None:
        """Push what was stored, removed, paused and resumed, ascending, where it is not known."""
        self._push_more(list(map(wire_steering.told_again, changes)))

    def changes(self, since: int, *, going_on: bool = False) -> Changes:
        """Tell what was stored, removed, paused and resumed after a revision."""
        args = [since, MOST_CHANGES, int(going_on)]
        upto, more, whole, told = self._call("changes", args, keys=[self._named["gone"]])
        found = [wire_steering.change(*each) for each in told]
        return Changes(int(upto), found, more == b"1", whole == b"1")

    def depart(self, told: str) -> None:
        """Tell that this node has left."""
        self._call("depart", [told], keys=[self._named["beats"]])

    def resolve(self, doubts: Mapping[Doubt, Sequence[Micros]]) -> list[Tick]:
        """Close the ticks that lie in each doubt as in doubt; return those that nobody closed."""
        told: list[Tick] = []
        for rows in wire.chunks(wire.doubts(doubts), MOST_DOUBTS):
            told += self._push_more(rows).in_doubt
        return told

    def repair(
        self, marks: Mapping[str, Micros | None], who: str, why: str
    ) -> dict[str, tuple[str, Micros]]:
        """Set marks, also downwards; return the text of each record before, and the mark."""
        done: dict[str, tuple[str, Micros]] = {}
        for part in wire.chunks(list(marks.items()), MOST_ROWS):
            rows = [(entry, "" if mark is None else mark) for entry, mark in part]
            args = [uuid4().hex, who, why, *wire.flat(rows)]
            (told,) = self._call("repair", args, keys=[self._named["audit"]])
            for (entry, _), (before, mark) in zip(part, told, strict=True):
                done[entry] = wire.text(before), int(mark)
        return done

    def _push(self, rows: Sequence[Sequence[Any]], *, is_whole: bool = True) -> Recovery:
        """Push rows, in parts; ``is_whole`` tells that then all was said that this node knows."""
        # What it has seen before the push: the answer to a part is no news of what it remembers.
        seen = self.fence
        told: list[Recovery] = []
        epochs: set[str] = set()
        parts = list(wire.chunks(rows, MOST_ROWS)) or [()]
        for number, part in enumerate(parts, start=1):
            last = int(is_whole and number == len(parts))
            durations = [self._hold_down, self._lease, self._keep]
            args = [uuid4().hex, *durations, last, *wire.flat(part)]
            epoch, *rest = self._call("recover", args, [self._named["gone"]], seen)
            epochs.add(wire.text(epoch))
            told.append(wire.recovery(rest))
        if len(epochs) > 1:
            # Another recovery began between two parts: what went before counts for nothing.
            return self._push(rows, is_whole=is_whole)
        self.epoch = epochs.pop()
        return wire.merged(told)

    def _push_more(self, rows: Sequence[Sequence[Any]]) -> Recovery:
        """Push rows beside all that this node remembers, which another epoch has to hear yet."""
        epoch = self.epoch
        told = self._push(rows, is_whole=False)
        self.epoch = epoch
        return told

    def _new_process(self) -> None:
        self.node = f"{_host()}:{os.getpid()}:{uuid4().hex[:16]}"
        self.epoch = "-"
        self._has_told = False

    def _call(
        self, verb: str, args: Sequence[Any], keys: Sequence[str] = (), seen: int | None = None
    ) -> list[Any]:
        told = super()._call(verb, args, keys, seen)
        self._has_told = self._has_told and verb == "recover"
        return told


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:63] or "-"
