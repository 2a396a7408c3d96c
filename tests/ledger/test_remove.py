"""When an entry was removed nothing of it is enqueued any more, and all that was due is counted."""

from __future__ import annotations

from celery_redlock_beat.ledger import Closing, Release, Settlement, Verdict
from celery_redlock_beat.ledger.steering import (
    Change,
    Ending,
    Kind,
    Remainder,
    Removal,
    Steered,
)
from celery_redlock_beat.ticks import SENT, Reason, Tick
from ledger.places import (
    MINUTE,
    MOMENT,
    all_at_once,
    claim,
    due_ticks,
    grant,
    join,
    message,
    messages,
    register,
    remainder_of,
    remove,
    stored,
)


def test_an_entry_that_was_removed_is_gone_with_its_record_and_its_pause(ledgers, a, op):
    revision = stored(op)
    (paused,) = op.pause(["tidy"])
    told = remove(op)
    assert told.done
    assert told.revision > paused > revision
    assert ledgers.stored() == ledgers.pauses() == ledgers.revisions() == {}
    assert ledgers.record("tidy") is None
    assert ledgers.gone()["e:tidy"] == told.revision
    assert a.claim([]).revision == told.revision
    gone = {(each.kind, each.name, each.text) for each in a.changes(revision).changes}
    assert gone == {(Kind.ENTRY, "tidy", None), (Kind.PAUSE, "tidy", None)}
    assert a.changes(paused).changes[-1] == Change(Kind.ENTRY, "tidy", told.revision, None)


def test_each_change_of_a_removal_has_a_revision_of_its_own(ledgers, op):
    stored(op)
    op.pause(["tidy"])
    remove(op)
    assert len(set(ledgers.gone().values())) == 2


def test_its_open_ticks_end_under_a_new_fence_so_that_nothing_of_it_is_enqueued(ledgers, a, op):
    stored(op)
    *_, tick = due_ticks(ledgers, a, count=3)
    held = grant(a, tick)
    (seen,) = op.look(["tidy"])
    ends = [Ending(tick.at, held.fence, {Reason.SUPERSEDED: 2})]
    remainder = Remainder(tick.at, seen.now, {Reason.REMOVED: 4}, ends)
    assert op.remove([Removal("tidy", seen.revision, remainder)])[0].done
    assert ledgers.open_ticks() == {}
    assert ledgers.kept() == {tick: "skipped:removed"}
    assert ledgers.totals() == {"skipped:removed": 5, "skipped:superseded": 2}
    assert a.enqueue(held, [message(tick)], {}) is Closing.STALE
    assert a.settle([Settlement(held, SENT)]) == [Closing.STALE]
    a.release([held], 0, Release.FAILED)
    assert ledgers.open_ticks() == {}
    assert ledgers.totals() == {"skipped:removed": 5, "skipped:superseded": 2}
    assert messages(ledgers) == {}
    assert ledgers.last_fence() >= op.fence


def test_an_open_tick_that_is_not_among_the_remainder_leaves_all_as_it_is(ledgers, a, op):
    revision = stored(op)
    first, second = due_ticks(ledgers, a, count=2)
    grant(a, first)
    (seen,) = op.look(["tidy"])
    held = grant(a, second)
    before = ledgers.records()
    for remainder in (
        None,
        Remainder(second.at, seen.now),
        Remainder(second.at, seen.now, {}, remainder_of(seen).endings),
        remainder_of(seen),
    ):
        assert op.remove([Removal("tidy", revision, remainder)]) == [
            Steered("tidy", False, revision)
        ]
    assert ledgers.records() == before
    assert a.enqueue(held, [message(second)], {}) is Closing.DONE


def test_a_tick_that_was_taken_over_meanwhile_leaves_all_as_it_is(ledgers, op):
    brief, b = ledgers.node(lease=1), ledgers.node()
    revision = stored(op)
    (tick,) = due_ticks(ledgers, brief)
    grant(brief, tick)
    (seen,) = op.look(["tidy"])
    ledgers.pass_time(1)
    held = grant(b, tick)
    assert not op.remove([Removal("tidy", revision, remainder_of(seen))])[0].done
    assert b.enqueue(held, [message(tick)], {}) is Closing.DONE


def test_another_revision_removes_nothing(ledgers, op):
    revision = stored(op)
    before = ledgers.records()
    assert op.remove([Removal("tidy", revision - 1)]) == [Steered("tidy", False, revision)]
    assert op.remove([Removal("other", 0)]) == [Steered("other", False, 0)]
    assert ledgers.records() == before


def test_of_two_operators_at_once_one_is_told_that_it_has_changed(ledgers, op):
    revision = stored(op)
    told = all_at_once(
        [op, ledgers.operator("bob@ops")], lambda each: each.remove([Removal("tidy", revision)])[0]
    )
    assert sorted(each.done for each in told) == [False, True]
    assert {each.revision for each in told if not each.done} == {0}


def test_many_are_removed_at_once_and_each_answered_for_itself(ledgers, op):
    names = [f"entry {number}" for number in range(60)]
    revisions = [stored(op, name) for name in names]
    removals = [Removal(*each) for each in zip(names, revisions, strict=True)]
    told = op.remove([*removals, removals[0]])
    assert [each.done for each in told] == [True] * 60 + [False]
    assert ledgers.stored() == {}


def test_a_mark_that_is_ahead_stays_so_that_no_tick_up_to_it_comes_back(ledgers, a, op):
    revision = stored(op)
    ahead = ledgers.now() + MINUTE
    a.repair({"tidy": ahead}, "ann@ops", "a test")
    assert op.remove([Removal("tidy", revision)])[0].done
    assert ledgers.record("tidy").mark == ahead
    stored(op)
    assert ledgers.record("tidy").mark == ahead


def test_an_entry_that_is_added_again_begins_anew(ledgers, a, op):
    first = stored(op)
    one, two = due_ticks(ledgers, a, count=2)
    a.enqueue(grant(a, one), [message(one)], {})
    grant(a, two)
    op.skip([Tick("tidy", ledgers.now() + MINUTE)])
    remove(op)
    ledgers.pass_time(MOMENT)
    second = stored(op)
    assert second > first
    assert "e:tidy" not in ledgers.gone()
    assert ledgers.revisions() == {"e:tidy": second}
    record = ledgers.record("tidy")
    assert (record.runs, record.fence) == (0, 0)
    assert record.mark > two.at
    assert op.look(["tidy"])[0].unwanted == []
    for tick in (one, two):
        assert claim(a, tick, revision=second).verdict is Verdict.SETTLED
    assert messages(ledgers) == {one: 1}


def test_a_tick_that_ends_is_no_run_only_if_no_attempt_was_made(ledgers, a, op):
    revision = stored(op, run_on_start=True)
    ahead = Tick("tidy", ledgers.now() + MINUTE)
    held = claim(a, ahead, due_at=0).grant  # its mark is ahead: so the record stays to be seen
    assert ledgers.record("tidy").runs == 2
    (seen,) = op.look(["tidy"])
    assert sorted(each.attempt for each in seen.open) == [0, 1]
    assert op.remove([Removal("tidy", revision, remainder_of(seen))])[0].done
    assert ledgers.record("tidy").runs == 1, "on other brokers the second may have been sent"
    stored(op)
    held = claim(a, Tick("tidy", ahead.at + 1), due_at=0).grant
    a.release([held], 0, Release.UNTRIED)
    assert ledgers.record("tidy").runs == 1, "what is new has not run"
    assert remove(op).done
    assert ledgers.record("tidy").runs == 0


def test_an_open_tick_whose_grant_was_lost_can_be_ended(ledgers, a, op):
    stored(op)
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    ledgers.lose_grants()
    assert op.begin() == 0
    (seen,) = op.look(["tidy"])
    assert [(each.tick, each.owner, each.fence, each.attempt) for each in seen.open] == [
        (tick, "", 0, 1)
    ]
    assert remove(op).done
    assert ledgers.open_ticks() == {}
    assert ledgers.kept() == {tick: "skipped:removed"}
    assert join(a).enqueue(held, [message(tick)], {}) is Closing.STALE


def test_an_entry_by_hand_that_no_node_has_seen_has_no_revision_and_can_be_removed(ledgers, a, op):
    ledgers.write_by_hand("tidy", b"7 {}")
    (seen,) = op.look(["tidy"])
    assert (seen.revision, seen.document) == (0, b"{}")
    assert op.remove([Removal("tidy", 7)]) == [Steered("tidy", False, 0)]
    assert op.remove([Removal("tidy", 0)])[0].done
    assert op.remove([Removal("tidy", 0)]) == [Steered("tidy", False, 0)]
    assert ledgers.stored() == {}
    assert not a.claim([]).stirred


def test_what_the_code_has_of_the_same_name_keeps_ticks_record_and_pause(ledgers, a, op):
    revision = stored(op)
    register(a, "tidy")
    (tick,) = due_ticks(ledgers, a)
    held = grant(a, tick)
    op.pause(["tidy"])
    before = ledgers.record("tidy")
    assert op.remove([Removal("tidy", revision, hidden=True)])[0].done
    assert ledgers.stored() == {}
    assert ledgers.pauses().keys() == {"tidy"}
    assert ledgers.record("tidy") == before
    assert op.look(["tidy"])[0].open[0].fence == held.fence
