"""What the ledger answers to an entry, known or not."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import MAY_MISS, Orphan, Registration, Settlement, Verdict
from celery_redlock_beat.ledger.steering import Change, Kind
from celery_redlock_beat.ledger.testimony import Doubt, Memory, Recovery, Testimony
from celery_redlock_beat.ticks import SECOND, SENT, Reason, Tick, skipped
from ledger.places import (
    MINUTE,
    MOMENT,
    all_at_once,
    claim,
    due_ticks,
    grant,
    join,
    push,
    register,
    stored,
)


def test_an_unknown_entry_begins_now_and_owes_nothing_of_the_past(ledgers, a):
    before = ledgers.now()
    record = register(a, "tidy", "daily")
    assert before <= record.mark == record.since <= ledgers.now()
    assert (record.fence, record.runs, record.fingerprint) == (0, 0, "daily")
    assert ledgers.record("tidy") == record
    assert claim(a, Tick("tidy", before)).verdict is Verdict.SETTLED


def test_a_known_entry_stays_as_it_is(ledgers, a, b):
    record = register(a, "tidy", "daily")
    ledgers.pass_time(MOMENT)
    assert register(b, "tidy", "daily") == record
    assert ledgers.record("tidy") == record


def test_a_changed_timetable_catches_up_nothing_and_keeps_the_mark(ledgers, a):
    old = register(a, "tidy", "daily")
    ledgers.pass_time(MOMENT)
    new = register(a, "tidy", "hourly")
    assert new.since >= old.since + MOMENT
    assert (new.mark, new.fingerprint) == (old.mark, "hourly")
    assert ledgers.record("tidy") == new


def test_an_entry_that_is_back_catches_up_nothing_and_keeps_the_mark(ledgers, a):
    old = register(a, "tidy")
    ledgers.pass_time(MOMENT)
    new = register(a, "tidy", again=True)
    assert new.since >= old.since + MOMENT
    assert new.mark == old.mark


def test_a_pushed_mark_takes_the_timetable_of_whoever_has_the_entry(ledgers, a):
    mark = ledgers.now()
    join(a, [Memory("tidy", mark)])
    record = register(a, "tidy", "daily")
    assert (record.mark, record.since, record.fingerprint) == (mark, 0, "daily")
    assert ledgers.record("tidy") == record


def test_records_come_in_the_order_asked_also_in_many_calls(ledgers, a):
    names = [f"entry {number}" for number in range(250)]
    records = a.register([Registration(name, f"of {name}") for name in names])
    assert [record.entry for record in records] == names
    assert all(ledgers.record(name).fingerprint == f"of {name}" for name in names)


def test_run_on_start_opens_a_tick_that_any_node_may_adopt_at_once(ledgers, a, b):
    record = register(a, "warm up", run_on_start=True)
    tick = Tick("warm up", record.mark)
    assert ledgers.open_ticks() == {tick: record.mark}
    assert b.claim([]).orphans == [Orphan(tick, record.mark, 0)]
    held = grant(b, tick)
    assert (held.attempt, held.previous) == (1, record.mark)
    assert held.fence > a.fence > record.mark


def test_run_on_start_happens_once_per_entry_and_not_per_node_or_deploy(ledgers, a, b):
    register(a, "warm up", run_on_start=True)
    opened = ledgers.open_ticks()
    ledgers.pass_time(MOMENT)
    register(b, "warm up", run_on_start=True)
    register(b, "warm up", "hourly", run_on_start=True)
    register(b, "warm up", "hourly", run_on_start=True, again=True)
    assert ledgers.open_ticks() == opened


def test_run_on_start_of_a_known_entry_opens_nothing(ledgers, a):
    due_ticks(ledgers, a, "tidy")
    register(a, "tidy", run_on_start=True)
    assert ledgers.open_ticks() == {}


def test_run_on_start_is_one_tick_though_three_nodes_register_at_once(ledgers):
    nodes = [ledgers.node() for _ in range(3)]
    records = all_at_once(nodes, lambda node: register(node, "warm up", run_on_start=True))
    assert len(set(records)) == 1
    (tick,) = ledgers.open_ticks()
    assert tick.at == records[0].mark
    held = [claim(node, tick).grant for node in nodes]
    assert sum(each is not None for each in held) == 1


def test_the_tick_of_run_on_start_is_a_run(ledgers, a):
    record = register(a, "warm up", run_on_start=True)
    assert record.runs == 1
    later = Tick("warm up", record.mark + 1)
    ledgers.pass_time(1)
    assert claim(a, later, limit=1).verdict is Verdict.HELD
    a.settle([Settlement(grant(a, Tick("warm up", record.mark)), SENT)])
    assert claim(a, later, limit=1).verdict is Verdict.FINISHED


def test_run_on_start_happens_again_only_where_all_who_knew_the_entry_are_gone(ledgers, a, b):
    record = register(a, "warm up", run_on_start=True)
    ledgers.flush()
    join(b, [Memory("warm up", record.mark, closed=record.mark, sure=record.mark)])
    join(a)
    register(a, "warm up", run_on_start=True)
    assert ledgers.open_ticks() == {}
    ledgers.flush()
    join(a)
    ledgers.pass_time(1)
    again = register(a, "warm up", run_on_start=True)
    assert again.mark > record.mark
    assert ledgers.open_ticks() == {Tick("warm up", again.mark): again.mark}


class TestAnEntryOfOneInstant:
    """Past or not, what becomes of its one tick is told."""

    def test_is_claimed_once_though_its_instant_had_passed(self, ledgers, a, b):
        tick = Tick("gala", ledgers.now() - MINUTE)
        record = register(a, "gala", once=True)
        assert (record.mark, ledgers.record("gala").mark) == (0, 0)
        assert tick.at < record.since <= ledgers.now()
        held = grant(b, tick)
        assert held.previous == 0
        b.settle([Settlement(held, skipped(Reason.BEFORE_REGISTRATION))])
        assert claim(a, tick).verdict is Verdict.SETTLED
        assert ledgers.totals() == {"skipped:before_registration": 1}

    def test_that_is_known_stays_as_it_is(self, ledgers, a):
        record = register(a, "gala")
        assert register(a, "gala", once=True) == record
        assert register(a, "gala", again=True, once=True).mark == record.mark

    def test_is_over_once_it_was_sent_whatever_is_deployed_or_lost(self, ledgers, a, b):
        register(a, "gala", "once:1", once=True)
        tick = Tick("gala", ledgers.now())
        a.settle([Settlement(grant(a, tick), SENT)])
        ledgers.restart()
        for node in (a, b):
            join(node)
        for change in ({}, {"again": True}, {"fingerprint": "once:2"}):
            assert register(b, "gala", **{"fingerprint": "once:1", **change}, once=True)
            assert claim(b, tick).verdict is Verdict.SETTLED
        ledgers.flush()
        join(a, [Memory("gala", tick.at, closed=tick.at, sure=tick.at, runs=1)])
        join(b)
        assert register(b, "gala", "once:1", once=True).mark == tick.at
        assert claim(b, tick).verdict is Verdict.SETTLED

    def test_to_come_is_still_to_come_after_a_loss_of_data(self, ledgers, a):
        record = register(a, "gala", "once:1", once=True)
        ledgers.flush()
        told = a.recover(Testimony([Memory("gala", 0, record.since, "once:1")]))
        assert told == Recovery(0, lost=["marks", "open", "grants", "paused", "entries"])
        assert register(a, "gala", "once:1", once=True) == record
        assert claim(a, Tick("gala", ledgers.now())).verdict is Verdict.GRANTED

    def test_that_was_lost_with_all_who_knew_it_is_not_sent_again(self, ledgers, a):
        tick = Tick("gala", ledgers.now())
        register(a, "gala", once=True)
        a.settle([Settlement(grant(a, tick), SENT)])
        ledgers.flush()
        join(a)
        ledgers.pass_time(1)
        record = register(a, "gala", once=True)
        assert grant(a, tick).previous == 0
        assert record.since > tick.at, "so it is skipped as before registration"

    def test_in_doubt_is_its_tick_and_nothing_before_it(self, ledgers, a, b):
        record = register(a, "gala", once=True)
        ledgers.pass_time(MOMENT)
        tick = Tick("gala", ledgers.now())
        grant(a, tick)
        ledgers.restart()
        told = b.recover(Testimony([Memory("gala", tick.at, closed=tick.at)]))
        assert told.in_doubt == [tick]
        assert told.doubts == [Doubt("gala", 0, tick.at)]
        assert b.resolve({told.doubts[0]: [tick.at]}) == []
        assert push(b) == Recovery(0)
        ledgers.flush()
        (doubt,) = b.recover(Testimony([Memory("gala", tick.at, record.since)])).doubts
        assert doubt == Doubt("gala", record.since, tick.at)

    def test_is_claimed_anew_once_an_operator_sets_its_mark_back(self, ledgers, a):
        tick = Tick("gala", ledgers.now())
        register(a, "gala")
        assert claim(a, tick).verdict is Verdict.SETTLED
        a.repair({"gala": 0}, "ann@ops", "it had no mark to wait for")
        join(a, [Memory("gala", 0)])
        assert grant(a, tick).previous == 0
        assert ledgers.record("gala").since == 0

    def test_that_runs_on_start_has_its_instant_counted_with_that(self, ledgers, a):
        record = register(a, "gala", once=True, run_on_start=True)
        assert grant(a, Tick("gala", record.mark)).previous == 0


class TestAnEntryThatWasMissing:
    """Nodes lived and none of them had it: a deploy brings it back."""

    def test_catches_up_nothing(self, ledgers):
        node = ledgers.node()
        before = register(node, "report")
        nodes_lived_without_it(ledgers)
        after = register(node, "report")
        assert after.since > before.since
        assert after.mark == before.mark

    def test_is_not_missing_while_no_node_lives(self, ledgers):
        before = register(ledgers.node(), "report")
        ledgers.set_present("report", ledgers.now() - MAY_MISS - MINUTE)
        assert register(ledgers.node(), "report") == before

    def test_is_not_missing_while_a_node_attends_to_it(self, ledgers):
        node = ledgers.node()
        before = register(node, "report")
        nodes_lived_without_it(ledgers)
        node.attend(["report"])
        assert register(node, "report") == before

    def test_is_not_judged_where_nothing_is_known_of_it(self, ledgers):
        node = ledgers.node()
        push(node, [Memory("report", ledgers.now() - MINUTE, 5, "every µs", sure=ledgers.now())])
        ledgers.set_heartbeat("other", ledgers.now())
        assert register(node, "report").since == 5

    def test_is_not_judged_by_a_heartbeat_of_a_clock_that_was_set_back(self, ledgers):
        node = ledgers.node()
        before = register(node, "report")
        ledgers.set_heartbeat("dead", ledgers.now() + 60 * MINUTE)
        assert register(node, "report") == before


def nodes_lived_without_it(ledgers):
    ledgers.set_present("report", ledgers.now() - MAY_MISS - MINUTE)
    ledgers.set_heartbeat("other", ledgers.now())
    ledgers.pass_time(1)


class TestAStoredEntryWhoseChangeACopyLacks:
    def test_loses_nothing_that_was_due_since_the_change(self, ledgers, a):
        record = register(a, "tidy", "daily")
        changed = record.since + 1
        a.restore([Change(Kind.ENTRY, "tidy", changed, b"%d {}" % changed)])
        ledgers.pass_time(MOMENT)
        (record,) = a.register([Registration("tidy", "hourly", revision=changed)])
        assert record.since == changed

    @pytest.mark.parametrize(("ago", "counts"), [(3 * SECOND, True), (2 * MINUTE, False)])
    def test_counts_from_its_storing_if_its_record_is_gone_and_that_was_just_now(
        self, ledgers, a, ago, counts
    ):
        before = ledgers.now()
        at = before - ago
        a.restore([Change(Kind.ENTRY, "tidy", at, b"%d {}" % at)])
        (record,) = a.register([Registration("tidy", "daily", revision=at)])
        assert record.mark == record.since
        assert (record.since == at) if counts else (record.since >= before)


def test_a_stored_entry_does_not_go_missing_however_long_nobody_registers_it(ledgers, a):
    op = ledgers.operator()
    revision = stored(op)
    before = ledgers.record("tidy")
    ledgers.set_present("tidy", ledgers.now() - MAY_MISS - MINUTE)
    a.claim([])  # it lives
    (record,) = a.register([Registration("tidy", before.fingerprint, revision=revision)])
    assert record == before
