"""An operator's hold on a ledger in Redis: each verb is one script; it decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from celery_redlock_beat.errors import DeliveryImpossible
from celery_redlock_beat.ledger import (
    HISTORY,
    MOST_PER_CALL,
    SETTLED_KEPT,
    wire,
    wire_steering,
)
from celery_redlock_beat.ledger.redis_looks import RedisLooks
from celery_redlock_beat.ledger.steering import Firing, Seeding, Skipping, Steered, Step
from celery_redlock_beat.ledger.wire_steering import REMEMBERED, RESERVED
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from redis import Redis

    from celery_redlock_beat.clock import LedgerClock
    from celery_redlock_beat.ledger import Command, Record, Registration
    from celery_redlock_beat.ledger.steering import Definition, Removal, Shot
    from celery_redlock_beat.ticks import Micros, Tick


class RedisSteering(RedisLooks):
    """The verbs of operators; ``who`` asks is kept in the history."""

    def __init__(
        self,
        connect: Callable[[], Redis],
        clock: LedgerClock,
        namespace: str,
        *,
        who: str,
        prefix: str = "",
        history: int = HISTORY,
        lease: Micros = 5 * SECOND,
        hold_down: Micros = 3 * SECOND,
    ) -> None:
        super().__init__(connect, clock, namespace, prefix=prefix, history=history)
        self.node = who
        self._lease = lease
        self._hold_down = hold_down

    def store(self, definitions: Sequence[Definition]) -> list[Steered]:
        """Add entries, or change them."""
        return wire_steering.steered(
            definitions, wire_steering.definition, self._steer("store", "gone", "present")
        )

    def seed(
        self, registrations: Sequence[Registration], note: str = "", *, dry_run: bool = False
    ) -> list[tuple[Seeding, Record | None]]:
        """Let entries begin where another scheduler stopped; return what is known of each then."""
        keys = [self._named["present"], self._named["beats"]]
        answers: list[tuple[Seeding, Record | None]] = []
        for chunk in wire.chunks(registrations, MOST_PER_CALL):
            rows = wire.flat(
                (r.entry, r.fingerprint, wire.said(r.revision), note, *wire.seeded(r))
                for r in chunk
            )
            (told,) = self._call("seed", [int(dry_run), *rows], keys=keys)
            answers += [
                (Seeding(wire.text(answer)), wire.record(r.entry, text))
                for r, (answer, text) in zip(chunk, told, strict=True)
            ]
        return answers

    def remove(self, removals: Sequence[Removal]) -> list[Steered]:
        """Remove stored entries: when it has answered, nothing of them is enqueued any more."""
        return wire_steering.steered(
            removals, wire_steering.removal, self._steer("remove", "gone", "present")
        )

    def pause(
        self, entries: Sequence[str], note: str = "", who: str = "", until: Micros | None = None
    ) -> list[int]:
        """Hold entries back, and return the revisions: from then on nothing of them is enqueued."""
        self._call("look", [])  # tells the time
        kept = wire_steering.kept_of_pause(note, who, self._told)
        revisions: list[int] = []
        for chunk in wire.chunks(entries, wire_steering.STEERED_PER_CALL):
            rows = wire.flat((entry, until or 0, kept) for entry in chunk)
            (told,) = self._call("pause", rows, keys=[self._named["gone"]])
            revisions += map(int, told)
        return revisions

    def skip(self, ticks: Sequence[Tick], note: str = "") -> list[Skipping]:
        """Have ticks skipped when they are claimed."""
        (told,) = self._call("skip", wire.flat((each.entry, each.at, note) for each in ticks))
        return [Skipping(wire.text(each)) for each in told]

    def fire(self, shot: Shot, step: Step, commands: Sequence[Command] = ()) -> Firing:
        """Send a message beside the schedule in one step, or tell how far it is."""
        kept = RESERVED if step is Step.RESERVE else REMEMBERED
        told = self._call(
            "fire",
            [
                *(str(step), shot.entry, shot.task_id, kept, int(shot.force), shot.note),
                *wire.flat((command.name, command.argument) for command in commands),
            ],
            keys=[self._named["fired"], *(command.key for command in commands)],
        )
        if wire.text(told[0]) == "WRONGTYPE":
            msg = f"the key {wire.text(told[1])!r} of its queue is not a list; delete or rename it"
            raise DeliveryImpossible(msg)
        return Firing(wire.text(told[0]))

    def begin(self) -> Micros:
        """Take part in a recovery without any memory; return how long it goes on."""
        args = [uuid4().hex, self._hold_down, self._lease, SETTLED_KEPT, 1]
        _, *rest = self._call("recover", args, keys=[self._named["gone"]])
        told = wire.recovery(rest)
        # What is in doubt is told by a node, which has the timetables.
        return max(told.wait, SECOND // 10) if told.wait or told.doubts else 0
