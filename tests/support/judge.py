"""Judge a run by its messages: what was sent twice, early, under another id, or not at all.

It believes only what arrived at the broker, never what a node says of itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, Micros, to_datetime
from support.collector import Arrival, Collector

if TYPE_CHECKING:
    import redis

__all__ = ["Arrival", "Collector", "Verdict", "grid", "judge", "judge_all", "totals"]

Period = float | timedelta


def grid(period: Period, first: Micros, last: Micros, phase: Period = 0) -> tuple[Micros, ...]:
    """Return the whole multiples of ``period`` since the epoch, plus ``phase``, in [first, last].

    Numbers are seconds; the bounds and the answer are microseconds.
    """
    step, shift = _length(period), _length(phase)
    start = first + (shift - first) % step
    return tuple(range(start, last + 1, step))


def _length(period: Period) -> Micros:
    if isinstance(period, timedelta):
        return period // timedelta(microseconds=1)
    return round(period * SECOND)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one entry in a run; all instants are microseconds, sorted.

    ``due`` are the instants of the window; ``sent`` the different instants that arrived in it;
    ``doubled`` those that arrived more than once, ``other_id`` those that arrived under different
    task ids, ``early`` those that arrived before their instant, ``lost`` the due ones that never
    came, ``off_grid`` those that came and were not due. ``latest`` is the greatest lateness.
    """

    entry: str
    due: tuple[Micros, ...] = ()
    sent: tuple[Micros, ...] = ()
    doubled: tuple[Micros, ...] = ()
    other_id: tuple[Micros, ...] = ()
    early: tuple[Micros, ...] = ()
    lost: tuple[Micros, ...] = ()
    off_grid: tuple[Micros, ...] = ()
    latest: Micros = 0

    @property
    def clean(self) -> bool:
        """Whether every due instant arrived exactly once, in time, and nothing else did."""
        return not (self.doubled or self.other_id or self.early or self.lost or self.off_grid)

    @property
    def once(self) -> bool:
        """Whether nothing arrived twice, early or under another id; ticks may be missing."""
        return not (self.doubled or self.other_id or self.early)

    def __str__(self) -> str:
        faults = ("doubled", "other_id", "early", "lost", "off_grid")
        told = [f"{self.entry}: {len(self.sent)} of {len(self.due)} due were sent"]
        told += [f"{name}: {_told(getattr(self, name))}" for name in faults if getattr(self, name)]
        return "; ".join(told)


def _told(instants: Sequence[Micros]) -> str:
    shown = ", ".join(to_datetime(at).isoformat() for at in instants[:5])
    return f"{len(instants)} ({shown}{', …' if len(instants) > 5 else ''})"


def judge(
    arrivals: Iterable[Arrival],
    entry: str,
    due: Period | Iterable[Micros],
    *,
    first: Micros | None = None,
    last: Micros | None = None,
    phase: Period = 0,
) -> Verdict:
    """Judge one entry; ``due`` is a period, or the instants themselves.

    The window [first, last] is that of the instants seen, where it is not given. Without a window
    the instants before the first and after the last message are nobody's loss.
    """
    came: dict[Micros, list[Arrival]] = defaultdict(list)
    for each in arrivals:
        if each.tick is not None and each.tick.entry == entry:
            came[each.tick.at].append(each)
    first = min(came, default=0) if first is None else first
    last = max(came, default=-1) if last is None else last
    came = {at: came[at] for at in sorted(came) if first <= at <= last}
    wanted = grid(due, first, last, phase) if isinstance(due, float | int | timedelta) else due
    expected = tuple(sorted(at for at in wanted if first <= at <= last))
    return Verdict(
        entry=entry,
        due=expected,
        sent=tuple(came),
        doubled=tuple(at for at, some in came.items() if len(some) > 1),
        other_id=tuple(at for at, some in came.items() if len({one.task_id for one in some}) > 1),
        early=tuple(at for at, some in came.items() if min(one.at for one in some) < at),
        lost=tuple(at for at in expected if at not in came),
        off_grid=tuple(sorted(came.keys() - set(expected))),
        latest=max((min(one.at for one in some) - at for at, some in came.items()), default=0),
    )


def judge_all(
    arrivals: Iterable[Arrival],
    entries: Mapping[str, Period],
    *,
    first: Micros | None = None,
    last: Micros | None = None,
) -> dict[str, Verdict]:
    """Judge several entries by their periods, in one window."""
    known = list(arrivals)
    return {
        entry: judge(known, entry, period, first=first, last=last)
        for entry, period in entries.items()
    }


def totals(client: redis.Redis, namespace: str, prefix: str = "") -> dict[str, int]:
    """Return the ledger's counts per outcome and reason; ``prefix`` is a global key prefix."""
    found: Any = client.hgetall(f"{prefix}{{redlock:{namespace}}}:totals")
    return {_text(name): int(count) for name, count in found.items()}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
