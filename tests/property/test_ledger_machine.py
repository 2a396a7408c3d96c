"""Nodes that follow the rules, on a ledger that answers or not: what holds for any interleaving.

The machine sees all answers, also those that a node never hears. It judges Once, Mark, Same id,
Clock, Accounting and how often an entry may run; it knows nothing of how the ledger keeps its
records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.hand import Hand
from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.ledger import (
    Answer,
    Ask,
    Claimed,
    Closing,
    Grant,
    Orphan,
    Registration,
    Release,
    Settlement,
    Verdict,
)
from celery_redlock_beat.ledger.steering import Ending, Look, Remainder, Resumption
from celery_redlock_beat.ticks import SENT, Micros, Reason, Tick, skipped
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.witness import Witness
from ledger.places import (
    MemoryPlace,
    Node,
    Place,
    RedisPlace,
    message,
    messages,
    reply_lost,
)

if TYPE_CHECKING:
    from celery_redlock_beat.ledger.testimony import Testimony

ENTRIES = ("tidy", "send: mail")
LIMITS = {"send: mail": 4}
PERIOD: Micros = 4_000
GRID = Interval(PERIOD)
LEASE: Micros = 15_000
HOLD_DOWN: Micros = 5_000
NODES = 3
MOST_PUSHES = 20

spans = st.sampled_from([1, PERIOD, LEASE, LEASE + 1, 3 * LEASE])
indexes = st.integers(0, 99)
counts = st.integers(1, 3)
entries = st.sampled_from(ENTRIES)
rarely = st.sampled_from([False, False, True])


def grid_between(after: Micros, before: Micros) -> range:
    """Return the instants of the interval strictly between two moments."""
    return range((after // PERIOD + 1) * PERIOD, before, PERIOD)


@dataclass
class Peer:
    """What a node keeps in mind: what it was answered, and what it was granted."""

    ledger: Node
    witness: Witness = field(default_factory=lambda: Witness(loses_messages=True))
    hand: Hand = field(default_factory=Hand)
    unsettled: list[Settlement] = field(default_factory=list)
    orphans: list[Orphan] = field(default_factory=list)
    cursor: int = 0
    runs: dict[str, frozenset[Tick]] = field(default_factory=dict)

    @property
    def marks(self) -> dict[str, Micros]:
        return self.witness.marks

    @property
    def held(self) -> dict[Tick, Grant]:
        return self.hand.held

    def learn(self, claimed: Claimed) -> None:
        self.orphans, self.cursor = claimed.orphans, claimed.cursor
        self.witness.hear(claimed)
        for answer in claimed.answers:
            if answer.grant is not None:
                self.held[answer.tick] = answer.grant

    def knows_closed(self, tick: Tick) -> bool:
        told = self.witness.testimony([], self.hand)
        settled = {each.grant.tick for each in told.settled}
        of_entry = (each for each in told.memories if each.entry == tick.entry)
        at = tick.at
        vouched = any(at <= each.closed and at not in each.still_open for each in of_entry)
        return tick in settled or vouched


@dataclass
class Letter:
    """An enqueue on its way, with what the node knew when it sent it."""

    ledger: Any
    epoch: str
    fence: int
    grant: Grant

    def arrive(self) -> Closing | None:
        """Have it arrive; ``None`` where the server must recover first."""
        now = self.ledger.epoch, self.ledger.fence
        self.ledger.epoch, self.ledger.fence = self.epoch, self.fence
        try:
            return self.ledger.enqueue(self.grant, [message(self.grant.tick)], passed(self.grant))
        except LedgerRecovering:
            return None
        finally:
            self.ledger.epoch, self.ledger.fence = now


@dataclass
class Copy:
    """What a server that lost data still has: nothing, or what a replica had some time ago."""

    snapshot: Any = None
    marks: dict[str, Micros] = field(default_factory=dict)
    fates: dict[Tick, str] = field(default_factory=dict)
    in_doubt: set[Tick] = field(default_factory=set)
    opened: dict[Tick, Micros] = field(default_factory=dict)
    fences: dict[Tick, int] = field(default_factory=dict)
    sent: Counter[Tick] = field(default_factory=Counter)
    runs: dict[str, frozenset[Tick]] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)


def ask_for(tick: Tick) -> Ask:
    return Ask(tick, tick.at, limit=LIMITS.get(tick.entry))


def between(grant: Grant) -> range:
    return grid_between(grant.previous, grant.tick.at)


def passed(grant: Grant) -> dict[Reason, int]:
    """Count what was passed over, exactly as a node does."""
    number = len(between(grant))
    return {Reason.SUPERSEDED: number} if number else {}


def only_if(condition: Callable[[LedgerMachine], Any]):
    """Have a rule do nothing where there is nothing to do.

    In memory it is not even chosen; on a real server that would make the choice depend on time.
    """

    def decorate(function):
        @wraps(function)
        def guarded(machine: LedgerMachine, **given: Any) -> None:
            if condition(machine):
                function(machine, **given)

        return precondition(lambda self: self.place.kind != "memory" or condition(self))(guarded)

    return decorate


class LedgerMachine(RuleBasedStateMachine):
    """Nodes, disasters, and the whole truth about every tick."""

    def __init__(self, make_place) -> None:
        super().__init__()
        self.place: Place = make_place()
        self.letters: list[Letter] = []
        self.start: dict[str, Micros] = {}
        self.fates: dict[Tick, str] = {}
        self.opened: dict[Tick, Micros] = {}  # → the mark before its first grant
        self.leases: dict[Tick, Micros] = {}
        self.fences: dict[Tick, int] = {}  # of the present grant
        self.in_doubt: set[Tick] = set()
        self.forgotten: set[Tick] = set()  # sent, then lost with all who remembered it
        self.sent_ever: Counter[Tick] = Counter()
        self.sent_here: Counter[Tick] = Counter()
        self.totals: Counter[str] = Counter()
        self.paused: set[str] = set()
        self.fence = 0
        self.marks: dict[str, Micros] = {}
        self.runs: dict[str, frozenset[Tick]] = dict.fromkeys(ENTRIES, frozenset())
        self.is_whole = True
        self.copy: Copy | None = None

    @initialize()
    def begin(self) -> None:
        first = self.new_peer()
        self.start = dict(first.marks)
        self.peers = [first, *(self.new_peer() for _ in range(NODES - 1))]
        self.operator = self.place.operator()

    def teardown(self) -> None:
        self.place.close()

    # --- what happens ---------------------------------------------------------------------------

    @rule(span=spans)
    def time_passes(self, span: Micros) -> None:
        self.place.pass_time(span)

    @rule(number=indexes, entry=entries, count=counts, adopts=st.booleans(), lost=rarely)
    def claim(self, number: int, entry: str, count: int, adopts: bool, lost: bool) -> None:
        """Ask for the newest ticks, and for orphans; the reply may be lost."""
        peer = self.peer(number)
        asks = self.orphans(peer) if adopts else []
        self.ask(peer, asks + self.newest(peer, entry, count, self.place.now()), lost)

    @rule(number=indexes, entry=entries, count=counts, ahead=st.sampled_from([1, 3, 1000]))
    def claim_by_a_clock_that_runs_ahead(self, number, entry, count, ahead) -> None:
        peer = self.peer(number)
        self.ask(peer, self.newest(peer, entry, count, self.place.now() + ahead * PERIOD))

    @rule(number=indexes, late=st.sampled_from([0, PERIOD, LEASE + 1]))
    def work(self, number: int, late: Micros) -> None:
        """Do what a node does all day: claim and send everything, a while after it was due."""
        self.place.pass_time(late)
        peer = self.peer(number)
        asks = self.orphans(peer)
        for entry in ENTRIES:
            asks += self.newest(peer, entry, 2, self.place.now())
        self.ask(peer, asks)
        for grant in list(peer.held.values()):
            self.send(peer, grant, "heard")

    @rule(
        number=indexes,
        entry=entries,
        by=st.integers(1, NODES - 1),
        first=st.booleans(),
        gives_back=rarely,
    )
    def a_slow_node_is_overtaken(self, number, entry, by, first, gives_back) -> None:
        """Let a lease end, another node adopt the tick, and both finish it, in either order."""
        self.place.pass_time(PERIOD)
        slow, other = self.peer(number), self.peer(number + by)
        self.ask(slow, self.newest(slow, entry, 1, self.place.now()))
        self.place.pass_time(LEASE + 1)
        self.ask(other, self.orphans(other))
        for peer in (slow, other) if first else (other, slow):
            for grant in list(peer.held.values()):
                if peer is slow and gives_back:
                    self.give_back(peer, peer.held.pop(grant.tick), 0, Release.FAILED)
                else:
                    self.send(peer, grant, "heard")

    @rule(
        number=indexes,
        pick=indexes,
        how=st.sampled_from(["heard", "reply lost", "late", "request lost"]),
    )
    @only_if(lambda self: self.holders())
    def enqueue(self, number: int, pick: int, how: str) -> None:
        """Send a message: it arrives, and is answered or not; or it arrives late, or never."""
        self.send(*self.holder(number, pick), how)

    @rule(pick=indexes)
    @only_if(lambda self: self.letters)
    def a_late_message_arrives(self, pick: int) -> None:
        self.deliver(self.letters.pop(pick % len(self.letters)))

    @rule(number=indexes, pick=indexes, lost=rarely)
    @only_if(lambda self: self.holders())
    def skip(self, number: int, pick: int, lost: bool) -> None:
        peer, grant = self.holder(number, pick)
        del peer.held[grant.tick]
        self.settle(peer, Settlement(grant, skipped(Reason.GRACE), passed(grant)), lost)

    @rule(lost=rarely)
    @only_if(lambda self: any(peer.unsettled for peer in self.peers))
    def settle_again(self, lost: bool) -> None:
        peer = next(peer for peer in self.peers if peer.unsettled)
        self.settle(peer, peer.unsettled.pop(), lost)

    @rule(
        number=indexes,
        pick=indexes,
        back_off=st.sampled_from([0, PERIOD, 2 * LEASE]),
        why=st.sampled_from(Release),
        times=st.integers(1, 2),
    )
    @only_if(lambda self: self.holders())
    def release(self, number: int, pick: int, back_off: Micros, why: Release, times: int) -> None:
        """Give a grant back; again, where the reply was lost."""
        peer, grant = self.holder(number, pick)
        del peer.held[grant.tick]
        for _ in range(times):
            self.give_back(peer, grant, back_off, why)

    @rule(entry=entries, span=st.sampled_from([None, PERIOD]))
    def pause(self, entry: str, span: Micros | None) -> None:
        """Pause an entry, or pause it anew; also for a span, whose end ends nothing."""
        self.paused.add(entry)
        self.operator.pause([entry], until=None if span is None else self.place.now() + span)

    @rule(pick=indexes, catches_up=st.booleans(), is_stale=rarely)
    @only_if(lambda self: self.paused)
    def resume(self, pick: int, catches_up: bool, is_stale: bool) -> None:
        """Resume an entry: what is due by now is caught up later, or skipped."""
        entry = sorted(self.paused)[pick % len(self.paused)]
        (look,) = self.operator.look([entry])
        ended = None if catches_up else self.remainder(look)
        revision = look.pause.revision - is_stale
        (told,) = self.operator.resume([Resumption(entry, revision, ended)])
        assert told.done is not is_stale
        if told.done:
            self.paused.discard(entry)
        if told.done and ended:
            self.end(entry, ended)

    @rule(number=indexes)
    def a_node_crashes_and_another_starts(self, number: int) -> None:
        self.peers[number % NODES] = self.new_peer()

    @rule(order=st.permutations(range(NODES)), dead=st.sets(st.integers(0, NODES - 1)))
    @only_if(lambda self: len(self.fates) > 2)
    def the_server_loses_everything(self, order: list[int], dead: set[int]) -> None:
        """Flush, with some nodes dying at the same moment: then only the others remember."""
        self.place.flush()
        self.recover(order, dead, Copy())

    @rule()
    def a_replica_falls_behind(self) -> None:
        self.copy = Copy(
            self.place.snapshot(),
            {entry: self.place.record(entry).mark for entry in ENTRIES},
            dict(self.fates),
            set(self.in_doubt),
            dict(self.opened),
            dict(self.fences),
            Counter(self.sent_here),
            dict(self.runs),
            {entry: self.place.record(entry).runs for entry in ENTRIES},
            set(self.paused),
        )

    @rule(order=st.permutations(range(NODES)), dead=st.sets(st.integers(0, NODES - 1)))
    @only_if(lambda self: self.copy)
    def the_replica_is_promoted(self, order: list[int], dead: set[int]) -> None:
        """Fail over to the copy that fell behind, with some nodes dying at the same moment."""
        copy, self.copy = self.copy, None
        self.place.pass_time(PERIOD)
        self.place.restore(copy.snapshot)
        self.place.restart()
        self.recover(order, dead, copy)

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def a_tick_is_sent_at_most_once_while_one_live_node_remembers(self) -> None:
        assert messages(self.place) == self.sent_here
        again = {tick for tick, times in self.sent_ever.items() if times > 1}
        assert again <= self.forgotten

    @invariant()
    def runs_are_what_was_granted_and_not_skipped_while_one_live_node_remembers(self) -> None:
        for entry in ENTRIES:
            counted = self.place.record(entry).runs
            assert counted >= len(self.runs[entry])
            assert counted == len(self.runs[entry]) or not self.is_whole

    @invariant()
    def marks_never_fall(self) -> None:
        for entry in self.start:
            mark = self.place.record(entry).mark
            assert mark >= self.marks.get(entry, 0)
            self.marks[entry] = mark

    @invariant()
    def the_fence_never_falls(self) -> None:
        assert self.place.last_fence() >= max((peer.ledger.fence for peer in self.peers), default=0)

    @invariant()
    def every_due_tick_is_owed_open_sent_skipped_or_in_doubt(self) -> None:
        assert self.place.open_ticks().keys() == self.opened.keys()
        for entry, start in self.start.items():
            now, mark = self.place.now(), self.place.record(entry).mark
            end = max(now, mark) + 1
            due = len(grid_between(start, end))
            owed = len(grid_between(mark, end))
            still_open = sum(
                1 + len(grid_between(previous, tick.at))
                for tick, previous in self.opened.items()
                if tick.entry == entry
            )
            settled = sum(tick.entry == entry for tick in self.fates)
            doubtful = sum(tick.entry == entry for tick in self.in_doubt)
            assert due == owed + still_open + settled + doubtful

    @invariant()
    def the_totals_are_what_happened(self) -> None:
        assert self.place.totals() == self.totals

    # --- how it is told -------------------------------------------------------------------------

    def remainder(self, look: Look) -> Remainder:
        """Count what is due and what nobody holds any more."""
        endings = []
        for each in look.open:
            if each.deadline <= look.now:
                over = len(grid_between(each.previous, each.tick.at))
                passed = {Reason.SUPERSEDED: over} if over else {}
                endings.append(Ending(each.tick.at, each.fence, passed))
        owed = len(grid_between(look.record.mark, look.now + 1))
        return Remainder(look.record.mark, look.now, {Reason.PAUSED: owed} if owed else {}, endings)

    def attempts(self, tick: Tick) -> int:
        """Return how many attempts were made of the tick that ended last."""
        told = [each for each in self.place.history() if each["entry"] == tick.entry]
        return int([each["attempt"] for each in told if each["tick"] == str(tick.at)][-1])

    def end(self, entry: str, ended: Remainder) -> None:
        """Give what a resumption ended the one fate that it will ever have."""
        fates = dict.fromkeys(
            (Tick(entry, at) for at in grid_between(ended.mark, ended.upto + 1)), "skipped:paused"
        )
        for tick in (Tick(entry, each.tick) for each in ended.endings):
            over = grid_between(self.opened.pop(tick), tick.at)
            fates |= {Tick(entry, at): "skipped:superseded" for at in over}
            fates[tick] = "skipped:paused"
            if self.attempts(tick) == 0:
                self.runs[entry] -= {tick}
            self.leases.pop(tick, None)
        assert self.fates.keys().isdisjoint(fates)
        self.fates |= fates
        self.totals += Counter(fates.values())

    def recover(self, order: list[int], dead: set[int], copy: Copy) -> None:
        """Have those who live tell what they remember, and foresee what becomes of each tick."""
        for peer in self.peers:
            with pytest.raises(LedgerRecovering):
                peer.ledger.claim([])
        for number in dead:
            self.peers[number] = self.unknown_peer()
        marks = {
            entry: max(copy.marks.get(entry, 0), *(p.marks.get(entry, 0) for p in self.peers))
            for entry in ENTRIES
        }
        counted_runs = {entry: self.foresee_runs(entry, copy) for entry in ENTRIES}
        still_open = self.foresee_what_is_open(copy)
        told = [each for peer in self.peers for each in self.testimony(peer).settled]
        # Closed by those who know what they passed over, and so counted with them.
        counted = {
            Tick(each.grant.tick.entry, at)
            for each in told
            if each.grant.tick in copy.opened
            for at in between(each.grant)
        }
        pushing = [self.peers[number] for number in order]
        # On a busy machine one may come after the hold-down: a higher fence starts another.
        for _ in range(MOST_PUSHES):
            waits = [self.push(peer) for peer in pushing]
            if not any(waits) and len(self.epochs()) == 1:
                break
            self.place.pass_time(max(waits))
        for peer in pushing:
            self.register(peer)
        found = self.place.open_ticks()
        assert found.keys() <= still_open.keys()
        if self.place.kind == "memory":
            assert still_open.keys() == found.keys()
        self.leases = found
        self.opened = {tick: still_open[tick][0] for tick in found}
        self.fences |= {tick: still_open[tick][1] for tick in found}
        self.fates |= copy.fates
        self.in_doubt = (self.in_doubt | copy.in_doubt) - self.fates.keys()
        self.sent_here = Counter(copy.sent)
        self.paused = {entry for entry in ENTRIES if entry in self.place.pauses()}
        assert self.paused >= copy.paused
        self.marks = marks
        for entry in ENTRIES:
            assert self.place.record(entry).runs == counted_runs[entry]
            self.take_stock_after_loss(entry, marks[entry], counted)
        self.totals = Counter(self.place.totals())
        self.is_whole = False

    def foresee_runs(self, entry: str, copy: Copy) -> int:
        """Return how many runs must be counted: what was told with marks that the copy lacks.

        Those that the ledger must know are what was told with the highest mark.
        """
        own = copy.marks.get(entry, 0)
        told = [peer for peer in self.peers if peer.marks.get(entry, 0) > own]
        best = max(told, key=lambda p: (p.marks[entry], len(p.runs[entry])), default=copy)
        self.runs[entry] = best.runs.get(entry, frozenset())
        return max([copy.counted.get(entry, 0), *(peer.witness.runs[entry] for peer in told)])

    def foresee_what_is_open(self, copy: Copy) -> dict[Tick, tuple[Micros, int]]:
        """Return each tick that must be open, with the mark before its first grant, and its fence.

        Open is what the copy has open, and what a living node holds and never tried, unless the
        copy or a living node knows it to be closed. The highest fence wins.
        """
        found = {tick: (previous, copy.fences[tick]) for tick, previous in copy.opened.items()}
        for peer in self.peers:
            for tick, grant in peer.held.items():
                if grant.fence > found.get(tick, (0, -1))[1]:
                    found[tick] = grant.previous, grant.fence
        return {
            tick: grant
            for tick, grant in found.items()
            if tick not in copy.fates.keys() | copy.in_doubt
            and not any(p.knows_closed(tick) for p in self.peers)
        }

    def peer(self, number: int) -> Peer:
        return self.peers[number % NODES]

    def holders(self) -> list[Peer]:
        return [peer for peer in self.peers if peer.held]

    def holder(self, number: int, pick: int) -> tuple[Peer, Grant]:
        """Return a node that holds grants, and one of them."""
        holders = self.holders()
        peer = holders[number % len(holders)]
        return peer, list(peer.held.values())[pick % len(peer.held)]

    def orphans(self, peer: Peer) -> list[Ask]:
        """Return the orphans that a node has just heard of."""
        self.ask(peer, [])
        return [ask_for(orphan.tick) for orphan in peer.orphans]

    def newest(self, peer: Peer, entry: str, count: int, told: Micros) -> list[Ask]:
        """Return the newest ticks that a node believes to be due, ascending."""
        due = grid_between(peer.marks[entry], told + 1)
        return [ask_for(Tick(entry, at)) for at in due[-count:]]

    def ask(self, peer: Peer, asks: list[Ask], lost: bool = False) -> None:
        if not lost:
            peer.learn(self.judge(peer.ledger.claim(asks, peer.cursor)))
            peer.runs |= {each.tick.entry: self.runs[each.tick.entry] for each in asks}
            return
        with reply_lost(peer.ledger):
            self.judge(peer.ledger.claim(asks, peer.cursor))

    def send(self, peer: Peer, grant: Grant, how: str) -> None:
        letter = Letter(peer.ledger, peer.ledger.epoch, peer.ledger.fence, grant)
        if how == "late":
            self.letters.append(letter)
        closing = self.deliver(letter) if how in ("heard", "reply lost") else None
        if how == "heard" and closing is Closing.PAUSED:
            return
        # What was tried without an answer is dropped and never tried again.
        del peer.held[grant.tick]
        if how != "heard":
            peer.witness.tried(grant, passed(grant))
        elif closing and closing.stands:
            peer.witness.pushed(grant, passed(grant))

    def unknown_peer(self) -> Peer:
        return Peer(self.place.node(joined=False, lease=LEASE, hold_down=HOLD_DOWN))

    def new_peer(self) -> Peer:
        peer = self.unknown_peer()
        self.place.pass_time(self.push(peer))
        self.push(peer)
        self.register(peer)
        return peer

    def push(self, peer: Peer) -> Micros:
        told = peer.ledger.recover(self.testimony(peer))
        while doubts := told.doubts:
            peer.ledger.resolve(
                {each: grid_between(each.floor, each.mark + 1) or [each.mark] for each in doubts}
            )
            told = peer.ledger.recover(self.testimony(peer))
        return told.wait

    def testimony(self, peer: Peer) -> Testimony:
        slots = [Slot(entry, GRID, Policy(), since=at) for entry, at in self.start.items()]
        return peer.witness.testimony(slots, peer.hand)

    def epochs(self) -> set[str]:
        return {peer.ledger.epoch for peer in self.peers}

    def register(self, peer: Peer) -> None:
        for record in peer.ledger.register(
            [Registration(entry, GRID.fingerprint) for entry in ENTRIES]
        ):
            peer.witness.hear_mark(record.entry, record.mark, record.runs)
            peer.runs[record.entry] = self.runs[record.entry]

    def judge(self, claimed: Claimed) -> Claimed:
        """Hold every answer to a claim against the whole truth."""
        for answer in claimed.answers:
            tick, grant = answer.tick, answer.grant
            self.judge_runs(answer)
            if grant is None:
                continue
            previous = self.opened.setdefault(tick, grant.previous)
            assert grant.previous == previous
            if answer.verdict is Verdict.MINE:
                assert (grant.deadline, grant.fence) == (self.leases[tick], self.fences[tick])
                continue
            granted_at = grant.deadline - LEASE
            assert tick.at <= granted_at, "granted early"
            assert tick.entry not in self.paused, "granted while paused"
            assert self.leases.get(tick, 0) <= granted_at, "two live grants"
            assert grant.fence > self.fence, "a fence was given again"
            assert tick not in self.fates, "a settled tick was granted"
            assert grant.attempt > 0
            self.fence = self.fences[tick] = grant.fence
            self.leases[tick] = grant.deadline
        for entry, mark in {each.tick.entry: each.mark for each in claimed.answers}.items():
            assert mark == self.place.record(entry).mark
        return claimed

    def judge_runs(self, answer: Answer) -> None:
        entry, had = answer.tick.entry, self.runs[answer.tick.entry]
        if answer.verdict is Verdict.FINISHED:
            assert len(had) == LIMITS[entry] or not self.is_whole
        elif answer.verdict is Verdict.GRANTED and answer.tick not in self.opened:
            assert len(had) < LIMITS.get(entry, len(had) + 1), "granted once too often"
            self.runs[entry] = had | {answer.tick}

    def deliver(self, letter: Letter) -> Closing | None:
        closing = letter.arrive()
        if closing is Closing.DONE:
            assert letter.grant.tick.entry not in self.paused, "sent while paused"
            self.sent_ever[letter.grant.tick] += 1
            self.sent_here[letter.grant.tick] += 1
            self.close(Settlement(letter.grant, SENT, passed(letter.grant)))
        return closing

    def give_back(self, peer: Peer, grant: Grant, back_off: Micros, why: Release) -> None:
        peer.ledger.release([grant], back_off, why)
        free_at = self.place.open_ticks().get(grant.tick)
        if free_at is not None and grant.fence == self.fences[grant.tick]:
            self.leases[grant.tick] = free_at

    def settle(self, peer: Peer, settlement: Settlement, lost: bool) -> None:
        if lost:
            with reply_lost(peer.ledger):
                (closing,) = peer.ledger.settle([settlement])
            peer.unsettled.append(settlement)
        else:
            (closing,) = peer.ledger.settle([settlement])
            if closing.stands:
                peer.witness.settled(settlement)
        if closing is Closing.DONE:
            self.close(settlement)

    def close(self, settlement: Settlement) -> None:
        """Give a tick, and what it passed over, the one fate that they will ever have."""
        grant = settlement.grant
        assert self.opened.pop(grant.tick) == grant.previous
        assert self.fences[grant.tick] == grant.fence, "closed by a grant that was taken over"
        fates = {Tick(grant.tick.entry, at): "skipped:superseded" for at in between(grant)}
        fates[grant.tick] = settlement.outcome.text
        assert self.fates.keys().isdisjoint(fates)
        self.fates |= fates
        if settlement.outcome is not SENT and grant.attempt == 1:
            self.runs[grant.tick.entry] -= {grant.tick}
        self.leases.pop(grant.tick, None)
        self.totals += Counter(fates.values())

    def take_stock_after_loss(self, entry: str, mark: Micros, counted: set[Tick]) -> None:
        """What is not known to be settled is in doubt; what lies after the mark was forgotten."""
        someone_remembers = mark > 0
        mark = mark or self.place.record(entry).mark
        pending = {tick for tick in self.opened if tick.entry == entry}
        for tick, previous in self.opened.items():
            if tick.entry == entry:
                pending |= {Tick(entry, at) for at in grid_between(previous, tick.at)}
        mine = {tick for tick in self.fates | dict.fromkeys(self.in_doubt) if tick.entry == entry}
        for tick in mine:
            if tick.at > mark or tick in pending:
                self.forgotten.add(tick)
                self.fates.pop(tick, None)
                self.in_doubt.discard(tick)
        due = {Tick(entry, at) for at in grid_between(self.start[entry], mark + 1)}
        doubtful = due - self.fates.keys() - pending - self.in_doubt
        if someone_remembers:
            assert doubtful - counted <= self.place.kept().keys(), (
                "nobody knew them, and nobody counted them"
            )
        self.in_doubt |= doubtful


def run(make_place, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: LedgerMachine(make_place),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_what_holds_for_any_interleaving_on_the_ledger_in_memory():
    run(MemoryPlace, examples=250, steps=60)


def test_what_holds_for_any_interleaving_on_a_real_server(shared_redis):
    run(lambda: RedisPlace(shared_redis, "redis"), examples=15, steps=50)


def test_the_id_of_a_tick_depends_on_nothing_but_namespace_entry_and_instant():
    ids = {
        Tick(entry, at).task_id(namespace)
        for entry in ENTRIES
        for at in (0, 1, PERIOD)
        for namespace in ("one", "two")
        for _ in range(2)
    }
    assert len(ids) == len(ENTRIES) * 3 * 2
    assert Tick("tidy", 1).task_id("one") == "4b25a730-80a4-5e33-8d00-eb2a29f4b8a9"
