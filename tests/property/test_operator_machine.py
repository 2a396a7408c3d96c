"""Operators and nodes at once: memory and Redis answer alike, and what is removed is not sent.

Times differ between the two, so answers are compared without them. What was lost is pushed by nodes
that have followed the feed and remember the marks; nothing here looks at how records are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from celery_redlock_beat.ledger import (
    Answer,
    Ask,
    Closing,
    Grant,
    Record,
    Registration,
    Release,
    Seed,
    Settlement,
    Verdict,
)
from celery_redlock_beat.ledger.steering import (
    Change,
    Definition,
    Kind,
    Remainder,
    Removal,
    Resumption,
    Shot,
    Step,
)
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import SENT, Reason, Tick, skipped
from ledger.places import (
    MOMENT,
    MemoryPlace,
    Place,
    RedisPlace,
    message,
    messages,
    push,
    remainder_of,
)

ENTRIES = ("from code", "stored: one", "stored: two")
STORED = ENTRIES[1:]
NODES = 2

entries = st.sampled_from(ENTRIES)
stored_entries = st.sampled_from(STORED)
entries_of_code = st.sampled_from([each for each in ENTRIES if each not in STORED])
numbers = st.integers(0, NODES - 1)
picks = st.integers(0, 99)
BRIEF = 3 * MOMENT
rarely = st.sampled_from([False, False, False, True])
remainders = st.sampled_from(["fresh", "fresh", "seen", "none"])


@dataclass
class Side:
    """One of the two ledgers, and what those who use it carry along."""

    place: Place
    looks: dict[str, Any] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    known: dict[tuple[Kind, str], Change] = field(default_factory=dict)
    memories: dict[str, Memory] = field(default_factory=dict)
    upto: int = 0

    def __post_init__(self) -> None:
        self.operator = self.place.operator()
        assert self.operator.begin() == 0
        self.nodes = [self.place.node(hold_down=BRIEF) for _ in range(NODES)]

    def look(self, entry: str) -> Any:
        (found,) = self.operator.look([entry])
        return found

    def expected(self, entry: str, is_stale: bool) -> int:
        return self.look(entry).revision - is_stale

    def remainder(self, entry: str, which: str) -> Remainder | None:
        found = self.look(entry) if which == "fresh" else self.looks.get(entry)
        if which == "none" or found is None or found.record is None:
            return None
        return remainder_of(found, {Reason.REMOVED: 2})

    def tick(self, entry: str, ahead: int) -> Tick:
        record = self.place.record(entry)
        return Tick(entry, (record.mark if record else self.place.now()) + ahead)

    def remember(self, entry: str, told: Record | Answer) -> None:
        """Remember a mark as nodes do, to vouch for it."""
        self.memories[entry] = Memory(entry, told.mark, runs=told.runs)

    def follow(self) -> list[Any]:
        told = self.nodes[0].changes(self.upto)
        self.known |= {(each.kind, each.name): each for each in told.changes}
        self.upto = told.upto
        changes = [(each.kind, each.name, each.text is None) for each in told.changes]
        # What is adopted in one call is so in no order.
        return [sorted(changes), told.more, told.whole]

    def recover(self) -> Any:
        memories = list(self.memories.values())
        told = self.nodes[0].recover(Testimony(memories))
        later = sorted(self.known.values(), key=lambda each: each.revision)
        self.nodes[0].restore([each for each in later if each.revision > told.revision])
        self.place.pass_time(BRIEF)  # in which all that is remembered is heard
        for node in self.nodes:
            push(node, memories)
        return told.lost

    def summary(self) -> Any:
        """Return all that can be compared without times."""
        looks = self.operator.look(ENTRIES)
        history = self.place.history()
        return (
            [
                (
                    found.entry,
                    found.record and (found.record.runs, found.record.fingerprint),
                    found.pause and (found.pause.note, found.pause.until),
                    bool(found.revision),
                    found.document,
                    len(found.unwanted),
                    found.last and (found.last.outcome, found.last.attempt),
                    sorted((bool(each.owner), each.attempt) for each in found.open),
                )
                for found in looks
            ],
            [(each["entry"], each["outcome"], each["attempt"], each["passed"]) for each in history],
            self.place.totals(),
            self.place.revisions().keys(),
            self.place.gone().keys(),
            len(self.place.queue()),
        )


class OperatorMachine(RuleBasedStateMachine):
    """Do all on both sides, and compare."""

    def __init__(self, make_sides: Callable[[], list[Side]]) -> None:
        super().__init__()
        self.sides = make_sides()
        self.removed: set[int] = set()
        self.paused: set[str] = set()

    def teardown(self) -> None:
        for side in self.sides:
            side.place.close()

    @initialize()
    def begin(self) -> None:
        self.register(0, ENTRIES[0], "daily", False)

    # --- what happens ---------------------------------------------------------------------------

    @rule(number=numbers, entry=entries, fingerprint=st.sampled_from("ab"), as_stored=st.booleans())
    def register(self, number: int, entry: str, fingerprint: str, as_stored: bool) -> None:
        def work(side: Side) -> Any:
            revision = side.expected(entry, False) if as_stored else None
            known = Registration(entry, fingerprint, revision=revision)
            (record,) = side.nodes[number].register([known])
            if record:
                side.remember(entry, record)
            return record and (record.runs, record.fingerprint)

        self.do(work)

    @rule(
        entry=stored_entries,
        fingerprint=st.sampled_from("ab"),
        is_stale=rarely,
        which=remainders,
        run_on_start=rarely,
    )
    def store(self, entry, fingerprint, is_stale, which, run_on_start) -> None:
        def work(side: Side) -> Any:
            known = Registration(entry, fingerprint, run_on_start=run_on_start)
            expected, ended = side.expected(entry, is_stale), side.remainder(entry, which)
            document = f'{{"is": "{fingerprint}"}}'
            (told,) = side.operator.store([Definition(document, known, max(0, expected), ended)])
            return told.done, bool(told.revision)

        self.do(work)

    @rule(
        number=numbers,
        entry=entries_of_code,  # of those, both sides know at once whether a tick was claimed
        away=st.integers(-2, 2),
        fingerprint=st.sampled_from(["a", "interval:30+0", "disabled interval:30+0"]),
        phase=st.sampled_from([None, 5]),
        again=st.booleans(),
        by_node=st.booleans(),
    )
    def seed(self, number, entry, away, fingerprint, phase, again, by_node) -> None:
        def work(side: Side) -> Any:
            before, now = side.place.record(entry), side.place.now()
            at = min(now, before.mark + away if before else now)
            known = Registration(
                entry, fingerprint, takes_phase=True, seed=Seed(at, phase, again=again)
            )
            if by_node:
                answer, (record,) = None, side.nodes[number].register([known])
                side.remember(entry, record)
            else:
                ((answer, record),) = side.operator.seed([known])
            if before and before.fence:
                assert record.mark >= before.mark, "a mark fell"
            return answer, record.runs, record.fingerprint, record.since == at

        self.do(work)

    @rule(entry=stored_entries, is_stale=rarely, which=remainders)
    def remove(self, entry: str, is_stale: bool, which: str) -> None:
        def work(side: Side) -> Any:
            expected, ended = side.expected(entry, is_stale), side.remainder(entry, which)
            (told,) = side.operator.remove([Removal(entry, expected, ended)])
            if told.done:
                side.memories.pop(entry, None)
            return told.done, bool(told.revision)

        if self.do(work)[0]:
            grants = enumerate(self.sides[0].grants)
            self.removed |= {number for number, each in grants if each.tick.entry == entry}
            self.paused.discard(entry)

    @rule(number=numbers, entry=stored_entries, which=remainders, ahead=st.integers(1, 2))
    def an_entry_is_removed_under_a_grant(self, number, entry, which, ahead) -> None:
        """Store it, if it is new, and have it claimed, removed and enqueued."""
        self.store(entry, "a", False, "none", False)
        self.look(entry)
        self.claim(number, entry, ahead, "stored")
        self.remove(entry, False, which)
        self.enqueue(number, len(self.sides[0].grants) - 1)

    @rule(entry=entries, is_over=st.booleans())
    def pause(self, entry: str, is_over: bool) -> None:
        until = 1 if is_over else None
        self.do(lambda side: len(side.operator.pause([entry], "why", "ann", until)))
        self.paused.add(entry)

    @rule(entry=entries, is_stale=rarely, which=remainders, number=numbers, by_node=st.booleans())
    def resume(self, entry, is_stale, which, number, by_node) -> None:
        def work(side: Side) -> Any:
            pause, ended = side.look(entry).pause, side.remainder(entry, which)
            revision = (pause.revision if pause else 0) - is_stale
            whoever = side.nodes[number] if by_node else side.operator
            (told,) = whoever.resume([Resumption(entry, revision, ended)])
            return told.done, bool(told.revision)

        if self.do(work)[0]:
            self.paused.discard(entry)

    @rule(entry=entries, ahead=st.integers(0, 3))
    def skip(self, entry: str, ahead: int) -> None:
        self.do(lambda side: side.operator.skip([side.tick(entry, ahead)], "a holiday"))

    @rule(entry=entries, pick=st.integers(0, 5), step=st.sampled_from(Step), force=rarely)
    def fire(self, entry: str, pick: int, step: Step, force: bool) -> None:
        shot = Shot(entry, f"id {pick}", force)
        self.do(lambda side: side.operator.fire(shot, step))

    @rule(entry=entries)
    def look(self, entry: str) -> None:
        def work(side: Side) -> None:
            side.looks[entry] = side.look(entry)

        self.do(work)

    @rule(
        number=numbers,
        entry=entries,
        ahead=st.integers(0, 2),
        knows=st.sampled_from(["code", "stored", "stale"]),
    )
    def claim(self, number: int, entry: str, ahead: int, knows: str) -> None:
        def work(side: Side) -> Any:
            tick = side.tick(entry, ahead)
            revision = None if knows == "code" else side.expected(entry, knows == "stale")
            claimed = side.nodes[number].claim([Ask(tick, 0, revision=revision)])
            (answer,) = claimed.answers
            grant = answer.grant
            if grant:
                side.grants.append(grant)
                side.remember(entry, answer)
            told = grant and (grant.attempt, grant.waited, grant.unwanted)
            orphans = sorted((each.tick.entry, each.attempt) for each in claimed.orphans)
            return answer.verdict, answer.runs, told, orphans, claimed.stirred

        verdict, *_ = self.do(work)
        if verdict in (Verdict.GRANTED, Verdict.MINE):
            assert entry not in self.paused, "granted while paused"

    @rule(number=numbers, pick=picks)
    def enqueue(self, number: int, pick: int) -> None:
        def work(side: Side) -> Any:
            grant = side.grants[pick % len(side.grants)]
            return side.nodes[number].enqueue(grant, [message(grant.tick)], {})

        if not self.sides[0].grants:
            return
        pick %= len(self.sides[0].grants)
        closing = self.do(work)
        entry = self.sides[0].grants[pick].tick.entry
        assert closing is not Closing.DONE or entry not in self.paused, "sent while paused"
        assert closing is not Closing.DONE or pick not in self.removed, "sent though removed"

    @rule(
        number=numbers,
        pick=picks,
        how=st.sampled_from(["sent", "skipped", *Release]),
    )
    def give_up(self, number: int, pick: int, how: str) -> None:
        def work(side: Side) -> Any:
            node, grant = side.nodes[number], side.grants[pick % len(side.grants)]
            if how in list(Release):
                return node.release([grant], 0, Release(how))
            outcome = SENT if how == "sent" else skipped(Reason.GRACE)
            return node.settle([Settlement(grant, outcome, {Reason.SUPERSEDED: 1})])

        if self.sides[0].grants:
            self.do(work)

    @rule(pick=picks)
    def a_lease_ends(self, pick: int) -> None:
        def work(side: Side) -> None:
            tick = side.grants[pick % len(side.grants)].tick
            if tick in side.place.open_ticks():
                side.place.set_lease(tick, side.place.now())

        if self.sides[0].grants:
            self.do(work)

    @rule()
    def follow(self) -> None:
        self.do(Side.follow)

    @rule(entry=stored_entries, text=st.sampled_from([b"by hand", b"7 {}"]))
    def write_by_hand(self, entry: str, text: bytes) -> None:
        self.do(lambda side: side.place.write_by_hand(entry, text))

    @rule(entry=stored_entries)
    def delete_by_hand(self, entry: str) -> None:
        self.do(lambda side: entry in side.place.stored() and side.place.delete_by_hand(entry))

    @rule(key=st.sampled_from(["entries", "pauses", "marks", "grants", "open"]))
    def a_key_is_lost(self, key: str) -> None:
        """Lose a key after a node has heard all: then nothing of the feed is lost."""

        def work(side: Side) -> Any:
            side.follow()
            kept = side.place.stored(), side.place.pauses()
            getattr(side.place, f"lose_{key}")()
            lost = side.recover()
            now_kept = side.place.stored(), side.place.pauses()
            return lost, [sorted(each) for each in kept], [sorted(each) for each in now_kept]

        self.do(work)

    @rule()
    def the_server_restarts(self) -> None:
        def work(side: Side) -> Any:
            side.place.restart()
            return side.recover()

        self.do(work)

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def both_hold_the_same(self) -> None:
        first, *others = (side.summary() for side in self.sides)
        for other in others:
            assert other == first

    @invariant()
    def a_tick_is_sent_at_most_once(self) -> None:
        for side in self.sides:
            assert max(messages(side.place).values(), default=0) <= 1

    def do(self, work: Callable[[Side], Any]) -> Any:
        """Do it on both sides, and return what both answer."""
        answers = []
        for side in self.sides:
            side.place.pass_time(MOMENT if side.place.kind == "memory" else 1)
            answers.append(work(side))
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]


def run(make_sides: Callable[[], list[Side]], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: OperatorMachine(make_sides),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_what_holds_for_any_deeds_of_operators_on_the_ledger_in_memory():
    run(lambda: [Side(MemoryPlace())], examples=150, steps=60)


def test_memory_and_a_real_server_answer_operators_alike(shared_redis):
    make = partial(RedisPlace, shared_redis, "redis")
    run(lambda: [Side(MemoryPlace()), Side(make())], examples=30, steps=50)
