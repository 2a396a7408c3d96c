"""Which ticks are due, and when to look again; the time is an argument.

Pure: it knows no Redis, no clock and no Celery entry. Entries on equal timetables share one place
in the heap, so that 10,000 entries on 30 crontabs cost 30 computations.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from celery_redlock_beat.backlog import last_between, newest_due, wanted
from celery_redlock_beat.ledger import Ask
from celery_redlock_beat.ticks import COUNT_LIMIT, LATEST, SECOND, Micros, Tick
from celery_redlock_beat.timetables.opaque import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ticks import Timetable

CHUNK = 20
"""Ticks of one entry in one call, so that one long backlog does not hold up the others."""
FAULT_PAUSE: Micros = 60 * SECOND
PAUSED_PAUSE: Micros = 600 * SECOND
"""How long a paused entry is not asked for, unless it is resumed, which is told."""
FOREVER: Micros = LATEST


@dataclass(slots=True)
class _Group:
    """The entries on one timetable, and its newest tick, if that is later than ``after``."""

    timetable: Timetable | Opaque
    members: dict[str, None] = field(default_factory=dict)
    after: Micros = 0
    newest: Micros | None = None


class DueQueue:
    """Tell which ticks to ask for, ascending per entry, and when to look again."""

    def __init__(self, on_fault: Callable[[list[str], Exception], None]) -> None:
        self._on_fault = on_fault
        self._slots: dict[str, Slot] = {}
        self._groups: dict[object, _Group] = {}
        self._heap: list[tuple[Micros, int, _Group]] = []
        self._order = count()
        self._pending: dict[str, None] = {}
        self._now: Micros = 0

    def __contains__(self, name: str) -> bool:
        return name in self._slots

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def get(self, name: str) -> Slot | None:
        """Return the entry's slot, or ``None``."""
        return self._slots.get(name)

    def put(self, slot: Slot) -> None:
        """Add an entry, or replace it."""
        self.discard(slot.name)
        self._slots[slot.name] = slot
        group = self._groups.get(slot.timetable)
        if group is None:
            group = self._groups[slot.timetable] = _Group(slot.timetable)
            self._push(0, group)
        group.members[slot.name] = None
        self._pending[slot.name] = None

    def go_on(self, name: str, fingerprint: str) -> None:
        """Have an interval go on with the phase that the ledger has of it, if it says none."""
        slot = self._slots.get(name)
        if slot and slot.takes_phase and slot.fingerprint != fingerprint:
            self.discard(name)  # it has another timetable then
            slot.go_on(fingerprint)
            self.put(slot)

    def discard(self, name: str) -> None:
        """Forget an entry."""
        slot = self._slots.pop(name, None)
        if slot is None:
            return
        self._pending.pop(name, None)
        group = self._groups[slot.timetable]
        del group.members[name]
        if not group.members:
            del self._groups[slot.timetable]

    def advance(self, name: str, mark: Micros) -> None:
        """Move an entry's cursor to a mark that the ledger answered; cursors never fall."""
        slot = self._slots.get(name)
        if slot:
            slot.cursor = max(slot.cursor, mark)
            # Only now: had the ask been lost, it would have to be repeated at once.
            slot.retry_at = max(slot.retry_at, slot.look_again)

    def rewind(self, name: str, mark: Micros) -> None:
        """Set an entry's cursor to a mark that an operator set, and look at it anew."""
        slot = self._slots.get(name)
        if slot:
            slot.cursor, slot.retry_at, slot.look_again, slot.backlog_end = mark, 0, 0, 0
            self._pending[name] = None

    def between(self, name: str, after: Micros, until: Micros) -> list[Micros]:
        """Return an entry's instants after one and up to another, the newest ``COUNT_LIMIT``.

        ``until`` is one of them. It is the only one where the timetable is not known.
        """
        slot = self._slots.get(name)
        instants: deque[Micros] = deque(maxlen=COUNT_LIMIT)
        if slot and not isinstance(slot.timetable, Opaque):
            try:
                at = slot.timetable.next_after(after)
                while at is not None and at < until:
                    instants.append(at)
                    at = slot.timetable.next_after(at)
            except Exception as exc:  # noqa: BLE001 - user code: it must not stop others
                self._fault([name], exc, self._now)
        return [*instants, until]

    def defer(self, name: str, until: Micros) -> None:
        """Do not ask for an entry before ``until``."""
        if name in self._slots:
            self._slots[name].retry_at = until

    def hold(self, name: str, until: Micros | None) -> None:
        """Do not ask for an entry before an instant, or, without one, for long; look at it then."""
        if name in self._slots:
            self._slots[name].retry_at = self._now + PAUSED_PAUSE if until is None else until
            self._pending[name] = None

    def take_up(self, name: str) -> None:
        """Ask for an entry again that was deferred: it is resumed."""
        if name in self._slots:
            self._slots[name].retry_at = 0
            self._pending[name] = None

    def finish(self, name: str) -> None:
        """Ask for an entry no more: it has run as often as it may."""
        self.defer(name, FOREVER)

    def is_superseded(self, slot: Slot, tick: Micros) -> bool:
        """Whether a newer tick of the entry is due and its policy sends only the newest."""
        if slot.policy.catch_up == "all":
            return False
        return max(self._newest_due(slot, self._now) or 0, slot.cursor) > tick

    def asks(self, now: Micros, most: int) -> list[Ask]:
        """Return at most ``most`` ticks that are due and not known to be settled."""
        if now < self._now - SECOND:
            self._forget_the_time()
        self._now = now
        self._awake(now)
        asks: list[Ask] = []
        if most <= 0:
            return asks
        for name in list(self._pending):
            slot = self._slots[name]
            if slot.retry_at > now:
                continue
            wanted = self._wanted(slot, now, most - len(asks))
            if wanted:
                asks += wanted
                # Behind the others, so that a backlog takes turns with them.
                del self._pending[name]
                self._pending[name] = None
            elif slot.retry_at <= now:
                del self._pending[name]
            if len(asks) >= most:
                break
        return asks

    def next_look(self) -> Micros | None:
        """Return the instant at which something may become due, or ``None`` for never."""
        instants = [self._slots[name].retry_at for name in self._pending]
        if self._heap:
            instants.append(self._heap[0][0])
        return min(instants, default=None)

    def _forget_the_time(self) -> None:
        # The server's clock was set back: what was known of now and next holds no longer.
        for slot in self:
            slot.retry_at = slot.look_again = 0
            slot.backlog_end = 0
        self._heap = []
        for group in self._groups.values():
            group.newest = None
            self._push(0, group)

    def _awake(self, now: Micros) -> None:
        while self._heap and self._heap[0][0] <= now:
            _, _, group = heapq.heappop(self._heap)
            if self._groups.get(group.timetable) is not group:
                continue
            self._pending |= group.members
            if not isinstance(group.timetable, Opaque):
                self._push(self._look(group, group.timetable, now), group)

    def _look(self, group: _Group, timetable: Timetable, now: Micros) -> Micros:
        """Find a group's newest tick; return the instant at which to look again."""
        group.after = min(now, *(self._slots[name].cursor for name in group.members))
        group.newest = None
        try:
            group.newest = last_between(timetable, group.after, now)
            known = group.after if group.newest is None else group.newest
            following = timetable.next_after(known)
        except Exception as exc:  # noqa: BLE001 - a schedule is user code: it must not stop others
            self._fault(list(group.members), exc, now)
            return now + FAULT_PAUSE
        return following if following is not None else now + 365 * 86_400 * SECOND

    def _wanted(self, slot: Slot, now: Micros, most: int) -> list[Ask]:
        try:
            if isinstance(slot.timetable, Opaque):
                return self._opaque(slot, slot.timetable, now)
            return self._due(slot, slot.timetable, now, most)
        except Exception as exc:  # noqa: BLE001 - a schedule is user code: it must not stop others
            self._fault([slot.name], exc, now)
            return []

    def _due(self, slot: Slot, timetable: Timetable, now: Micros, most: int) -> list[Ask]:
        newest, limit = self._newest_due(slot, now), slot.policy.max_runs
        if newest is None or newest <= slot.cursor:
            self._await_jitter(slot, now)
            return []
        # One at a time where they are numbered: whether the next one may go is not known yet.
        instants = wanted(slot, timetable, newest, now, 1 if limit else min(most, CHUNK))
        return [
            Ask(Tick(slot.name, at), slot.due_at(at), limit=limit, revision=slot.revision)
            for at in instants
        ]

    def _newest_due(self, slot: Slot, now: Micros) -> Micros | None:
        group = self._groups[slot.timetable]
        if slot.cursor < group.after and not isinstance(slot.timetable, Opaque):
            self._look(group, slot.timetable, now)  # it came later than the others
        return newest_due(slot, group.newest, now)

    def _await_jitter(self, slot: Slot, now: Micros) -> None:
        newest = self._groups[slot.timetable].newest
        if newest is not None and newest > slot.cursor:
            slot.retry_at = max(now, slot.due_at(newest))

    def _opaque(self, slot: Slot, timetable: Opaque, now: Micros) -> list[Ask]:
        is_due, look_again = timetable.check(slot.cursor, now)
        if is_due:
            slot.look_again = look_again
            limit = slot.policy.max_runs
            tick = Tick(slot.name, now)
            return [Ask(tick, now, slot.cursor, limit, slot.revision)]
        self._push(max(look_again, now + 1000), self._groups[slot.timetable])
        return []

    def _fault(self, names: list[str], exc: Exception, now: Micros) -> None:
        for name in names:
            self._slots[name].retry_at = now + FAULT_PAUSE
        self._on_fault(names, exc)

    def _push(self, instant: Micros, group: _Group) -> None:
        heapq.heappush(self._heap, (instant, next(self._order), group))
