"""Account for the ticks of a run: the messages that came, against the ledger's own counts.

It starts and stops nothing, and believes no node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.verify.books import IN_DOUBT, Books, Memory
from celery_redlock_beat.verify.checker import STRICT, Period, Rules, grid, judge
from celery_redlock_beat.verify.verdict import FAULTS, Verdict

if TYPE_CHECKING:
    from celery_redlock_beat.verify.arrivals import Arrival

NOT_SENT = ("skipped", "open")
NOTHING = Memory()
COUNTED = ("premature", "unaccounted", "uncounted")


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the ticks of a run, entry by entry, and as the ledger counted them.

    ``premature`` are messages whose grant is older than their instant. ``unaccounted`` are ticks up
    to the marks that the ledger calls neither sent nor skipped nor open nor in doubt; ``uncounted``
    are ticks that came beyond those that it counted as sent, or knows to be in doubt. ``in_doubt``
    is what it counted as such; that is no fault, as long as it names every one of the ticks that
    did not come.
    """

    verdicts: Mapping[str, Verdict]
    totals: Mapping[str, int] = field(default_factory=dict)
    open: int = 0
    premature: int = 0
    unaccounted: int = 0
    uncounted: int = 0
    in_doubt: int = 0

    def count(self, name: str) -> int:
        """Return how many instants all entries have of ``due``, ``sent``, or a fault."""
        return sum(len(getattr(verdict, name)) for verdict in self.verdicts.values())

    @property
    def faults(self) -> dict[str, Any]:
        """Everything that must not be, with the ticks; empty after a run as it should be."""
        found = {
            f"{entry} {name}": instants
            for entry, verdict in self.verdicts.items()
            for name in (*FAULTS, *NOT_SENT)
            if (instants := getattr(verdict, name))
        }
        return found | {name: number for name in COUNTED if (number := getattr(self, name))}

    def faults_but(self, *allowed: str) -> dict[str, Any]:
        """Return the faults without those of these kinds."""
        return {
            name: found
            for name, found in self.faults.items()
            if name.rpartition(" ")[2] not in allowed
        }

    @property
    def latest(self) -> Micros:
        """The greatest lateness."""
        return max((verdict.latest for verdict in self.verdicts.values()), default=0)

    def __str__(self) -> str:
        told = [f"{name} {self.count(name)}" for name in ("due", "sent", *FAULTS[:4])]
        told += [f"{name} {count}" for name, count in self.totals.items() if name != "sent"]
        return f"{', '.join(told)}, open {self.open}, latest {self.latest / SECOND:.3f} s"


def account_for(
    arrivals: Sequence[Arrival],
    entries: Collection[str] | Mapping[str, Period],
    since: Mapping[str, Micros],
    last: Micros,
    books: Books | None = None,
    *,
    exact: bool = True,
    memory: Memory = NOTHING,
    rules: Rules = STRICT,
) -> Account:
    """Judge entries that are due every second, or as their period says, from ``since`` on.

    Until ``last`` all must have come; later ones may, once. With the ledger's ``books`` the law
    of accounting is looked at too, for all that it knows ``since`` an instant, and with ``exact``
    that each message was counted. Where the ledger may lose its data, ``memory`` has the books as
    they were before: what it had counted by then goes on counting, and since some of it is counted
    again as in doubt, only too little is a fault.
    """
    memory = memory if books is None else memory.then(books)
    told: dict[str, dict[Micros, str]] = defaultdict(dict)
    for tick, word in memory.told.items():
        told[tick.entry][tick.at] = word
    periods = dict(entries) if isinstance(entries, Mapping) else dict.fromkeys(entries, 1)
    verdicts = {
        entry: judge(
            arrivals,
            entry,
            *_window(arrivals, entry, period, since[entry], last),
            told=told[entry],
            rules=rules,
        )
        for entry, period in periods.items()
    }
    fences = [(one.fence, one.tick.at) for one in arrivals if one.tick]
    premature = sum(fence is not None and fence < at for fence, at in fences)
    if books is None:
        return Account(verdicts, premature=premature)
    asked = sum(
        len(grid(periods.get(entry, 1), instant + 1, books.marks.get(entry, instant)))
        for entry, instant in since.items()
    )
    unaccounted = asked - sum(memory.totals.values()) - len(books.open)
    seen = {each.tick for each in arrivals if each.tick is not None}
    in_doubt = sum(memory.told.get(tick, "").startswith(IN_DOUBT) for tick in seen)
    uncounted = len(seen) - memory.totals.get("sent", 0) - in_doubt if exact else 0
    return Account(
        verdicts,
        memory.totals,
        open=len(books.open),
        premature=premature,
        unaccounted=max(0, unaccounted) if memory.lossy else unaccounted,
        uncounted=max(0, uncounted) if memory.lossy else uncounted,
        in_doubt=memory.in_doubt,
    )


def _window(
    arrivals: Iterable[Arrival], entry: str, period: Period, since: Micros, last: Micros
) -> tuple[list[Micros], Micros, Micros]:
    """Return what is due, and the window: all until ``last``, and of later ones those that came."""
    came = {each.tick.at for each in arrivals if each.tick is not None and each.tick.entry == entry}
    end = max([last, *came])
    due = [at for at in grid(period, since + 1, end) if at <= last or at in came]
    return due, min([since + 1, *came]), end


def untold_gaps(arrivals: Iterable[Arrival], entry: str) -> Iterator[tuple[Micros, int]]:
    """Yield the ticks whose message tells of another number of passed over ticks than there are."""
    own = sorted(
        (each.tick.at, each.passed_over)
        for each in arrivals
        if each.tick is not None and each.tick.entry == entry
    )
    for (earlier, _), (at, told) in pairwise(own):
        if told != len(grid(1, earlier + 1, at - 1)):
            yield at, told
