"""Which due ticks of one entry are asked for; it knows no other entry, and reads no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ticks import Micros, Timetable


def newest_due(slot: Slot, newest: Micros | None, now: Micros) -> Micros | None:
    """Return the newest tick that is due with its jitter, given the newest instant."""
    if newest is None or isinstance(slot.timetable, Opaque) or slot.due_at(newest) <= now:
        return newest
    return slot.timetable.latest_until(newest - 1)  # which was due before its next one


def wanted(
    slot: Slot, timetable: Timetable, newest: Micros, now: Micros, most: int
) -> list[Micros]:
    """Return at most so many instants to ask for, ascending, up to the newest that is due.

    That one is always asked for, even where it will not be sent: or it would never be settled.
    """
    if slot.policy.catch_up != "all":
        return [newest]
    if slot.floor is None:
        slot.floor = _floor(slot, timetable, newest, now)
    instants: list[Micros] = []
    at = max(slot.cursor, slot.floor)
    while len(instants) < most:
        following = timetable.next_after(at)
        if following is None or following > newest:
            slot.floor = None  # the backlog ends here
            break
        instants.append(at := following)
    return instants or [newest]


def _floor(slot: Slot, timetable: Timetable, newest: Micros, now: Micros) -> Micros:
    """Return the instant after which an entry that catches up all asks for its late ticks."""
    after = max(slot.cursor, slot.since - 1, now - slot.policy.reach)
    return newest_begin(timetable, after, newest, slot.policy.limit)


def newest_begin(timetable: Timetable, after: Micros, newest: Micros, most: int) -> Micros:
    """Return the earliest instant from ``after`` on with at most so many ticks up to ``newest``.

    Bisecting, and not walking back, since a timetable may be dense here and empty there.
    """

    def fits(begin: Micros) -> bool:
        for _ in range(most):
            following = timetable.next_after(begin)
            if following is None or following >= newest:
                return True
            begin = following
        return False

    if fits(after):
        return after
    low, high = after, newest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
