"""What becomes of an entry that an operator stores: new, changed, or not what the operator saw."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import Orphan, Registration, Settlement, Verdict
from celery_redlock_beat.ledger.steering import (
    Change,
    Definition,
    Ending,
    Kind,
    Remainder,
    Steered,
)
from celery_redlock_beat.ledger.testimony import Memory
from celery_redlock_beat.ticks import SENT, Reason, Tick
from ledger.places import (
    MINUTE,
    MOMENT,
    all_at_once,
    claim,
    due_ticks,
    grant,
    join,
    register,
    remainder_of,
    remove,
    stored,
)

TASK = '{"task": "t"}'


def store(operator, fingerprint="every µs", expected=0, remainder=None, entry="tidy", **options):
    known = Registration(entry, fingerprint, **options)
    (told,) = operator.store([Definition(TASK, known, expected, remainder, "as agreed")])
    return told


class TestANewEntry:
    def test_is_kept_as_it_was_told_behind_its_revision(self, ledgers, a, op):
        told = store(op)
        assert told == Steered("tidy", True, op.fence)
        assert ledgers.stored() == {"tidy": f"{told.revision} {TASK}".encode()}
        assert ledgers.revisions() == {"e:tidy": told.revision}
        assert a.claim([]).revision == told.revision
        (found,) = op.look(["tidy"])
        assert (found.revision, found.document) == (told.revision, TASK.encode())

    def test_is_registered_in_the_same_step_and_sent_from_its_first_tick_on(self, ledgers, a, op):
        earliest = ledgers.now()
        revision = store(op, "daily").revision
        record = ledgers.record("tidy")
        assert earliest <= record.mark == record.since <= ledgers.now()
        assert (record.fence, record.runs, record.fingerprint) == (0, 0, "daily")
        tick = Tick("tidy", record.mark + 1)
        ledgers.pass_time(MOMENT)  # no node has heard of it yet
        (known,) = a.register([Registration("tidy", "daily", revision=revision)])
        assert known == record
        assert claim(a, tick, revision=revision).verdict is Verdict.GRANTED

    def test_may_run_once_at_its_start(self, ledgers, a, op):
        store(op, run_on_start=True)
        record = ledgers.record("tidy")
        assert record.runs == 1
        assert a.claim([]).orphans == [Orphan(Tick("tidy", record.mark), record.mark, 0)]
        ledgers.pass_time(1)
        register(a, "tidy", run_on_start=True)
        assert len(ledgers.open_ticks()) == 1

    def test_of_one_instant_that_has_passed_is_claimed_and_so_told(self, ledgers, a, op):
        tick = Tick("tidy", ledgers.now() - MINUTE)
        store(op, once=True)
        assert ledgers.record("tidy").mark == 0
        assert grant(a, tick).previous == 0

    def test_is_not_stored_if_there_is_one(self, ledgers, op):
        revision = stored(op)
        before = ledgers.records()
        assert store(op) == Steered("tidy", False, revision)
        assert ledgers.records() == before

    def test_of_a_name_that_is_known_from_code_catches_up_nothing(self, ledgers, a, op):
        old = register(a, "tidy")
        ledgers.pass_time(MOMENT)
        remainder = Remainder(old.mark, old.mark + 9, {Reason.BEFORE_REGISTRATION: 9})
        assert store(op, remainder=remainder).done
        new = ledgers.record("tidy")
        assert (new.mark, new.fingerprint) == (old.mark + 9, "every µs")
        assert new.since >= old.since + MOMENT
        assert ledgers.totals() == {"skipped:before_registration": 9}

    def test_may_have_any_text(self, ledgers, a, op):
        document = '{"args": ["größe 日本語 🎉", "7 8", "a\\nb"]}\n'
        for name in ("  spaces ", "7 8", "größe", "e:tidy", "a\0b\n"):
            op.store([Definition(document, Registration(name, "daily"))])
        assert {each.document for each in op.look(list(ledgers.stored()))} == {document.encode()}
        told = a.changes(0).changes
        assert [each.name for each in told] == ["  spaces ", "7 8", "größe", "e:tidy", "a\0b\n"]
        assert all(each.text.partition(b" ")[2] == document.encode() for each in told)

    def test_is_one_of_many_and_answered_in_order(self, ledgers, op):
        names = [f"entry {number}" for number in range(120)]
        told = op.store([Definition(TASK, Registration(name, "daily")) for name in names])
        assert [each.entry for each in told] == names
        revisions = [each.revision for each in told]
        assert revisions == sorted(set(revisions))
        assert ledgers.last_fence() == revisions[-1]


class TestAChangedEntry:
    def test_has_a_higher_revision_and_tells_of_the_present_one(self, ledgers, a, op):
        first = stored(op)
        (told,) = op.store(
            [Definition('{"task": "u"}', Registration("tidy", "every µs"), expected=first)]
        )
        assert told.done
        assert told.revision > first
        assert a.changes(first).changes == [
            Change(Kind.ENTRY, "tidy", told.revision, f'{told.revision} {{"task": "u"}}'.encode())
        ]

    def test_is_not_what_two_operators_saw_at_once(self, ledgers, op):
        first = stored(op)
        operators = [op, ledgers.operator("bob@ops")]
        told = all_at_once(operators, lambda each: store(each, expected=first))
        done, refused = sorted(told, key=lambda each: not each.done)
        assert (done.done, refused.done) == (True, False)
        assert done.revision > first
        assert refused.revision == done.revision

    def test_is_refused_if_it_is_not_there(self, ledgers, op):
        assert store(op, expected=7) == Steered("tidy", False, 0)
        revision = stored(op)
        removed = remove(op)
        assert store(op, expected=revision) == Steered("tidy", False, 0)
        assert store(op).revision > removed.revision

    def test_with_the_same_timetable_keeps_what_it_owes(self, ledgers, op):
        revision, before = stored(op), ledgers.record("tidy")
        ledgers.pass_time(MOMENT)
        remainder = Remainder(before.mark, before.mark + 1, {Reason.BEFORE_REGISTRATION: 1})
        assert store(op, expected=revision, remainder=remainder).done
        assert ledgers.record("tidy") == before
        assert ledgers.totals() == {}

    def test_with_another_timetable_owes_nothing_of_before_and_counts_it_once(self, ledgers, a, op):
        revision = stored(op)
        first, *_ = due_ticks(ledgers, a, count=9)
        a.settle([Settlement(grant(a, first), SENT)])
        (seen,) = op.look(["tidy"])
        remainder = remainder_of(seen, {Reason.BEFORE_REGISTRATION: 8})
        told = store(op, "hourly", revision, remainder)
        assert told.done
        record = ledgers.record("tidy")
        assert (record.mark, record.fingerprint, record.runs) == (seen.now, "hourly", 1)
        assert record.since >= seen.now
        assert ledgers.totals() == {"sent": 1, "skipped:before_registration": 8}
        assert not store(op, "hourly", revision, remainder).done
        assert ledgers.totals() == {"sent": 1, "skipped:before_registration": 8}

    def test_is_not_changed_if_its_remainder_is_another_one(self, ledgers, a, op):
        revision = stored(op)
        (tick,) = due_ticks(ledgers, a)
        (seen,) = op.look(["tidy"])
        held = grant(a, tick)
        before = ledgers.records()
        assert store(op, "hourly", revision, remainder_of(seen)) == Steered("tidy", False, revision)
        ends = Remainder(tick.at, seen.now, {}, [Ending(tick.at, held.fence + 1)])
        assert not store(op, "hourly", revision, ends).done
        assert ledgers.records() == before

    def test_ends_the_open_ticks_that_are_among_the_remainder(self, ledgers, a, op):
        revision = stored(op)
        first, second = due_ticks(ledgers, a, count=2)
        kept, held = grant(a, first), grant(a, second)
        ends = [Ending(second.at, held.fence, {Reason.SUPERSEDED: 3})]
        assert store(op, "hourly", revision, Remainder(second.at, second.at, {}, ends)).done
        assert set(ledgers.open_ticks()) == {first}
        assert ledgers.totals() == {"skipped:before_registration": 1, "skipped:superseded": 3}
        assert ledgers.record("tidy").runs == 2
        assert [str(each) for each in a.settle([Settlement(held, SENT)])] == ["STALE"]
        assert [str(each) for each in a.settle([Settlement(kept, SENT)])] == ["DONE"]

    def test_leaves_no_fence_that_the_ledger_does_not_know(self, ledgers, a, op):
        revision = stored(op)
        (tick,) = due_ticks(ledgers, a)
        ends = [Ending(tick.at, grant(a, tick).fence)]
        told = store(op, "hourly", revision, Remainder(tick.at, tick.at, {}, ends))
        assert ledgers.last_fence() == op.fence == told.revision
        assert op.begin() == 0
        a.claim([])

    def test_whose_timetable_nobody_knows_any_more_catches_up_nothing(self, ledgers, a, op):
        join(a, [Memory("tidy", ledgers.now() - MINUTE)])
        assert store(op).done
        assert ledgers.record("tidy").since > ledgers.now() - MINUTE


class TestAStaleNode:
    @pytest.fixture
    def old_and_new(self, op):
        old = stored(op)
        return old, store(op, expected=old).revision

    def test_is_answered_changed_and_granted_nothing(self, ledgers, a, op, old_and_new):
        old, new = old_and_new
        (tick,) = due_ticks(ledgers, a)
        answer = claim(a, tick, revision=old)
        assert (answer.verdict, answer.mark, answer.grant) == (Verdict.CHANGED, -1, None)
        assert ledgers.open_ticks() == {}
        assert claim(a, tick, revision=new).verdict is Verdict.GRANTED
        assert claim(a, tick, revision=old).verdict is Verdict.CHANGED

    def test_is_answered_changed_also_for_an_entry_that_is_gone_or_paused(self, ledgers, a, op):
        revision = stored(op)
        (tick,) = due_ticks(ledgers, a)
        op.pause(["tidy"])
        assert claim(a, tick, revision=revision + 1).verdict is Verdict.CHANGED
        assert claim(a, tick, revision=revision).verdict is Verdict.PAUSED
        remove(op)
        assert claim(a, tick, revision=revision).verdict is Verdict.CHANGED
        assert claim(a, tick).verdict is Verdict.UNREGISTERED

    def test_registers_nothing(self, ledgers, a, op, old_and_new):
        old, new = old_and_new
        known = ledgers.record("tidy")
        ledgers.pass_time(MOMENT)
        stale = Registration("tidy", "hourly", again=True, revision=old)
        fresh = Registration("tidy", "every µs", revision=new)
        assert a.register([stale, fresh]) == [None, known]
        assert a.register([Registration("other", "daily", revision=5)]) == [None]
        assert ledgers.record("other") is None


def test_an_entry_that_is_new_has_not_run_whatever_an_old_copy_knows_of_its_name(ledgers, a, op):
    (tick,) = due_ticks(ledgers, a)
    grant(a, tick)
    assert ledgers.record("tidy").runs == 1
    stored(op)
    assert ledgers.record("tidy").runs == 0
