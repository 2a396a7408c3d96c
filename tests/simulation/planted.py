"""Faults planted into the core, each of a kind that a change could bring in: all must be found.

Each is a context manager that makes the core wrong in one place. That shows that the judge is not
blind, and that the seeds reach what it looks at.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest.mock import patch

from celery_redlock_beat.attempts import Attempts
from celery_redlock_beat.clock import LedgerClock
from celery_redlock_beat.dispatch import Dispatcher
from celery_redlock_beat.due import DueQueue
from celery_redlock_beat.errors import DeliveryFailed
from celery_redlock_beat.hand import Hand
from celery_redlock_beat.ledger import Closing
from celery_redlock_beat.ledger.memory import MemoryLedger
from celery_redlock_beat.ledger.memory_claim import Asking
from celery_redlock_beat.ledger.memory_recovery import Push
from celery_redlock_beat.ledger.memory_server import MemoryServer
from celery_redlock_beat.orphans import Orphans
from celery_redlock_beat.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from simulation.plan import Plan

LOSSES = {"flush", "failover", "lost key"}


@dataclass(frozen=True)
class Planted:
    """A change that makes the core wrong, and the runs in which that can be seen at all."""

    change: Callable[[], AbstractContextManager[None]]
    matters: Callable[[Plan], bool]


PLANTED: dict[str, Planted] = {}


def planted(matters: Callable[[Plan], bool]):
    def decorate(change):
        PLANTED[change.__name__] = Planted(contextmanager(change), matters)
        return change

    return decorate


def always(plan: Plan) -> bool:
    return True


def when_data_is_lost(plan: Plan) -> bool:
    return bool(plan.lost_writes) or not LOSSES.isdisjoint(kind for _, kind in plan.events)


def when_published(plan: Plan) -> bool:
    return plan.delivery == "publish" and bool(plan.broker_faults or plan.call_faults)


def when_calls_fail(plan: Plan) -> bool:
    return bool(plan.call_faults)


def when_paused(plan: Plan) -> bool:
    return any(kind == "pause entry" for _, kind in plan.events)


def when_nodes_stop(plan: Plan) -> bool:
    return any(kind == "stop" for _, kind in plan.events)


def when_limited(plan: Plan) -> bool:
    return any(job.policy.max_runs for job in plan.jobs.values())


def when_limited_and_lost(plan: Plan) -> bool:
    return when_limited(plan) and when_data_is_lost(plan)


def testifies(**instead):
    """Have nodes leave something out of what they tell the ledger."""
    whole = Witness.testimony
    return patch.object(
        Witness, "testimony", lambda self, *known: replace(whole(self, *known), **instead)
    )


# --- nodes --------------------------------------------------------------------------------------


@planted(when_data_is_lost)
def a_node_pushes_no_marks():
    with testifies(memories=[]):
        yield


@planted(when_limited_and_lost)
def a_node_pushes_no_runs():
    whole = Witness._memory
    without = patch.object(
        Witness, "_memory", lambda self, entry, slot: replace(whole(self, entry, slot), runs=0)
    )
    with without:
        yield


@planted(when_data_is_lost)
def a_node_forgets_what_it_settled():
    with testifies(settled=[]), closed_is_not_told():
        yield


def closed_is_not_told():
    return patch.object(Witness, "closed", lambda self, entry: 0)


@planted(when_data_is_lost)
def a_node_forgets_its_grants_in_a_recovery():
    with testifies(held=[]), no_doubts():
        yield


def no_doubts():
    return patch.object(Push, "resolve", lambda self, doubts: self.server.vouched.clear() or [])


@planted(when_data_is_lost)
def a_node_tells_that_a_tried_grant_was_never_tried():
    tried = Witness.tried

    def keeps(self, grant, passed):
        tried(self, grant, passed)
        self._tried.clear()
        hands[self].take(grant, 1 << 62)

    hands = {}
    init = Dispatcher.__init__

    def knows_hand(self, *args, **kwargs):
        init(self, *args, **kwargs)
        hands[self.witness] = self.hand

    with patch.object(Dispatcher, "__init__", knows_hand), patch.object(Witness, "tried", keeps):
        yield


@planted(when_published)
def a_node_publishes_again_by_the_same_grant():
    give_back = Attempts._give_back

    def holds(self, grant, back_off, why, exc):
        if isinstance(exc, DeliveryFailed):
            self._hand.take(grant, grant.deadline - self._clock.now() + self._clock.monotonic())
        else:
            give_back(self, grant, back_off, why, exc)

    with patch.object(Attempts, "_give_back", holds):
        yield


@planted(when_published)
def a_node_publishes_without_a_look_at_its_lease():
    take = Hand.take

    def takes(self, grant, until):
        take(self, grant, until + 60_000_000)

    with patch.object(Hand, "take", takes):
        yield


@planted(when_calls_fail)
def a_cursor_moves_with_the_question():
    asks = DueQueue.asks

    def advances(self, now, most):
        asked = asks(self, now, most)
        for ask in asked:
            self.advance(ask.tick.entry, ask.tick.at)
        return asked

    with patch.object(DueQueue, "asks", advances):
        yield


@planted(always)
def orphans_are_not_adopted():
    with patch.object(Orphans, "asks", lambda self, most: []):
        yield


@planted(when_published)
def a_settlement_without_an_answer_is_dropped():
    settle = Hand.settle

    def forgets(self, ledger):
        try:
            return settle(self, ledger)
        except ConnectionError:
            self.unsettled.clear()
            raise

    with patch.object(Hand, "settle", forgets), nobody_recalls_what_is_out():
        yield


def nobody_recalls_what_is_out():
    return patch.object(Witness, "has_published", lambda self, tick: False, create=True)


@planted(when_nodes_stop)
def an_error_of_the_ledger_leaves_the_node():
    drop = Attempts._drop_what_is_not_for_us

    def raises(self):
        if self._hand.expired(self._clock.monotonic()):
            raise RuntimeError("expired")
        drop(self)

    with patch.object(Attempts, "_drop_what_is_not_for_us", raises):
        yield


# --- the ledger ---------------------------------------------------------------------------------


@planted(always)
def a_grant_needs_no_end_of_the_lease_before():
    ask_open = Asking._ask_open

    def grants(self, tick, held, record):
        self.server.open[tick] = self.now
        return ask_open(self, tick, held, record)

    with patch.object(Asking, "_ask_open", grants):
        yield


@planted(always)
def a_tick_is_granted_early():
    now = LedgerClock.now
    ask = Asking.ask

    with (
        patch.object(LedgerClock, "now", lambda self: now(self) + 20_000),
        patch.object(Asking, "ask", lambda self, asked: ask(self, replace(asked, due_at=0))),
    ):
        yield


@planted(always)
def a_mark_counts_for_nothing():
    ask = Asking.ask

    def forgets(self, asked):
        record = self.server.marks.get(asked.tick.entry)
        if record and record.mark == asked.tick.at and asked.tick not in self.server.open:
            self.server.grants.pop(asked.tick, None)
            record.mark -= 1
        return ask(self, asked)

    with patch.object(Asking, "ask", forgets):
        yield


@planted(always)
def any_grant_may_close_a_tick():
    def may_close(self, grant):
        return Closing.DONE if grant.tick in self.grants else Closing.STALE

    with patch.object(MemoryServer, "may_close", may_close):
        yield


@planted(when_calls_fail)
def a_settlement_is_counted_again_when_its_reply_was_lost():
    may_close = MemoryServer.may_close

    def counts(self, grant):
        closing = may_close(self, grant)
        return Closing.DONE if closing is Closing.ALREADY else closing

    with patch.object(MemoryServer, "may_close", counts):
        yield


@planted(always)
def what_is_passed_over_is_not_counted():
    with patch.object(MemoryServer, "_count", lambda self, outcome, number: None):
        yield


@planted(always)
def a_released_tick_is_forgotten():
    release = MemoryLedger.release

    def forgets(self, grants, back_off, why):
        release(self, grants, back_off, why)
        for grant in grants:
            self._server.open.pop(grant.tick, None)

    with patch.object(MemoryLedger, "release", forgets):
        yield


@planted(when_paused)
def a_paused_entry_is_granted():
    ask = Asking.ask

    def grants(self, asked):
        paused, self.server.paused = self.server.paused, {}
        try:
            return ask(self, asked)
        finally:
            self.server.paused = paused

    with patch.object(Asking, "ask", grants):
        yield


@planted(when_limited)
def an_entry_may_run_once_more_than_it_may():
    beyond = Asking._beyond

    def grants(self, limit, tick, record):
        return beyond(self, limit + 1, tick, record)

    with patch.object(Asking, "_beyond", grants):
        yield


@planted(when_limited)
def an_entry_is_over_though_its_open_tick_may_be_skipped():
    beyond = Asking._beyond

    def forgets(self, limit, tick, record):
        opened, self.server.open = self.server.open, {}
        try:
            return beyond(self, limit, tick, record)
        finally:
            self.server.open = opened

    with patch.object(Asking, "_beyond", forgets):
        yield


@planted(when_limited)
def what_was_skipped_stays_a_run():
    with patch.object(MemoryLedger, "_take_back_run", lambda self, settlement, held: None):
        yield


@planted(always)
def fences_are_given_again():
    def next_fence(self, now):
        self.fence = max(self.fence, now // 10_000_000 * 10_000_000)
        return self.fence

    with patch.object(MemoryServer, "next_fence", next_fence):
        yield


# --- recovery -----------------------------------------------------------------------------------


@planted(when_data_is_lost)
def a_server_that_lost_data_answers_at_once():
    must_recover = MemoryServer.must_recover

    def answers(self, epoch, seen):
        if self.identity is not None and self.recovering is None:
            self.identity, self.epoch = self.replid, epoch
            return False
        return must_recover(self, epoch, seen)

    with patch.object(MemoryServer, "must_recover", answers):
        yield


@planted(when_data_is_lost)
def a_recovery_waits_for_nobody():
    begin = Push.begin

    def hurries(self, hold_down):
        begin(self, hold_down)
        self.server.hold_down = 0

    with patch.object(Push, "begin", hurries):
        yield


@planted(when_data_is_lost)
def what_nobody_vouched_for_is_not_counted():
    with no_doubts():
        yield


@planted(when_data_is_lost)
def a_late_push_lowers_a_mark():
    def lowers(self, entry, mark, since, fingerprint, runs):
        record = self.server.marks.setdefault(entry, raised(self, entry, 0, 0, "", runs))
        record.mark, record.since = mark, max(record.since, since)
        record.fingerprint = record.fingerprint or fingerprint
        return record

    raised = Push._raise
    with patch.object(Push, "_raise", lowers):
        yield


@planted(when_data_is_lost)
def what_a_node_knows_settled_is_believed_only_where_it_is_open():
    settled = Push._settled

    def believes(self, settlement):
        if settlement.grant.tick in self.server.open:
            settled(self, settlement)

    with patch.object(Push, "_settled", believes), no_doubts():
        yield
