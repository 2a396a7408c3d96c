"""Which due ticks of one entry are asked for; it knows no other entry, and reads no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.timetables import Opaque

if TYPE_CHECKING:
    from celery_redlock_beat.lateness import Slot
    from celery_redlock_beat.ticks import Micros, Timetable

FIRST_STRIDE = 1 << 20
"""About a second, as a power of two: halved again and again, it ends at a microsecond."""


def newest_due(slot: Slot, newest: Micros | None, now: Micros) -> Micros | None:
    """Return the newest tick that is due with its jitter, given the newest instant."""
    if newest is None or isinstance(slot.timetable, Opaque) or slot.due_at(newest) <= now:
        return newest
    # The one before was due before its next one.
    return last_between(slot.timetable, slot.cursor, newest - 1)


def last_between(timetable: Timetable, after: Micros, until: Micros) -> Micros | None:
    """Return the last instant that is later than one moment and not later than another.

    Mostly there is none, or one: two steps tell that, while a search takes many.
    """
    first = timetable.next_after(after)
    if first is None or first > until:
        return None
    second = timetable.next_after(first)
    if second is None or second > until:
        return first
    return timetable.latest_until(until)


def wanted(
    slot: Slot, timetable: Timetable, newest: Micros, now: Micros, most: int
) -> list[Micros]:
    """Return at most so many instants to ask for, ascending, up to the newest that is due.

    That one is always asked for, even where it will not be sent: or it would never be settled.
    """
    if slot.policy.catch_up != "all":
        return [newest]
    if slot.cursor >= slot.backlog_end:  # what has become due since is another backlog
        slot.floor, slot.backlog_end = _floor(slot, timetable, newest, now), newest
    instants: list[Micros] = []
    at = max(slot.cursor, slot.floor)
    while len(instants) < most:
        following = timetable.next_after(at)
        if following is None or following > slot.backlog_end:
            break
        instants.append(at := following)
    return instants or [newest]


def _floor(slot: Slot, timetable: Timetable, newest: Micros, now: Micros) -> Micros:
    """Return the instant after which an entry that catches up all asks for its late ticks."""
    longest_ago = now - slot.policy.reach - slot.policy.jitter
    after = max(slot.cursor, slot.since - 1, longest_ago)
    return newest_begin(timetable, after, newest, slot.policy.limit)


def newest_begin(timetable: Timetable, after: Micros, newest: Micros, most: int) -> Micros:
    """Return the earliest instant from ``after`` on with at most so many ticks up to ``newest``.

    It goes back in strides that double while there is room, and then halve: a timetable may be
    dense here and empty there, and what has been counted is not counted again.
    """
    begin, room, stride, fits = newest, most, FIRST_STRIDE, True
    while begin > after and stride:
        earlier = max(after, begin - stride)
        number = _count(timetable, earlier, begin, room)
        if number <= room:
            begin, room = earlier, room - number
        else:
            fits = False
        stride = stride * 2 if fits else stride // 2
    return begin


def _count(timetable: Timetable, after: Micros, until: Micros, most: int) -> int:
    """Count the ticks later than one moment and not later than another; one over is enough."""
    number, at = 0, timetable.next_after(after)
    while at is not None and at <= until and number <= most:
        number, at = number + 1, timetable.next_after(at)
    return number
