"""What ends unsent is counted as the nodes count it, and no tick twice."""

from __future__ import annotations

import pytest

from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.ledger import Record
from celery_redlock_beat.ledger.steering import Ending, Look, OpenTick
from celery_redlock_beat.remainder import remainder
from celery_redlock_beat.ticks import SECOND, Reason, Tick
from celery_redlock_beat.timetables import Interval, Once, Opaque

MINUTE = 60 * SECOND
NOON = 1_900_000_000 * SECOND // (1440 * MINUTE) * 1440 * MINUTE + 720 * MINUTE


def slot(timetable=None, **policy):
    return Slot("tidy", timetable or Interval(MINUTE), Policy(**policy))


def look(mark=NOON, since=0, opened=(), now=NOON + 10 * MINUTE, runs=0):
    record = Record("tidy", mark, since, 7, runs, "every minute")
    return Look("tidy", now, record, open=opened)


def opened(at, previous, ends, fence=9):
    return OpenTick(Tick("tidy", at), "node", fence, 1, previous, ends)


def counted(told, table=None, *, upto=NOON + 10 * MINUTE, reason=Reason.PAUSED, **policy):
    return remainder(told, slot(table, **policy), reason, upto, held=False).passed


def test_every_tick_after_the_mark_is_counted_up_to_the_instant_itself():
    found = remainder(look(), slot(), Reason.PAUSED, NOON + 10 * MINUTE, held=False)
    assert (found.mark, found.upto, found.passed) == (
        NOON,
        NOON + 10 * MINUTE,
        {Reason.PAUSED: 10},
    )
    assert counted(look(), upto=NOON + 10 * MINUTE - 1) == {Reason.PAUSED: 9}


def test_ticks_before_the_entry_was_known_are_counted_so():
    told = look(since=NOON + 3 * MINUTE)
    assert counted(told) == {Reason.BEFORE_REGISTRATION: 2, Reason.PAUSED: 8}


def test_one_reason_for_both_is_one_number():
    told = look(since=NOON + 3 * MINUTE)
    reason = Reason.BEFORE_REGISTRATION
    assert counted(told, reason=reason) == {reason: 10}


@pytest.mark.parametrize("catch_up", ["latest", "all", "none"])
def test_the_reason_is_the_callers_whatever_the_policy_is(catch_up):
    assert counted(look(), reason=Reason.REMOVED, catch_up=catch_up) == {Reason.REMOVED: 10}


@pytest.mark.parametrize("upto", [NOON, NOON - 5 * MINUTE])
def test_nothing_is_due_up_to_the_mark(upto):
    assert counted(look(), upto=upto) == {}


def test_what_is_disabled_has_nothing_due():
    assert counted(look(), enabled=False) == {}


def test_what_has_run_as_often_as_it_may_has_nothing_due():
    assert counted(look(runs=3), max_runs=3) == {}
    assert counted(look(runs=2), max_runs=3) == {Reason.PAUSED: 10}


def test_an_instant_of_the_past_that_was_never_claimed_is_counted_once():
    told = look(mark=0, since=NOON + MINUTE)
    assert counted(told, Once(NOON)) == {Reason.BEFORE_REGISTRATION: 1}


def test_where_the_schedule_alone_knows_nothing_is_counted():
    opaque = Opaque.__new__(Opaque)
    assert counted(look(), opaque) == {}


def test_open_ticks_end_with_what_they_had_passed_over():
    told = look(
        mark=NOON + 5 * MINUTE,
        opened=[opened(NOON + 5 * MINUTE, NOON, NOON + 9 * MINUTE)],
    )
    found = remainder(told, slot(), Reason.PAUSED, told.now, held=False)
    assert found.endings == [Ending(NOON + 5 * MINUTE, 9, {Reason.SUPERSEDED: 4})]
    assert found.passed == {Reason.PAUSED: 5}


def test_what_somebody_may_be_sending_ends_only_where_all_ends():
    lives = opened(NOON, NOON - MINUTE, NOON + 11 * MINUTE)
    over = opened(NOON - MINUTE, NOON - 2 * MINUTE, NOON + 10 * MINUTE, fence=8)
    told = look(opened=[lives, over])
    found = remainder(told, slot(), Reason.PAUSED, told.now, held=False)
    assert [each.fence for each in found.endings] == [8]
    found = remainder(told, slot(), Reason.REMOVED, told.now, held=True)
    assert [each.fence for each in found.endings] == [9, 8]


def test_without_a_slot_open_ticks_end_and_nothing_is_counted():
    told = look(opened=[opened(NOON, NOON - 5 * MINUTE, NOON)])
    found = remainder(told, None, Reason.REMOVED, told.now, held=True)
    assert (found.passed, found.endings) == ({}, [Ending(NOON, 9)])


def test_without_a_record_there_is_no_remainder():
    assert remainder(Look("tidy", NOON), slot(), Reason.PAUSED, NOON, held=True) is None


def test_the_slot_that_was_given_stays_as_it_was():
    given = slot()
    remainder(look(since=NOON), given, Reason.PAUSED, NOON + MINUTE, held=False)
    assert given.since == 0
