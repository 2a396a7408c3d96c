"""The judge of limits: how many runs an entry may have, and how many it has had.

Whoever is told a mark is told the runs up to it. What the server must know of them is what its data
has, or, of marks above that, what those who remember were told with the highest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.ledger import Closing, Verdict
from simulation.minds import Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from celery_redlock_beat.ledger import Answer, Ask
    from celery_redlock_beat.ticks import Micros, Tick
    from simulation.link import Call
    from simulation.minds import Mind
    from simulation.oracle import Oracle


class Runs:
    """Never more than an entry may have; and, as long as nothing is lost, no fewer."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._server = oracle.server
        self._open: set[Tick] = set()

    def of(self, entry: str) -> Told:
        """Return the runs of an entry that the server must know."""
        return self._oracle.known.runs.get(entry, Told())

    def learn(self, mind: Mind, own_marks: Mapping[str, Micros]) -> None:
        """Know from now on what a node was told with marks that this copy of the data lacks."""
        for entry, told in mind.runs.items():
            if told.mark > own_marks.get(entry, 0):
                both = (self.of(entry), told)
                self._oracle.known.runs[entry] = max(both, key=lambda t: (t.mark, len(t.ticks)))

    def executing(self) -> None:
        self._open = set(self._server.open)

    def executed(self, call: Call) -> None:
        """Judge what a call has done, and take down what it tells."""
        marks: dict[str, Micros] = {}
        if call.verb == "claim":
            for ask, answer in zip(call.args[0], call.answer.answers, strict=True):
                self._judge(ask, answer)
            marks = {each.tick.entry: each.mark for each in call.answer.answers if each.mark >= 0}
        elif call.verb == "register":
            marks = {record.entry: record.mark for record in call.answer}
        elif call.verb == "settle":
            for settlement, closing in zip(call.args[0], call.answer, strict=True):
                is_skipped = settlement.outcome.text.startswith("skipped:")
                if closing is Closing.DONE and is_skipped and settlement.grant.attempt == 1:
                    self._is_none(settlement.grant.tick)
        call.runs = {entry: Told(mark, self.of(entry).ticks) for entry, mark in marks.items()}

    def take_stock(self) -> None:
        """At the end: the ledger has counted what there was, or more where data was lost."""
        for entry, record in self._server.marks.items():
            had = len(self.of(entry).ticks)
            if record.runs < had or (record.runs > had and not self._oracle.losses):
                self._oracle.blame(f"Runs: {entry!r} had {had}, and {record.runs} are counted")

    def _judge(self, ask: Ask, answer: Answer) -> None:
        tick, ticks = ask.tick, self.of(ask.tick.entry).ticks
        had = len(ticks)
        if answer.verdict is Verdict.GRANTED and tick not in self._open:
            if ask.limit is not None and had >= ask.limit:
                self._oracle.blame(f"Runs: {tick} is run {had + 1} of {ask.limit}")
            self._oracle.known.runs[tick.entry] = Told(answer.mark, ticks | {tick})
        is_over = answer.verdict is Verdict.FINISHED and not self._oracle.losses
        if is_over and len(ticks - self._open) < ask.limit:
            self._oracle.blame(f"Runs: {tick.entry!r} is over, and was not sent {ask.limit} times")

    def _is_none(self, tick: Tick) -> None:
        mark, ticks = self.of(tick.entry)
        self._oracle.known.runs[tick.entry] = Told(mark, ticks - {tick})
