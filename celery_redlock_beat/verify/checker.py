"""Judge the messages of one entry: what came twice, early, late, under another id, or not at all.

It computes the grid from plain periods and asks none of the timetables that are on trial; no node
is believed. What the ledger says of single ticks can only excuse that nothing came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.verify.verdict import EXCUSES, Verdict

if TYPE_CHECKING:
    from celery_redlock_beat.verify.arrivals import Arrival

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
class Rules:
    """What is asked of messages besides that they come once.

    ``late_after`` is how long after its instant one may come. With a ``namespace`` each task id
    must be the tick's own. With ``resends`` another attempt may be sent again under the same id,
    as it is where the broker is not the ledger's Redis.
    """

    late_after: float = inf
    namespace: str | None = None
    resends: bool = False


STRICT = Rules()


def judge(
    arrivals: Iterable[Arrival],
    entry: str,
    due: Period | Iterable[Micros],
    first: Micros | None = None,
    last: Micros | None = None,
    *,
    phase: Period = 0,
    told: Mapping[Micros, str] | None = None,
    rules: Rules = STRICT,
) -> Verdict:
    """Judge one entry; ``due`` is a period, or the instants themselves.

    The window [first, last] is that of the instants seen, where it is not given. Without a window
    the instants before the first and after the last message are nobody's loss. ``told`` is what
    the ledger says of single instants.
    """
    came: dict[Micros, list[Arrival]] = defaultdict(list)
    for each in arrivals:
        if each.tick is not None and each.tick.entry == entry:
            came[each.tick.at].append(each)
    first = min(came, default=0) if first is None else first
    last = max(came, default=-1) if last is None else last
    came = {at: came[at] for at in sorted(came) if first <= at <= last}
    wanted = grid(due, first, last, phase) if isinstance(due, float | int | timedelta) else due
    expected = tuple(sorted({at for at in wanted if first <= at <= last}))
    fates = _fates(expected, came, told or {})
    delays = {at: min(one.at for one in some) - at for at, some in came.items()}
    often = {at: some for at, some in came.items() if len(some) > 1}
    resent = tuple(at for at, some in often.items() if rules.resends and _is_resent(some))
    return Verdict(
        entry=entry,
        due=expected,
        sent=tuple(came),
        doubled=tuple(at for at in often if at not in resent),
        resent=resent,
        other_id=tuple(at for at, some in came.items() if _has_other_id(some, rules.namespace)),
        early=tuple(at for at, delay in delays.items() if delay < 0),
        lost=tuple(at for at, fate in fates if fate == "lost"),
        off_grid=tuple(sorted(came.keys() - set(expected))),
        latest=max(delays.values(), default=0),
        late=tuple(at for at, delay in delays.items() if delay > rules.late_after),
        **{name: tuple(at for at, fate in fates if fate == name) for name in EXCUSES},
    )


def _is_resent(some: Sequence[Arrival]) -> bool:
    """Whether each message is of another attempt, all with one id."""
    return len({one.attempt for one in some}) == len(some) and not _has_other_id(some, None)


def _has_other_id(some: Sequence[Arrival], namespace: str | None) -> bool:
    ids = {one.task_id for one in some}
    if namespace is not None:
        ids |= {one.tick.task_id(namespace) for one in some if one.tick is not None}
    return len(ids) > 1


def _fates(
    due: Sequence[Micros], came: Mapping[Micros, Sequence[Arrival]], told: Mapping[Micros, str]
) -> list[tuple[Micros, str]]:
    """Return what became of each due instant at which nothing came."""
    missing = [at for at in due if at not in came]
    over = set(_passed_over(missing, came))
    found = []
    for at in missing:
        word = told.get(at, "").partition(":")[0]
        fate = word if word in EXCUSES else "skipped" if at in over and not word else "lost"
        found.append((at, fate))
    return found


def _passed_over(
    missing: Sequence[Micros], came: Mapping[Micros, Sequence[Arrival]]
) -> Iterator[Micros]:
    """Yield the missing instants that a message says were passed over: those right before it."""
    gap: list[Micros] = []
    for at in sorted([*missing, *came]):
        if at not in came:
            gap.append(at)
            continue
        number = max(one.passed_over for one in came[at])
        yield from gap[max(0, len(gap) - number) :] if number else ()
        gap.clear()


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
