"""An operator's hold on the ledger in this process: each verb does what its script does.

It decides nothing, and is no ledger for production: other processes do not see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.ledger import HISTORY, SETTLED_KEPT, memory_deeds, wire_steering
from celery_redlock_beat.ledger.memory_call import Hold, no_list
from celery_redlock_beat.ledger.memory_recovery import Push
from celery_redlock_beat.ledger.memory_registration import seed
from celery_redlock_beat.ledger.steering import Firing
from celery_redlock_beat.ticks import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from celery_redlock_beat.ledger import Command, Record, Registration
    from celery_redlock_beat.ledger.memory_server import MemoryServer
    from celery_redlock_beat.ledger.steering import (
        Definition,
        Look,
        Removal,
        Resumption,
        Seeding,
        Shot,
        Skipping,
        Steered,
        Step,
    )
    from celery_redlock_beat.ticks import Micros, Tick


class MemorySteering(Hold):
    """The verbs of operators; ``who`` asks is kept in the history."""

    def __init__(
        self,
        server: MemoryServer,
        *,
        who: str,
        history: int = HISTORY,
        lease: Micros = 5 * SECOND,
        hold_down: Micros = 3 * SECOND,
        clock: LedgerClock | None = None,
    ) -> None:
        super().__init__(server, clock or LedgerClock(), who, SETTLED_KEPT, history)
        self._lease = lease
        self._hold_down = hold_down

    def look(self, entries: Sequence[str]) -> list[Look]:
        """Tell all that is known of entries, in the same order; this changes nothing."""
        with self._call("look") as call:
            return [memory_deeds.look(call, entry) for entry in entries]

    def store(self, definitions: Sequence[Definition]) -> list[Steered]:
        """Add entries, or change them."""
        with self._call("store") as call:
            return [memory_deeds.store(call, each) for each in definitions]

    def seed(
        self, registrations: Sequence[Registration], note: str = "", *, dry_run: bool = False
    ) -> list[tuple[Seeding, Record | None]]:
        """Let entries begin where another scheduler stopped; return what is known of each then."""
        with self._call("seed") as call:
            return [seed(call, each, note, dry_run=dry_run) for each in registrations]

    def remove(self, removals: Sequence[Removal]) -> list[Steered]:
        """Remove stored entries: when it has answered, nothing of them is enqueued any more."""
        with self._call("remove") as call:
            return [memory_deeds.remove(call, each) for each in removals]

    def pause(
        self, entries: Sequence[str], note: str = "", who: str = "", until: Micros | None = None
    ) -> list[int]:
        """Hold entries back, and return the revisions: from then on nothing of them is enqueued."""
        with self._call("pause") as call:
            kept = wire_steering.kept_of_pause(note, who, call.now)
            return [memory_deeds.pause(call, entry, until or 0, kept) for entry in entries]

    def resume(self, resumptions: Sequence[Resumption]) -> list[Steered]:
        """End pauses."""
        with self._call("resume") as call:
            return [memory_deeds.resume(call, each) for each in resumptions]

    def skip(self, ticks: Sequence[Tick], note: str = "") -> list[Skipping]:
        """Have ticks skipped when they are claimed."""
        with self._call("skip") as call:
            return [memory_deeds.skip(call, each, note) for each in ticks]

    def fire(self, shot: Shot, step: Step, commands: Sequence[Command] = ()) -> Firing:
        """Send a message beside the schedule in one step, or tell how far it is."""
        with self._call("fire") as call:
            told = memory_deeds.fire(call, shot, step, commands)
        if not isinstance(told, Firing):
            raise no_list(told)
        return told

    def begin(self) -> Micros:
        """Take part in a recovery without any memory; return how long it goes on."""
        with self._call("recover") as call:
            push = Push(call, self.fence, lease=self._lease)
            push.begin(self._hold_down)
            told = push.end(self._hold_down)
        # What is in doubt is told by a node, which has the timetables.
        return max(told.wait, SECOND // 10) if told.wait or told.doubts else 0
