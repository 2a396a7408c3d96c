"""The ledger in Redis: each verb is one script; it decides nothing that the scripts decide."""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha1
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from redis.exceptions import NoScriptError, RedisError

from celery_redlock_beat.errors import DeliveryImpossible, LedgerRecovering
from celery_redlock_beat.ledger import (
    MAY_MISS,
    MOST_PER_CALL,
    SETTLED_KEPT,
    Claimed,
    Closing,
    Recovery,
    Testimony,
    wire,
)
from celery_redlock_beat.store.disorder import disorder
from celery_redlock_beat.store.errors import NOISE, unavailable
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from redis import Redis

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.ledger import (
        Ask,
        Command,
        Doubt,
        Grant,
        Record,
        Registration,
        Release,
        Settlement,
    )
    from celery_redlock_beat.ticks import Micros, Reason, Tick

KEYS = ("marks", "open", "grants", "settled", "totals", "paused", "nodes", "heard")
MOST_ROWS = 500
MOST_DOUBTS = 20


class Script(NamedTuple):
    """A verb's source, as it is sent to the server, and the digest it is called by."""

    text: str
    digest: str


@cache
def load_script(verb: str) -> Script:
    """Read a verb's script, behind what all verbs share."""
    folder = resources.files("celery_redlock_beat.ledger") / "lua"
    text = "\n".join((folder / f"{name}.lua").read_text("utf-8") for name in ("prelude", verb))
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def ledger_keys(namespace: str, prefix: str = "") -> dict[str, str]:
    """Return the ledger's keys by name; one hash tag keeps them together in a Cluster."""
    return {name: f"{prefix}{{redlock:{namespace}}}:{name}" for name in (*KEYS, "present", "audit")}


class RedisLedger:
    """One node's hold on a ledger in Redis 6.2 or newer, or Valkey.

    Connects lazily and anew in every process; its identity is random per process, because a pod's
    name and pid 1 repeat.
    """

    def __init__(
        self,
        connect: Callable[[], Redis],
        clock: LedgerClock,
        namespace: str,
        *,
        prefix: str = "",
        lease: Micros = 5 * SECOND,
        socket_timeout: Micros = SECOND,
        hold_down: Micros = 3 * SECOND,
        settled_kept: Micros = SETTLED_KEPT,
    ) -> None:
        self._connect = connect
        self._clock = clock
        keys = ledger_keys(namespace, prefix)
        self._keys = [keys[name] for name in KEYS]
        self.marks_key = keys["marks"]
        self._present = keys["present"]
        self._audit = keys["audit"]
        self._lease = lease
        self._keep = max(lease, 2 * socket_timeout, settled_kept)
        self._hold_down = hold_down
        self._pid = 0
        self.node = ""
        self.epoch = "-"
        self.fence = 0
        self._has_told = False
        self._told: Micros = 0

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
            (texts,) = self._call("register", [MAY_MISS, *fields], keys=[self._present])
            records += [wire.record(r.entry, text) for r, text in zip(chunk, texts, strict=True)]
        return records

    def attend(self, entries: Sequence[str]) -> None:
        """Tell that this node still has these entries."""
        for chunk in wire.chunks(entries, MOST_PER_CALL):
            self._call("attend", list(chunk), keys=[self._present])

    def claim(self, asks: Sequence[Ask], cursor: int = 0) -> Claimed:
        """Ask for at most ``MOST_PER_CALL`` ticks, ascending per entry, and for orphans."""
        fields = wire.flat(map(wire.asked, asks))
        answers, orphans, next_cursor, deadline, opened = self._call(
            "claim", [self._lease, cursor, MOST_PER_CALL, *fields]
        )
        return Claimed(
            self._told,
            [wire.answer(ask.tick, told) for ask, told in zip(asks, answers, strict=True)],
            [wire.orphan(told) for told in orphans],
            int(next_cursor),
            int(deadline) if deadline else None,
            wire.named(opened) if isinstance(opened, list) else None,
        )

    def settle(self, settlements: Sequence[Settlement]) -> list[Closing]:
        """Close open ticks with their outcomes, counting what was passed over."""
        closings: list[Closing] = []
        for chunk in wire.chunks(settlements, MOST_PER_CALL):
            fields = [
                (*wire.proof(s.grant), s.outcome.text, *wire.counted(s.passed)) for s in chunk
            ]
            (told,) = self._call("settle", [self._keep, *wire.flat(fields)])
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

    def resolve(self, doubts: Mapping[Doubt, Sequence[Micros]]) -> list[Tick]:
        """Close the ticks that lie in each doubt as in doubt; return those that nobody closed."""
        told: list[Tick] = []
        for rows in wire.chunks(wire.doubts(doubts), MOST_DOUBTS):
            told += self._push(rows, is_whole=False).in_doubt
        return told

    def repair(
        self, marks: Mapping[str, Micros | None], who: str, why: str
    ) -> dict[str, tuple[str, Micros]]:
        """Set marks, also downwards; return the text of each record before, and the mark."""
        done: dict[str, tuple[str, Micros]] = {}
        for part in wire.chunks(list(marks.items()), MOST_ROWS):
            rows = [(entry, "" if mark is None else mark) for entry, mark in part]
            args = [uuid4().hex, who, why, *wire.flat(rows)]
            (told,) = self._call("repair", args, keys=[self._audit])
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
            epoch, *rest = self._call("recover", args, seen=seen)
            epochs.add(wire.text(epoch))
            told.append(wire.recovery(rest))
        if len(epochs) > 1:
            # Another recovery began between two parts: what went before counts for nothing.
            return self._push(rows, is_whole=is_whole)
        self.epoch = epochs.pop()
        return wire.merged(told)

    def _call(
        self, verb: str, args: list[Any], keys: Sequence[str] = (), seen: int | None = None
    ) -> list[Any]:
        client = self._own_client()
        script = load_script(verb)
        seen = self.fence if seen is None else seen
        given = [*self._keys, *keys, self.node, self.epoch, seen, *args]
        count = len(self._keys) + len(keys)
        asked = self._clock.monotonic()
        try:
            try:
                reply = client.evalsha(script.digest, count, *given)
            except NoScriptError:
                asked = self._clock.monotonic()
                reply = client.eval(script.text, count, *given)
            status, told, fence, *rest = wire.reply(reply)
        except (RedisError, OSError) as exc:
            raise unavailable(exc) from exc
        except NOISE as exc:
            # Whoever said that is no Redis, or answered another call: the true answer may follow.
            client.connection_pool.disconnect()
            raise unavailable(exc) from exc
        self._told = int(told)
        self._clock.observe(asked, self._clock.monotonic(), int(told))
        if wire.text(status) == "RECOVERING":
            raise LedgerRecovering(verb)
        if wire.text(status) != "OK":
            raise disorder(*map(wire.text, (status, *rest)))
        self.fence = max(self.fence, int(fence))
        self._has_told = self._has_told and verb == "recover"
        return rest

    def _own_client(self) -> Redis:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.node = uuid4().hex
            self.epoch = "-"
            self._has_told = False
            self._client = self._connect()
        return self._client
