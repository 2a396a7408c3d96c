"""Judge the messages of entries that an operator changed: by his own record, and the history.

It believes no node, and computes no timetable but whole multiples of periods. The queue's order
alone tells what came after a call had returned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, Micros, Tick
from support.deeds import BEGINS, RETURNED, Deed, Kind, Life, timed_alike

if TYPE_CHECKING:
    from support.account import Books
    from support.collector import Arrival
    from support.passages import Passage

SURELY_SENT: Micros = 8 * SECOND
"""How long after its instant a tick is sent, whoever died: after a lease, and 3 s."""
SHUTS = {Kind.PAUSE, Kind.REMOVE}
OPENS = {Kind.RESUME, Kind.ADD}


@dataclass(slots=True)
class Findings:
    """What must not be, by kind; ``due`` and ``sent`` are counts, of what is certainly due."""

    faults: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    due: int = 0
    sent: int = 0
    changes: int = 0

    def fault(self, kind: str, *what: Any) -> None:
        """Note one."""
        self.faults[kind].append(what)

    def __str__(self) -> str:
        counts = {kind: len(found) for kind, found in self.faults.items()}
        return f"{self.changes} changes, {self.due} due, {self.sent} sent, faults {counts}"


def judge_messages(
    arrivals: Sequence[Arrival],
    deeds: Sequence[Deed],
    lives: Mapping[str, Life],
    namespace: str,
    found: Findings,
) -> None:
    """Judge what came, in its order: nothing twice, early, after its time, or of other terms."""
    own = [each for each in arrivals if each.tick]
    _judge_ids(own, namespace, found)
    _judge_order(arrivals, deeds, found)
    for each in own:
        _judge_terms(each, lives[each.tick.entry], found)


def judge_books(
    arrivals: Sequence[Arrival],
    lives: Mapping[str, Life],
    passages: Sequence[Passage],
    books: Books,
    last: Micros,
    found: Findings,
) -> None:
    """Judge a run that has ended and lost no data: what was due came, or is told to be skipped."""
    own = [each for each in arrivals if each.tick]
    by_entry = _grouped(own, passages)
    for entry, life in lives.items():
        _judge_losses(life, *by_entry[entry], books, last, found)
    _judge_totals(own, passages, books, found)


def _grouped(
    arrivals: Iterable[Arrival], passages: Iterable[Passage]
) -> Mapping[str, tuple[set[Micros], list[Passage]]]:
    grouped: dict[str, tuple[set[Micros], list[Passage]]] = defaultdict(lambda: (set(), []))
    for each in arrivals:
        grouped[each.tick.entry][0].add(each.tick.at)
    for passage in passages:
        grouped[passage.entry][1].append(passage)
    return grouped


def _judge_ids(arrivals: Iterable[Arrival], namespace: str, found: Findings) -> None:
    for task_id, number in Counter(each.task_id for each in arrivals).items():
        if number > 1:
            found.fault("doubled", task_id, number)
    for each in arrivals:
        if each.task_id != each.tick.task_id(namespace):
            found.fault("other id", each)
        if not each.tick.at <= (each.fence or 0) <= each.at:
            found.fault("early", each)


def _judge_order(arrivals: Iterable[Arrival], deeds: Sequence[Deed], found: Findings) -> None:
    """Look that nothing of an entry lies behind the mark of a pause or removal that returned."""
    shutting = {deed.mark(RETURNED): deed for deed in deeds if deed.kind in SHUTS}
    opening = {deed.mark(BEGINS): deed for deed in deeds if deed.kind in OPENS}
    shut: dict[str, Deed] = {}
    for each in arrivals:
        if each.task_id in shutting:
            shut[shutting[each.task_id].entry] = shutting[each.task_id]
        elif each.task_id in opening:
            shut.pop(opening[each.task_id].entry, None)
        deed = shut.get(each.tick.entry) if each.tick else None
        if deed and not (deed.until and (each.fence or 0) > deed.until):
            found.fault(f"after {deed.kind}", each, deed)


def _judge_terms(message: Arrival, life: Life, found: Findings) -> None:
    """Look that a message is of terms in force since its grant, and its tick of that timetable."""
    at, fence = message.tick.at, message.fence or 0
    version = int("".join(filter(str.isdigit, message.headers["argsrepr"])) or 0)
    runs = [run for run in life.in_force(fence, message.at) if run.terms.version == version]
    if not runs:
        found.fault("arguments not in force", message, version)
        return
    run = runs[0]
    group = next(group for group in timed_alike(life.terms) if run in group)
    # What was granted before a change may be sent with the new arguments.
    ticks = [each for each in life.in_force(at, at) if each.life == run.life]
    if not any(at % round(each.terms.period * SECOND) == 0 for each in ticks):
        found.fault("off grid", message)
    if fence > group[0].since.returned and at < group[0].since.begins:
        found.fault("of before a change", message, run)
    for hold in life.holds:
        ends = min(hold.until.begins, hold.ends_at or hold.until.begins)
        if hold.forgets and hold.since.returned < at < ends and message.at > hold.until.returned:
            found.fault("of within a pause", message, hold)


def _judge_losses(
    life: Life,
    sent: set[Micros],
    passages: Sequence[Passage],
    books: Books,
    last: Micros,
    found: Findings,
) -> None:
    """Look that each tick that was certainly due was sent, or is counted; and that so many are."""
    mark = books.marks.get(life.entry, 0) if life.exists else life.end.returned
    closed = {each.tick for each in passages if each.closes}
    unsent = {each.tick for each in passages if each.closes and each.outcome != "sent"}
    opened = {tick.at for tick in books.open if tick.entry == life.entry}
    telling = [each for each in passages if each.counted]
    due = 0
    for at, run in life.certainly_due():
        if at > mark:
            if at < last - 2 * SECOND:
                found.fault("owed at the end", Tick(life.entry, at))
            continue
        due += 1
        if at in sent:
            continue
        if not (at in closed or at in opened or any(each.has_passed(at) for each in telling)):
            found.fault("lost", Tick(life.entry, at), run)
        if run.terms.catch_up == "all" and _is_calm(life, at):
            found.fault("not sent in calm", Tick(life.entry, at), run)
    found.due += due
    found.sent += len(sent)
    perhaps = len(set(life.perhaps_due()))
    counted = len(sent | unsent | opened) + sum(each.counted for each in telling)
    if not due <= counted <= due + perhaps:
        found.fault("not accounted for", life.entry, due, perhaps, counted)


def _is_calm(life: Life, at: Micros) -> bool:
    """Whether nothing was done to an entry long enough after a tick, and it was not paused then."""
    until = at + SURELY_SENT
    changes = [moment for run in life.terms for moment in (run.since, run.until)]
    is_changed = any(at <= each.returned and each.begins <= until for each in changes)
    is_held = any(at <= each.until.returned and each.since.begins <= until for each in life.holds)
    return not (is_changed or is_held)


def _judge_totals(
    own: Sequence[Arrival], passages: Sequence[Passage], books: Books, found: Findings
) -> None:
    """Look that what the ledger counted is what came, and what its history tells."""
    told: Counter[str] = Counter()
    for each in passages:
        if each.closes:
            told[each.outcome] += 1
        for part in filter(None, each.passed.split(",")):
            reason, number = part.split(" ")
            told[f"skipped:{reason}"] += int(number)
    if dict(told) != dict(books.totals):
        found.fault("totals", dict(told), dict(books.totals))
    if told["sent"] != len(own):
        found.fault("sent", told["sent"], len(own))
