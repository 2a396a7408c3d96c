"""Account for the ticks of a run: the messages that came, against the ledger's own totals.

It starts and stops nothing, and believes no node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, Micros, Tick
from support.judge import Verdict, grid, judge, totals

if TYPE_CHECKING:
    import redis

    from support.collector import Arrival

FAULTS = ("doubled", "other_id", "early", "lost", "off_grid")


@dataclass(frozen=True, slots=True)
class Books:
    """What the ledger holds: per entry its mark and the instant it is known since, and the rest."""

    marks: Mapping[str, Micros]
    since: Mapping[str, Micros]
    open: frozenset[Tick]
    totals: Mapping[str, int]

    @classmethod
    def read(cls, client: redis.Redis, namespace: str, prefix: str = "") -> Books:
        """Read them from the ledger's keys."""
        stem = f"{prefix}{{redlock:{namespace}}}"
        records: Any = client.hgetall(f"{stem}:marks")
        known = {
            key.decode().removeprefix("e:"): [int(part) for part in text.split(b" ")[:2]]
            for key, text in records.items()
            if key.startswith(b"e:")
        }
        members: Any = client.zrange(f"{stem}:open", 0, -1)
        opened = (member.decode().partition(":") for member in members)
        return cls(
            marks={entry: mark for entry, (mark, _) in known.items()},
            since={entry: since for entry, (_, since) in known.items()},
            open=frozenset(Tick(entry, int(at)) for at, _, entry in opened),
            totals=totals(client, namespace, prefix),
        )


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the ticks of a run, entry by entry, and as the ledger counted them.

    ``premature`` are messages whose grant is older than their instant. ``unaccounted`` are ticks up
    to the marks that the ledger calls neither sent nor skipped nor open; ``uncounted`` are ticks
    that came beyond those that it counted as sent.
    """

    verdicts: Mapping[str, Verdict]
    totals: Mapping[str, int] = field(default_factory=dict)
    open: int = 0
    premature: int = 0
    unaccounted: int = 0
    uncounted: int = 0

    def count(self, name: str) -> int:
        """Return how many instants all entries have of ``due``, ``sent``, or a fault."""
        return sum(len(getattr(verdict, name)) for verdict in self.verdicts.values())

    @property
    def faults(self) -> dict[str, Any]:
        """Everything that must not be, with the ticks; empty after a run as it should be."""
        found = {
            f"{entry} {name}": instants
            for entry, verdict in self.verdicts.items()
            for name in FAULTS
            if (instants := getattr(verdict, name))
        }
        counted = ("premature", "unaccounted", "uncounted")
        return found | {name: number for name in counted if (number := getattr(self, name))}

    def faults_but(self, *allowed: str) -> dict[str, Any]:
        """Return the faults without those of these kinds."""
        return {
            name: found
            for name, found in self.faults.items()
            if name.rpartition(" ")[2] not in allowed
        }

    def __str__(self) -> str:
        told = [f"{name} {self.count(name)}" for name in ("due", "sent", *FAULTS[:4])]
        told += [f"{name} {count}" for name, count in self.totals.items() if name != "sent"]
        latest = max((verdict.latest for verdict in self.verdicts.values()), default=0)
        return f"{', '.join(told)}, open {self.open}, latest {latest / SECOND:.3f} s"


def account_for(
    arrivals: Sequence[Arrival],
    entries: Collection[str],
    since: Mapping[str, Micros],
    last: Micros,
    books: Books | None = None,
    *,
    exact: bool = True,
) -> Account:
    """Judge entries that are due every second, from their registration on.

    Until ``last`` all must have come; later ones may, once. With the ledger's ``books`` the law
    of accounting is looked at too, for all that it knows ``since`` an instant, and with ``exact``
    that each message was counted.
    """
    verdicts = {entry: _verdict(arrivals, entry, since[entry], last) for entry in entries}
    # A fence is the server's time of the grant, or a little more.
    fences = [(int(one.headers["redlock_fence"]), one.tick.at) for one in arrivals if one.tick]
    premature = sum(fence < at for fence, at in fences)
    if books is None:
        return Account(verdicts, premature=premature)
    asked = sum(len(grid(1, since[entry] + 1, books.marks[entry])) for entry in since)
    closed = sum(books.totals.values())
    seen = len({each.tick for each in arrivals if each.tick is not None})
    return Account(
        verdicts,
        books.totals,
        open=len(books.open),
        premature=premature,
        unaccounted=asked - closed - len(books.open),
        uncounted=seen - books.totals.get("sent", 0) if exact else 0,
    )


def _verdict(arrivals: Iterable[Arrival], entry: str, since: Micros, last: Micros) -> Verdict:
    own = [each for each in arrivals if each.tick is not None and each.tick.entry == entry]
    seen = [each.tick.at for each in own if each.tick is not None]
    came = set(seen)
    wanted = grid(1, since + 1, max([last, *came]))
    due = [at for at in wanted if at <= last or at in came]
    return judge(own, entry, due, first=min([since + 1, *came]), last=max([last, *came]))


def untold_gaps(arrivals: Iterable[Arrival], entry: str) -> Iterator[tuple[Micros, int]]:
    """Yield the ticks whose message tells of another number of passed over ticks than there are."""
    own = sorted(
        (each.tick.at, int(each.headers["redlock_passed_over"]))
        for each in arrivals
        if each.tick is not None and each.tick.entry == entry
    )
    for (earlier, _), (at, told) in pairwise(own):
        if told != len(grid(1, earlier + 1, at - 1)):
            yield at, told
