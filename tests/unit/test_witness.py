"""What a node vouches for after a loss of data, and what it must not."""

from __future__ import annotations

import pytest

from celery_redlock_beat.hand import Hand
from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.ledger import Answer, Claimed, Grant, Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Memory
from celery_redlock_beat.ticks import IN_DOUBT, SECOND, SENT, Reason, Tick
from celery_redlock_beat.timetables.interval import Interval
from celery_redlock_beat.witness import MAY_LACK, REMEMBERED, Witness

NOW = 1_800_000_000 * SECOND


@pytest.fixture
def witness():
    return Witness(loses_messages=False)


def grant_of(tick: Tick, fence: int = 1) -> Grant:
    return Grant(tick, fence, 1, tick.at - SECOND, tick.at + 5 * SECOND)


def settled(verdict: Verdict, entry: str = "a", mark: int = NOW, **more) -> Answer:
    return Answer(Tick(entry, mark), verdict, mark, **more)


def hear(witness, *answers, still_open=(), now=NOW):
    ticks = None if still_open is None else {tick: tick.at - 1 for tick in still_open}
    witness.hear(Claimed(now, list(answers), [], 0, None, ticks))


def told(witness, hand=None, slots=()):
    return witness.testimony(slots, hand or Hand())


def test_what_is_not_open_is_closed_up_to_the_mark(witness):
    hear(witness, settled(Verdict.SETTLED, "a"), settled(Verdict.SETTLED, "b", NOW - 5))
    assert (witness.closed("a"), witness.closed("b"), witness.closed("c")) == (NOW, NOW - 5, 0)


def test_an_open_tick_is_closed_only_up_to_itself_and_for_its_own_entry(witness):
    ticks = [Tick("a", NOW - 7), Tick("a", NOW - 9)]
    hear(witness, settled(Verdict.HELD, "a"), settled(Verdict.SETTLED, "b"), still_open=ticks)
    assert (witness.closed("a"), witness.closed("b")) == (NOW - 10, NOW)


def test_what_is_settled_above_an_open_tick_is_told_as_closed_but_for_that(witness):
    hear(witness, settled(Verdict.SETTLED, "a"), still_open=[Tick("a", NOW - 7)])
    (memory,) = told(witness).memories
    assert (memory.closed, memory.sure, memory.still_open) == (NOW, NOW - 8, (NOW - 7,))


def test_what_an_open_tick_has_passed_over_is_not_settled(witness):
    witness.hear(Claimed(NOW, [settled(Verdict.HELD)], [], 0, None, {Tick("a", NOW): NOW - 50}))
    assert witness.closed("a") == NOW - 50


def test_where_too_many_are_open_the_last_knowledge_holds(witness):
    hear(witness, settled(Verdict.SETTLED, "a", NOW - 5))
    hear(witness, settled(Verdict.HELD, "a", NOW), still_open=None)
    assert witness.closed("a") == NOW - 5
    hear(witness, settled(Verdict.HELD, "a", NOW + 1), still_open=None)
    assert witness.closed("a") == NOW - 5
    hear(witness)
    assert witness.closed("a") == NOW + 1


def test_a_mark_that_a_registration_told_may_still_be_open(witness):
    hear(witness, settled(Verdict.SETTLED, "a", NOW - 5))
    witness.hear_mark("a", NOW)
    assert witness.closed("a") == NOW - 5
    assert witness.marks == {"a": NOW}


@pytest.mark.parametrize("verdict", [Verdict.UNREGISTERED, Verdict.UNREADABLE])
def test_an_answer_without_a_mark_teaches_none(witness, verdict):
    hear(witness, Answer(Tick("a", NOW), verdict, -1))
    assert witness.marks == {}


def test_a_mark_never_falls_but_by_an_operator(witness):
    hear(witness, settled(Verdict.SETTLED, "a", NOW))
    hear(witness, settled(Verdict.SETTLED, "a", NOW - 5))
    assert witness.marks == {"a": NOW}
    witness.obey("a", NOW - 9)
    assert witness.marks == {"a": NOW - 9}
    assert witness.closed("a") == NOW - 9


def test_the_runs_of_an_entry_are_told_as_they_were_heard_with_its_mark(witness):
    hear(witness, settled(Verdict.HELD, "a", NOW, runs=3), still_open=[Tick("a", NOW)])
    hear(witness, settled(Verdict.SETTLED, "a", NOW - 5, runs=9))
    assert [memory.runs for memory in told(witness).memories] == [3]
    hear(witness, settled(Verdict.FINISHED, "a", NOW, runs=2))  # it was skipped
    witness.hear_mark("b", NOW, 7)
    assert [memory.runs for memory in told(witness).memories] == [2, 7]


def test_an_operator_who_sets_a_mark_back_leaves_the_runs(witness):
    hear(witness, settled(Verdict.SETTLED, "a", NOW, runs=3))
    witness.obey("a", NOW - 9)
    assert [memory.runs for memory in told(witness).memories] == [3]
    hear(witness, settled(Verdict.SETTLED, "a", NOW - 9, runs=4))
    assert [memory.runs for memory in told(witness).memories] == [4]


def test_what_it_settled_is_kept_until_the_ledger_names_what_is_open(witness):
    one = Settlement(grant_of(Tick("a", NOW)), SENT, {Reason.SUPERSEDED: 3})
    witness.settled(one)
    assert told(witness).settled == [one]
    hear(witness, still_open=None)
    assert told(witness).settled == [one]
    hear(witness)
    assert told(witness).settled == []


def test_a_message_that_went_with_the_data_is_in_doubt(witness):
    grant = grant_of(Tick("a", NOW))
    witness.pushed(grant, {})
    assert told(witness).settled == [Settlement(grant, IN_DOUBT, {})]


def test_what_was_tried_without_an_answer_is_in_doubt_as_long_as_it_is_open(witness):
    grant = grant_of(Tick("a", NOW))
    witness.tried(grant, {Reason.WINDOW: 1})
    hear(witness, still_open=[grant.tick])
    assert told(witness).settled == [Settlement(grant, IN_DOUBT, {Reason.WINDOW: 1})]
    hear(witness)
    assert told(witness).settled == []


def test_what_was_tried_and_is_granted_again_was_not_sent(witness):
    grant = grant_of(Tick("a", NOW))
    witness.tried(grant, {})
    again = settled(Verdict.GRANTED, grant=grant_of(grant.tick, fence=2))
    hear(witness, again, still_open=[grant.tick])
    assert told(witness).settled == []


def test_what_was_settled_over_an_hour_ago_is_not_told(witness):
    old, new = (Settlement(grant_of(Tick("a", NOW - at)), SENT) for at in (REMEMBERED, 1))
    hear(witness, still_open=None)
    witness.settled(old)
    witness.settled(new)
    assert told(witness).settled == [new]
    hear(witness, still_open=None)
    assert told(witness).settled == [new]


def test_it_vouches_for_entries_that_it_does_not_have(witness):
    hear(witness, settled(Verdict.SETTLED, "mine"), settled(Verdict.SETTLED, "yours", NOW - 5))
    slot = Slot("mine", Interval(SECOND), Policy(), since=7)
    assert told(witness, slots=[slot]).memories == [
        Memory("mine", NOW, 7, slot.timetable.fingerprint, NOW, NOW),
        Memory("yours", NOW - 5, 0, "", NOW - 5, NOW - 5),
    ]


def test_of_the_last_messages_it_is_not_sure_where_they_are_lost_with_the_ledger():
    witness = Witness(loses_messages=True)
    hear(witness, settled(Verdict.SETTLED, "a", NOW), settled(Verdict.SETTLED, "b", NOW // 2))
    a, b = told(witness).memories
    assert (a.closed, a.sure) == (NOW, NOW - MAY_LACK)
    assert (b.closed, b.sure) == (NOW // 2, NOW // 2)


def test_it_tells_what_is_in_hand(witness):
    hand, held, published = Hand(), grant_of(Tick("a", NOW)), grant_of(Tick("b", NOW))
    hand.take(held, 0)
    hand.conclude(Settlement(published, SENT), event=None)
    testimony = told(witness, hand)
    assert testimony.held == [held]
    assert testimony.settled == [Settlement(published, SENT)]


def test_it_does_not_vouch_for_what_was_removed(witness):
    hear(witness)
    witness.forget("a")
    assert "a" not in [memory.entry for memory in told(witness).memories]


def test_what_it_published_is_known_until_it_is_known_to_be_settled(witness):
    grant = grant_of(Tick("a", NOW))
    witness.published(grant, {})
    assert told(witness).settled == [Settlement(grant, SENT, {})]
    hear(witness, still_open=[grant.tick])
    assert witness.has_published(grant.tick)
    hear(witness)
    assert not witness.has_published(grant.tick)
    assert told(witness).settled == []


def test_an_outcome_in_hand_is_told_once(witness):
    grant, hand = grant_of(Tick("a", NOW)), Hand()
    witness.published(grant, {})
    hand.conclude(Settlement(grant, SENT), event=None)
    assert told(witness, hand).settled == [Settlement(grant, SENT)]


def test_a_limit_is_a_part_of_what_an_entry_is_known_by():
    slot = Slot("mine", Interval(SECOND), Policy(max_runs=3), since=7)
    witness = Witness(loses_messages=False)
    witness.hear_mark("mine", NOW, 1)
    (memory,) = witness.testimony([slot], Hand()).memories
    assert memory.fingerprint == slot.fingerprint
    assert memory.fingerprint != Slot("mine", Interval(SECOND), Policy()).fingerprint
