"""The judge's own books: what became of every due tick, and what the ledger counted meanwhile."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from celery_redlock_beat.ticks import SECOND, Micros, Tick

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from celery_redlock_beat.ledger import Grant
    from celery_redlock_beat.ledger.memory_server import MemoryServer
    from celery_redlock_beat.ticks import Reason
    from simulation.plan import Job

MOMENT: Micros = SECOND // 20
"""How wrong a node may be about the server's time."""


class Books:
    """Accounting: every due tick has one outcome, and the ledger's totals say so.

    An outcome accounts for what lies after the mark before it, up to its tick. Entries that a
    deploy changed are left out where nodes may rightly count by either timetable.
    """

    def __init__(self, server: MemoryServer, blame: Callable[[str], None]) -> None:
        self._server = server
        self._blame = blame
        self._totals: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._spans: dict[str, list[tuple[Micros, Micros]]] = defaultdict(list)
        self._begin: dict[str, Micros] = {}
        self._jobs: dict[str, Job] = {}
        self._clock_is_steady = True

    def open_for(self, entry: str, job: Job) -> None:
        """Hold an entry against its timetable and its policy, until a deploy changes it."""
        self._jobs[entry] = job

    def close_for(self, entry: str) -> None:
        self._jobs.pop(entry, None)

    def clock_is_set(self) -> None:
        """From now on it is not known how late a tick was for whoever decided on it."""
        self._clock_is_steady = False

    def begins(self, entry: str, mark: Micros) -> None:
        """An entry is new to the ledger, or was lost with all who remembered it."""
        self._begin[entry] = mark

    def account(
        self, tick: Tick, previous: Micros, outcome: str, passed: Mapping[Reason, int]
    ) -> None:
        """A tick has an outcome now, and so have those that were passed over for it."""
        self._spans[tick.entry].append((previous, tick.at))
        counted = Counter({f"skipped:{reason}": number for reason, number in passed.items()})
        self._counted += counted + Counter([outcome])
        job = self._jobs.get(tick.entry)
        if job and job.timetable.latest_until(tick.at) != tick.at:
            self._blame(f"Accounting: {tick} is {outcome}, and is no tick of its timetable")
        if job and outcome != "skipped:unknown_entry":
            due = job.timetable.count_between(previous, tick.at).number
            if due != counted.total():
                self._blame(f"Accounting: {tick} passed over {due}, {counted.total()} were counted")
            if due and job.policy.catch_up == "all" and self._clock_is_steady:
                self._judge_catch_up(tick, job)

    def _judge_catch_up(self, tick: Tick, job: Job) -> None:
        """Where all are to be caught up, only those that are too old may be passed over."""
        newest = job.timetable.latest_until(tick.at - 1)
        since, now = self._server.marks[tick.entry].since, self._server.clock()
        if newest >= since and now - newest < job.policy.reach - MOMENT:
            self._blame(f"Policy: {tick} passed over {Tick(tick.entry, newest)}, not too late yet")

    def totals_are_lost(self) -> None:
        self._totals = Counter(self._server.totals)

    def balance(self, verb: str) -> None:
        """After each call: the ledger has counted what there was to count, and nothing else."""
        if self._counted or self._server.totals != self._totals:
            self._totals += self._counted
            if self._totals != self._server.totals:
                told = dict(self._server.totals)
                self._blame(f"Accounting: {verb} made it {told}, and it is {dict(self._totals)}")
            self._counted.clear()

    def take_stock(self, *, is_whole: bool) -> None:
        """At the end: no due tick is missing, and, where nothing was lost, none counted twice."""
        for entry, job in self._jobs.items():
            spans = sorted([*self._spans[entry], *self._open_spans(entry)])
            record, begin = self._server.marks[entry], self._begin[entry]
            if not is_whole:  # an older registration may have been remembered since
                begin = max(begin, record.since - 1)
            at = job.timetable.next_after(begin)
            while at <= record.mark:
                if not any(after < at <= until for after, until in spans):
                    self._blame(f"Accounting: nothing is known of {Tick(entry, at)}")
                at = job.timetable.next_after(at)
            for (_, until), (after, _) in pairwise(spans):
                if is_whole and after < until:
                    self._blame(f"Accounting: {Tick(entry, until)} was counted twice")

    def _open_spans(self, entry: str) -> list[tuple[Micros, Micros]]:
        held: dict[Tick, Grant] = self._server.grants
        return [(held[tick].previous, tick.at) for tick in self._server.open if tick.entry == entry]
