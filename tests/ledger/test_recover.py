"""After a loss of data the ledger grants nothing until it has heard what nodes remember."""

from __future__ import annotations

import pytest

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger import Answer, Closing, Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Memory, Recovery
from celery_redlock_beat.ticks import SECOND, SENT, Tick
from ledger.places import (
    HOLD_DOWN,
    MINUTE,
    MOMENT,
    claim,
    due_ticks,
    grant,
    join,
    message,
    patient_nodes,
    push,
    register,
)

HOUR = 3600 * SECOND


@pytest.fixture
def patient(ledgers):
    return patient_nodes(ledgers)


def starts_and_waits_out(ledgers, node):
    """Begin a recovery by pushing, and push again when the told wait is over."""
    assert push(node) == Recovery(HOLD_DOWN)
    with pytest.raises(LedgerRecovering):
        node.claim([])
    ledgers.pass_time(HOLD_DOWN)
    assert push(node) == Recovery(0)
    node.claim([])
    return True


def test_the_very_first_start_waits_for_the_full_hold_down(ledgers):
    node = ledgers.node(hold_down=HOLD_DOWN, joined=False)
    assert starts_and_waits_out(ledgers, node)


def test_a_flush_leaves_no_heartbeats_and_waits_for_the_full_hold_down(ledgers):
    node = ledgers.node(hold_down=HOLD_DOWN, joined=False)
    starts_and_waits_out(ledgers, node)
    ledgers.flush()
    assert starts_and_waits_out(ledgers, node)


def test_a_recovery_takes_the_whole_hold_down_although_every_known_node_was_heard(ledgers, patient):
    # A copy may lack the last one that joined, and what that one sent.
    ledgers.restart()
    assert all(push(node).wait > 0 for node in patient)
    ledgers.pass_time(HOLD_DOWN)
    assert push(patient[0]) == Recovery(0)
    for node in patient:
        node.claim([])


def test_a_node_that_slept_through_a_recovery_is_refused_until_it_pushes(ledgers):
    a, b = (ledgers.node(hold_down=HOLD_DOWN, joined=False) for _ in range(2))
    starts_and_waits_out(ledgers, a)
    join(b)
    a.claim([])
    b.claim([])
    ledgers.restart()
    starts_and_waits_out(ledgers, a)
    with pytest.raises(LedgerRecovering):
        b.claim([])
    assert push(b) == Recovery(0)
    b.claim([])
    assert a.epoch == b.epoch


def test_a_second_discovery_does_not_restart_a_recovery(ledgers, patient):
    ledgers.restart()
    first, second, third = patient
    push(first)
    epoch, ends = first.epoch, ledgers.hold_down_ends()
    ledgers.pass_time(MOMENT)
    assert 0 < push(second).wait <= HOLD_DOWN - MOMENT
    assert ledgers.hold_down_ends() == ends
    ledgers.pass_time(HOLD_DOWN - MOMENT)
    assert push(third) == Recovery(0)
    assert epoch == first.epoch == second.epoch == third.epoch
    first.claim([])


def test_another_identity_starts_a_recovery_anew(ledgers, patient):
    first, second, third = patient
    ledgers.restart()
    push(first)
    abandoned = first.epoch
    ledgers.restart()
    assert push(second).wait > 0
    assert push(third).wait > 0
    assert second.epoch == third.epoch != abandoned
    ledgers.pass_time(HOLD_DOWN)
    # What the first node told was told to the other server.
    with pytest.raises(LedgerRecovering):
        first.claim([])
    assert push(first) == Recovery(0)


def test_the_hold_down_begins_again_with_another_identity(ledgers):
    node = ledgers.node(hold_down=HOLD_DOWN, joined=False)
    push(node)
    ledgers.pass_time(HOLD_DOWN)
    ledgers.restart()
    assert HOLD_DOWN / 2 < push(node).wait <= HOLD_DOWN


def test_each_recovery_has_an_epoch_of_its_own(ledgers, a):
    epochs = {a.epoch}
    for disaster in (ledgers.restart, ledgers.flush, ledgers.lose_marks):
        disaster()
        join(a)
        epochs.add(a.epoch)
    assert len(epochs) == 4


def test_a_late_starter_joins_without_a_recovery(ledgers, a):
    late = ledgers.node(hold_down=MINUTE, joined=False)
    assert push(late, [Memory("tidy", 5)]) == Recovery(0)
    assert late.epoch == a.epoch
    assert ledgers.record("tidy").mark == 5
    a.claim([])


def test_a_lower_fence_of_the_same_server_starts_a_recovery(ledgers):
    first, second = (ledgers.node(hold_down=HOLD_DOWN, joined=False) for _ in range(2))
    starts_and_waits_out(ledgers, first)
    join(second)
    one, two = due_ticks(ledgers, first, count=2)
    grant(first, one)
    old = ledgers.snapshot()
    lost = grant(second, two)
    ledgers.restore(old)
    first.claim([])
    with pytest.raises(LedgerRecovering):
        second.claim([])
    assert push(second, [Memory("tidy", two.at)]).wait > 0
    with pytest.raises(LedgerRecovering):
        first.claim([])
    ledgers.pass_time(HOLD_DOWN)
    assert push(first) == Recovery(0)
    assert ledgers.last_fence() == lost.fence
    assert claim(first, two) == Answer(two, Verdict.SETTLED, two.at, runs=1)


def test_the_fence_rises_to_the_highest_that_any_node_has_seen(ledgers, a, b):
    a.fence = ledgers.now() + HOUR
    b.fence = a.fence - 1
    for node in (a, b):
        push(node)
    assert ledgers.last_fence() == a.fence
    late = ledgers.node()
    (tick,) = due_ticks(ledgers, late)
    assert grant(late, tick).fence == a.fence + 1


def test_marks_rise_to_what_any_node_remembers_and_never_fall(ledgers, a, b):
    now = ledgers.now()
    ledgers.flush()
    join(a, [Memory("tidy", now, 7, "daily"), Memory("other", now - 5)])
    join(b, [Memory("tidy", now - 9, 3, "hourly"), Memory("other", now, 4, "weekly")])
    tidy, other = ledgers.record("tidy"), ledgers.record("other")
    assert (tidy.mark, tidy.since, tidy.fingerprint) == (now, 7, "daily")
    assert (other.mark, other.since, other.fingerprint) == (now, 4, "weekly")


def test_a_push_leaves_alone_what_the_server_knows_better(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    grant(a, tick)
    before = ledgers.record("tidy")
    ledgers.restart()
    join(a, [Memory("tidy", tick.at - 1)])
    assert ledgers.record("tidy") == before


def test_a_node_vouches_also_for_entries_that_it_does_not_have(ledgers, a, b):
    mark = ledgers.now()
    ledgers.flush()
    join(a, [Memory("of the other", mark)])
    join(b)
    assert register(b, "of the other").mark == mark
    answer = claim(b, Tick("of the other", mark))
    assert (answer.verdict, answer.mark) == (Verdict.SETTLED, mark)


def test_a_mark_ahead_of_the_servers_clock_is_not_cut(ledgers, a):
    mark = ledgers.now() + HOUR - MINUTE
    assert push(a, [Memory("tidy", mark)]) == Recovery(0)
    assert ledgers.record("tidy").mark == mark
    assert claim(a, Tick("tidy", ledgers.now())).verdict is Verdict.SETTLED


def test_a_mark_more_than_an_hour_ahead_is_refused_and_told(ledgers, a):
    now = ledgers.now()
    told = push(
        a, [Memory("mad", now + HOUR + MINUTE), Memory("tidy", now), Memory("möd", 2 * now)]
    )
    assert told == Recovery(0, ["mad", "möd"])
    assert ledgers.record("mad") is ledgers.record("möd") is None
    assert ledgers.record("tidy").mark == now


def test_a_refused_mark_leaves_the_known_one(ledgers, a):
    record = register(a, "tidy")
    assert push(a, [Memory("tidy", record.mark + 2 * HOUR)]).refused == ["tidy"]
    assert ledgers.record("tidy") == record


def test_an_entry_that_nobody_vouched_for_begins_anew(ledgers, a):
    old = register(a, "tidy")
    ledgers.flush()
    ledgers.pass_time(MOMENT)
    join(a)
    assert claim(a, Tick("tidy", old.mark)).verdict is Verdict.UNREGISTERED
    assert register(a, "tidy").mark > old.mark


def test_a_node_with_very_many_entries_pushes_them_all(ledgers, patient):
    first, second, _ = patient
    ledgers.restart()
    now = ledgers.now()
    memories = [Memory(f"entry {number}", now - number) for number in range(1201)]
    mad = [Memory(f"mad {number}", 2 * now) for number in (1, 2)]
    assert push(first, [mad[0], *memories, mad[1]]).wait > 0
    ledgers.pass_time(HOLD_DOWN)
    assert push(second, [mad[0], *memories, mad[1]]) == Recovery(0, ["mad 1", "mad 2"])
    assert all(ledgers.record(each.entry).mark == each.mark for each in memories)


def test_a_tick_that_the_ledger_knows_settled_is_not_granted_again_without_its_mark(ledgers):
    first, second = ledgers.node(), ledgers.node()
    before, tick = due_ticks(ledgers, first, count=2)
    held = grant(first, tick)
    first.enqueue(held, [message(tick)], {})
    ledgers.lose_marks()
    push(second, [Memory(tick.entry, before.at)])  # the first is dead, and only it knew
    answer = claim(second, tick)
    assert (answer.verdict, answer.mark) == (Verdict.SETTLED, tick.at)
    assert len(ledgers.queue()) == 1


def test_an_open_tick_is_finished_even_if_its_marks_were_lost(ledgers):
    first, second = ledgers.node(), ledgers.node()
    (tick,) = due_ticks(ledgers, first)
    grant(first, tick)
    ledgers.lose_marks()
    push(second)
    assert claim(second, tick).verdict is Verdict.HELD
    assert ledgers.record(tick.entry).mark == tick.at
    ledgers.set_lease(tick, ledgers.now())
    assert grant(second, tick).attempt == 2


def test_an_open_tick_is_finished_even_if_the_grants_were_lost(ledgers):
    first, second = ledgers.node(), ledgers.node()
    (tick,) = due_ticks(ledgers, first)
    held = grant(first, tick)
    ledgers.lose_grants()
    join(second)
    join(first)
    assert first.settle([Settlement(held, SENT)]) == [Closing.STALE]
    ledgers.set_lease(tick, ledgers.now())
    (orphan,) = second.claim([]).orphans
    taken = grant(second, orphan.tick)
    assert (taken.tick, taken.attempt, taken.previous) == (tick, 2, tick.at)
    assert second.settle([Settlement(taken, SENT)]) == [Closing.DONE]
    assert second.claim([]).orphans == []


def test_a_lease_of_a_clock_that_was_set_back_since_is_over(ledgers):
    first, second = ledgers.node(), ledgers.node()
    (tick,) = due_ticks(ledgers, first)
    grant(first, tick)
    ledgers.set_lease(tick, ledgers.now() + HOUR)
    assert [orphan.tick for orphan in second.claim([]).orphans] == [tick]
    assert grant(second, tick).attempt == 2
