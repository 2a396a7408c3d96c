"""An entry begins where another scheduler stopped: nothing is sent again, nothing forgotten."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import Registration, Release, Seed
from celery_redlock_beat.ledger.steering import Definition, Seeding
from celery_redlock_beat.ledger.testimony import Memory
from celery_redlock_beat.ticks import SECOND, Tick
from ledger.places import claim, grant, push

EVERY = 30 * SECOND
UNSAID = f"interval:{EVERY}+0"


def seeded(ledger, at, phase=None, *, entry="tidy", fingerprint=UNSAID, again=False, **more):
    """Register one entry that another scheduler sent until an instant."""
    asked = Registration(
        entry, fingerprint, takes_phase=True, seed=Seed(at, phase, again=again), **more
    )
    (record,) = ledger.register([asked])
    return record


def registered(ledger, fingerprint=UNSAID, *, takes_phase=True, entry="tidy", **more):
    (record,) = ledger.register([Registration(entry, fingerprint, takes_phase=takes_phase, **more)])
    return record


def begin_to_live(node):
    """Have a node tell that it lives, as its claims do."""
    node.claim([])


def stop_living(node):
    node.depart('{"left": true}')


class TestAnEntryThatWasNeverSeen:
    def test_begins_where_the_other_scheduler_stopped(self, ledgers, a):
        at = ledgers.now() - 40 * SECOND
        record = seeded(a, at)
        assert (record.mark, record.since) == (at, at)

    def test_sends_what_was_due_since_and_nothing_of_before(self, ledgers, a):
        at = ledgers.now() - 40 * SECOND
        seeded(a, at)
        assert claim(a, Tick("tidy", at)).verdict == "SETTLED"
        assert grant(a, Tick("tidy", at + EVERY)).previous == at

    def test_begins_now_if_the_other_clock_was_ahead(self, ledgers, a):
        before = ledgers.now()
        record = seeded(a, before + 3600 * SECOND)
        assert before <= record.mark == record.since <= ledgers.now()

    def test_is_not_started_as_if_it_were_new(self, ledgers, a):
        record = seeded(a, ledgers.now() - SECOND, run_on_start=True)
        assert record.runs == 0
        assert not a.claim([]).open

    def test_that_has_one_instant_is_done_if_the_other_scheduler_ran_after_it(self, ledgers, a):
        at = ledgers.now() - 40 * SECOND
        seeded(a, at, fingerprint="once", once=True)
        assert claim(a, Tick("tidy", at - SECOND)).verdict == "SETTLED"
        assert claim(a, Tick("tidy", at + SECOND)).verdict == "GRANTED"


class TestAPhase:
    def test_goes_on_and_every_node_is_told(self, ledgers, a, b):
        record = seeded(a, ledgers.now(), 7 * SECOND)
        assert record.fingerprint == f"interval:{EVERY}~{7 * SECOND}"
        assert registered(b) == record

    def test_stays_when_a_node_that_knows_it_registers_again(self, ledgers, a):
        record = seeded(a, ledgers.now(), 7 * SECOND)
        assert registered(a, record.fingerprint) == record

    def test_stays_while_the_entry_is_disabled_and_enabled_again(self, ledgers, a):
        seeded(a, ledgers.now(), 7 * SECOND)
        off = registered(a, f"disabled {UNSAID}")
        assert off.fingerprint == f"disabled interval:{EVERY}~{7 * SECOND}"
        assert registered(a).fingerprint == f"interval:{EVERY}~{7 * SECOND}"

    def test_ends_with_its_period(self, ledgers, a):
        seeded(a, ledgers.now(), 7 * SECOND)
        other = f"interval:{2 * EVERY}+0"
        assert registered(a, other).fingerprint == other
        assert registered(a).fingerprint == UNSAID

    def test_ends_where_the_entry_says_one_itself_even_the_one_that_is_none(self, ledgers, a):
        seeded(a, ledgers.now() - SECOND, 7 * SECOND)
        record = registered(a, takes_phase=False)
        assert record.fingerprint == UNSAID
        assert record.since > record.mark

    def test_is_remembered_through_a_loss_of_data(self, ledgers, a, b):
        record = seeded(a, ledgers.now(), 7 * SECOND)
        ledgers.flush()
        push(b)
        push(a, [Memory("tidy", record.mark, record.since, record.fingerprint)])
        push(b)
        assert registered(b).fingerprint == record.fingerprint

    def test_of_a_period_that_only_begins_alike_is_another_one(self, ledgers, a):
        seeded(a, ledgers.now(), 7 * SECOND)
        other = f"interval:{EVERY}0+0"
        assert registered(a, other).fingerprint == other


class TestAnEntryThatIsKnown:
    def test_begins_anew_as_long_as_nothing_was_claimed_and_nobody_lives(self, ledgers, a):
        registered(a)
        at = ledgers.now() - 60 * SECOND
        record = seeded(a, at, 7 * SECOND)
        assert (record.mark, record.since) == (at, at)
        assert record.fingerprint == f"interval:{EVERY}~{7 * SECOND}"

    def test_stays_as_it_is_while_a_node_lives(self, ledgers, a):
        known = registered(a)
        begin_to_live(a)
        assert seeded(a, ledgers.now() - 60 * SECOND, 7 * SECOND) == known

    def test_begins_anew_as_soon_as_the_last_node_has_left(self, ledgers, a):
        registered(a)
        begin_to_live(a)
        stop_living(a)
        at = ledgers.now() - 60 * SECOND
        assert seeded(a, at).mark == at

    def test_never_falls_below_another_seed_and_takes_a_newer_one(self, ledgers, a, b):
        at = ledgers.now() - 60 * SECOND
        assert seeded(a, at, 7 * SECOND).mark == at
        assert seeded(b, at - 40 * SECOND, 3 * SECOND).mark == at
        assert seeded(b, at + 10 * SECOND, 5 * SECOND).mark == at + 10 * SECOND

    def test_stays_as_it_is_once_a_tick_was_claimed(self, ledgers, a):
        known = registered(a)
        ledgers.pass_time(1)
        grant(a, Tick("tidy", known.mark + 1))
        stop_living(a)
        at = ledgers.now() - 60 * SECOND
        assert seeded(a, at, 7 * SECOND).mark == known.mark + 1
        assert seeded(a, ledgers.now(), 7 * SECOND).mark == known.mark + 1

    def test_stays_as_it_is_if_it_has_started(self, ledgers, a):
        known = registered(a, run_on_start=True)
        assert seeded(a, ledgers.now() - 60 * SECOND).mark == known.mark

    def test_rises_where_the_other_scheduler_may_have_sent_since(self, ledgers, a):
        known = registered(a)
        ledgers.pass_time(10 * SECOND)
        grant(a, Tick("tidy", known.mark + 1))
        at = ledgers.now()
        record = seeded(a, at, 7 * SECOND, again=True)
        assert (record.mark, record.since) == (at, at)
        assert record.fingerprint == f"interval:{EVERY}~{7 * SECOND}"

    def test_skips_what_is_open_where_the_other_scheduler_has_sent_it_or_passed_it_over(
        self, ledgers, a, b
    ):
        known = registered(a)
        ledgers.pass_time(10)
        early, late = Tick("tidy", known.mark + 1), Tick("tidy", known.mark + 9)
        for each in (early, late):
            a.release([grant(a, each)], 0, Release.FAILED)
        seeded(b, early.at, again=True)
        assert not claim(b, late).grant.unwanted
        seeded(b, ledgers.now(), again=True)
        assert claim(b, early).grant.unwanted

    def test_never_falls_where_the_other_scheduler_sent_earlier(self, ledgers, a):
        known = registered(a)
        begin_to_live(a)
        assert seeded(a, known.mark - SECOND, 7 * SECOND, again=True) == known


class TestAnOperator:
    def asked(self, at, phase=None, **more):
        return Registration("tidy", UNSAID, takes_phase=True, seed=Seed(at, phase), **more)

    def test_seeds_before_the_first_node(self, ledgers, a, op):
        at = ledgers.now() - 40 * SECOND
        ((answer, record),) = op.seed([self.asked(at, 7 * SECOND)])
        assert (answer, record.mark) == (Seeding.DONE, at)
        assert registered(a) == record

    def test_may_say_it_twice(self, ledgers, a, op):
        at = ledgers.now() - 40 * SECOND
        op.seed([self.asked(at)])
        begin_to_live(a)
        ((answer, _),) = op.seed([self.asked(at)])
        assert answer is Seeding.DONE

    def test_is_refused_once_a_tick_was_claimed(self, ledgers, a, op):
        at = ledgers.now() - 40 * SECOND
        known = registered(a)
        ledgers.pass_time(1)
        grant(a, Tick("tidy", known.mark + 1))
        stop_living(a)
        ((answer, record),) = op.seed([self.asked(at)])
        assert (answer, record.mark) == (Seeding.CLAIMED, known.mark + 1)

    def test_stores_an_entry_that_begins_where_the_other_scheduler_stopped(self, ledgers, a, op):
        at = ledgers.now() - 40 * SECOND
        (told,) = op.store([Definition('{"task": "t"}', self.asked(at))])
        (look,) = op.look(["tidy"])
        assert told.done
        assert (look.record.mark, look.record.since) == (at, at)

    def test_cannot_seed_what_is_stored_otherwise(self, ledgers, a, op):
        at = ledgers.now() - 40 * SECOND
        (told,) = op.store([Definition('{"task": "t"}', Registration("tidy", UNSAID))])
        ((answer, record),) = op.seed([self.asked(at, revision=told.revision - 1)])
        assert (answer, record) == (Seeding.CHANGED, None)
        ((answer, record),) = op.seed([self.asked(at, revision=told.revision)])
        assert (answer, record.mark) == (Seeding.DONE, at)

    def test_can_ask_what_would_be_done_without_doing_it(self, ledgers, a, op):
        at = ledgers.now() - 40 * SECOND
        assert op.seed([self.asked(at)], dry_run=True) == [(Seeding.DONE, None)]
        (look,) = op.look(["tidy"])
        assert look.record is None
        assert ledgers.history() == []

    def test_is_told_the_same_without_doing_it_as_when_doing_it(self, ledgers, a, op):
        known = registered(a)
        begin_to_live(a)
        again = Registration(
            "tidy", UNSAID, takes_phase=True, seed=Seed(known.mark + SECOND, again=True)
        )
        ledgers.pass_time(2)
        for asked in (self.asked(known.mark - SECOND), self.asked(known.mark), again):
            ((expected, before),) = op.seed([asked], dry_run=True)
            assert before == known
            ((answer, _),) = op.seed([asked])
            assert answer is expected


@pytest.mark.parametrize("revision", [None, 5])
def test_a_seed_of_something_stored_otherwise_is_none(a, revision):
    asked = Registration("tidy", UNSAID, revision=revision, seed=Seed(1))
    (record,) = a.register([asked])
    assert (record is None) == (revision is not None)
