"""Every row of the claim table, the orphans, and what else a claim tells."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import MOST_PER_CALL, Answer, Ask, Orphan, Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Memory
from celery_redlock_beat.ticks import SECOND, SENT, Tick
from ledger.places import (
    MINUTE,
    MOMENT,
    PAUSED,
    changes_nothing,
    claim,
    due_ticks,
    grant,
    join,
    register,
)

DAY = 86_400 * SECOND


def test_an_entry_that_nobody_registered_is_unregistered(ledgers, a):
    tick = Tick("tidy", ledgers.now())
    answer = changes_nothing(ledgers, lambda: claim(a, tick))
    assert answer == Answer(tick, Verdict.UNREGISTERED, -1)


def test_a_paused_entry_changes_nothing_and_tells_its_mark(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    ledgers.pause("tidy")
    answer = changes_nothing(ledgers, lambda: claim(a, tick))
    assert answer == Answer(tick, Verdict.PAUSED, tick.at - 1, pause=PAUSED)
    ledgers.unpause("tidy")
    assert claim(a, tick).verdict is Verdict.GRANTED


def test_a_paused_entry_is_paused_also_for_ticks_that_are_early_open_or_settled(ledgers, a):
    settled, open_tick = due_ticks(ledgers, a, count=2)
    a.settle([Settlement(grant(a, settled), SENT)])
    grant(a, open_tick)
    early = Tick("tidy", ledgers.now() + DAY)
    ledgers.pause("tidy")
    for tick in (settled, open_tick, early):
        answer = changes_nothing(ledgers, lambda tick=tick: claim(a, tick))
        assert answer == Answer(tick, Verdict.PAUSED, open_tick.at, pause=PAUSED, runs=2)


def test_a_tick_before_its_time_is_early_and_tells_the_wait(ledgers, a):
    record = register(a, "tidy")
    tick = Tick("tidy", record.mark + MINUTE)
    earliest = ledgers.now()
    answer = changes_nothing(ledgers, lambda: claim(a, tick))
    assert (answer.verdict, answer.mark) == (Verdict.EARLY, record.mark)
    assert tick.at - ledgers.now() <= answer.wait <= tick.at - earliest


def test_nothing_is_granted_before_its_time_not_by_a_microsecond(ledgers, a):
    for _ in range(20):
        tick = Tick("tidy", register(a, "tidy").mark + 2 * MOMENT)
        while (answer := claim(a, tick)).verdict is Verdict.EARLY:
            assert answer.wait > 0
            ledgers.pass_time(min(answer.wait, MOMENT // 2))
        assert answer.grant.deadline - MINUTE >= tick.at
        ledgers.pass_time(2 * MOMENT)


def test_a_tick_with_jitter_is_early_until_its_own_moment(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    answer = changes_nothing(ledgers, lambda: claim(a, tick, due_at=tick.at + MINUTE))
    assert answer.verdict is Verdict.EARLY


def test_a_new_tick_is_granted_and_raises_the_mark(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    earliest = ledgers.now()
    answer = claim(a, tick)
    held = answer.grant
    assert (answer.verdict, answer.mark) == (Verdict.GRANTED, tick.at)
    assert (held.tick, held.attempt, held.previous, held.waited) == (tick, 1, tick.at - 1, False)
    assert earliest + MINUTE <= held.deadline <= ledgers.now() + MINUTE
    record = ledgers.record("tidy")
    assert (record.mark, record.fence) == (tick.at, held.fence)
    assert ledgers.open_ticks() == {tick: held.deadline}


def test_whoever_lost_the_reply_is_answered_mine_with_the_same_grant(ledgers, a):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.pass_time(MOMENT)
    answer = changes_nothing(ledgers, lambda: claim(a, tick))
    assert answer == Answer(tick, Verdict.MINE, tick.at, grant=held, runs=1)


def test_a_tick_that_another_node_holds_is_held_and_tells_the_wait(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    earliest = ledgers.now()
    answer = changes_nothing(ledgers, lambda: claim(b, tick))
    assert (answer.verdict, answer.mark, answer.grant) == (Verdict.HELD, tick.at, None)
    assert held.deadline - ledgers.now() <= answer.wait <= held.deadline - earliest


def test_a_tick_whose_lease_is_over_is_taken_over_with_the_first_previous_mark(ledgers, b):
    a = ledgers.node(lease=MOMENT)
    first, second = due_ticks(ledgers, a, count=2)
    lost = grant(a, first)
    grant(a, second)
    ledgers.pass_time(2 * MOMENT)
    answer = claim(b, first)
    held = answer.grant
    assert (answer.verdict, answer.mark) == (Verdict.GRANTED, second.at)
    assert (held.attempt, held.previous) == (2, lost.previous)
    assert held.fence > lost.fence
    assert claim(b, first).verdict is Verdict.MINE


def test_whoever_held_a_tick_whose_lease_is_over_needs_a_new_grant(ledgers):
    a = ledgers.node(lease=MOMENT)
    (tick,) = due_ticks(ledgers, a)
    lost = grant(a, tick)
    ledgers.pass_time(MOMENT)
    held = grant(a, tick)
    assert held.fence > lost.fence
    assert held.attempt == 2


def test_a_tick_up_to_the_mark_that_is_not_open_is_settled(ledgers, a, b):
    first, second, third = due_ticks(ledgers, a, count=3)
    a.settle([Settlement(grant(a, third), SENT)])
    for tick in (first, second, third):
        answer = changes_nothing(ledgers, lambda tick=tick: claim(b, tick))
        assert answer == Answer(tick, Verdict.SETTLED, third.at, runs=1)


def test_compare_and_set_grants_only_what_was_computed_from_the_present_mark(ledgers, a, b):
    first, second, third = due_ticks(ledgers, a, count=3)
    mark = first.at - 1
    assert claim(a, second, expected=mark).verdict is Verdict.GRANTED
    answer = changes_nothing(ledgers, lambda: claim(b, third, expected=mark))
    assert answer == Answer(third, Verdict.SETTLED, second.at, runs=1)
    assert claim(b, third, expected=second.at).verdict is Verdict.GRANTED


def test_every_refusal_tells_the_present_mark(ledgers, a, b):
    first, second, third = due_ticks(ledgers, a, count=3)
    grant(a, first)
    a.settle([Settlement(grant(a, second), SENT)])
    grant(a, third)
    early = Tick("tidy", ledgers.now() + DAY)
    asks = [Ask(tick, tick.at) for tick in (first, second, third, early)]
    answers = b.claim(asks).answers
    assert [answer.verdict for answer in answers] == [
        Verdict.HELD,
        Verdict.SETTLED,
        Verdict.HELD,
        Verdict.EARLY,
    ]
    assert {answer.mark for answer in answers} == {third.at}


def test_a_hundred_asks_in_one_call_are_answered_in_order(ledgers, a):
    ticks = due_ticks(ledgers, a, count=MOST_PER_CALL // 2)
    other = due_ticks(ledgers, a, "other", count=MOST_PER_CALL // 2)
    asked = [tick for pair in zip(ticks, other, strict=True) for tick in pair]
    answers = a.claim([Ask(tick, tick.at) for tick in asked]).answers
    assert [answer.tick for answer in answers] == asked
    assert all(answer.grant.previous == answer.tick.at - 1 for answer in answers)
    assert len({answer.grant.fence for answer in answers}) == MOST_PER_CALL


def test_a_claim_tells_the_ledgers_time(ledgers, a):
    # A clock that was set is told within half a round trip, which on a busy machine is long.
    earliest = ledgers.now()
    told = a.claim([]).now
    assert earliest - SECOND <= told <= ledgers.now() + SECOND


def test_a_claim_tells_when_the_next_lease_ends(ledgers, a):
    short, over = ledgers.node(lease=MINUTE // 2), ledgers.node(lease=1)
    first, second, third = due_ticks(ledgers, a, count=3)
    assert a.claim([]).next_deadline is None
    grant(over, first)
    ledgers.pass_time(1)
    assert a.claim([]).next_deadline is None
    held = [grant(a, second), grant(short, third)]
    assert a.claim([]).next_deadline == min(each.deadline for each in held) == held[1].deadline


def test_a_claim_is_a_heartbeat_and_nodes_silent_for_a_day_are_forgotten(ledgers, a):
    ledgers.set_heartbeat("gone", ledgers.now() - DAY)
    ledgers.set_heartbeat("asleep", ledgers.now() - DAY + MINUTE)
    earliest = ledgers.now()
    a.claim([])
    beats = ledgers.heartbeats()
    assert beats.keys() == {a.node, "asleep"}
    assert earliest <= beats[a.node] <= ledgers.now()


def test_orphans_are_the_open_ticks_without_an_owner_oldest_first(ledgers, a):
    brief, briefer = ledgers.node(lease=MOMENT + 1), ledgers.node(lease=1)
    first, second, third = due_ticks(ledgers, a, count=3)
    later, sooner = grant(brief, first), grant(briefer, second)
    grant(a, third)
    ledgers.pass_time(2 * MOMENT)
    by_age = sorted([later, sooner], key=lambda held: held.deadline)
    assert a.claim([]).orphans == [Orphan(held.tick, held.deadline, 1) for held in by_age]


def test_orphans_of_a_paused_entry_are_not_told(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    grant(a, tick)
    ledgers.pass_time(1)
    ledgers.pause("tidy")
    assert b.claim([]).orphans == []
    ledgers.unpause("tidy")
    assert [orphan.tick for orphan in b.claim([]).orphans] == [tick]


def test_an_orphan_adopted_in_the_same_call_is_none_any_more(ledgers, b):
    a = ledgers.node(lease=1)
    (tick,) = due_ticks(ledgers, a)
    grant(a, tick)
    ledgers.pass_time(1)
    claimed = b.claim([Ask(tick, tick.at)])
    assert claimed.answers[0].verdict is Verdict.GRANTED
    assert claimed.orphans == []


@pytest.mark.parametrize("hiding", [False, True], ids=["all told", "the oldest paused"])
def test_many_orphans_are_told_page_by_page_from_a_cursor_that_wraps(ledgers, b, hiding):
    a = ledgers.node(lease=1)
    many = 2 * MOST_PER_CALL
    stuck = due_ticks(ledgers, a, "stuck", count=many + 50)
    for start in range(0, len(stuck), MOST_PER_CALL):
        a.claim([Ask(tick, tick.at) for tick in stuck[start : start + MOST_PER_CALL]])
    (young,) = due_ticks(ledgers, a)
    grant(a, young)
    ledgers.pass_time(MOMENT)
    if hiding:
        ledgers.pause("stuck")
    told, cursors, cursor = [], [], 0
    for _ in range(3):
        claimed = b.claim([], cursor)
        told += [orphan.tick for orphan in claimed.orphans]
        cursor = claimed.cursor
        cursors.append(cursor)
    assert cursors == [MOST_PER_CALL, many, 0]
    expected = [young] if hiding else [*stuck, young]
    assert len(told) == len(expected)
    assert set(told) == set(expected)
    assert told[-1] == young


def test_a_full_last_page_wraps_at_the_empty_one_after_it(ledgers, b):
    a = ledgers.node(lease=1)
    ticks = due_ticks(ledgers, a, count=MOST_PER_CALL)
    a.claim([Ask(tick, tick.at) for tick in ticks])
    ledgers.pass_time(MOMENT)
    assert b.claim([]).cursor == MOST_PER_CALL
    claimed = b.claim([], MOST_PER_CALL)
    assert (claimed.orphans, claimed.cursor) == ([], 0)


def test_a_tick_that_a_flush_lost_is_settled_by_its_mark(ledgers, a, b):
    (tick,) = due_ticks(ledgers, a)
    grant(a, tick)
    ledgers.flush()
    join(a, [Memory("tidy", tick.at)])
    join(b)
    assert claim(b, tick) == Answer(tick, Verdict.SETTLED, tick.at)
