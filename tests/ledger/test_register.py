"""What the ledger answers to an entry, known or not."""

from __future__ import annotations

from celery_redlock_beat.ledger import MAY_MISS, Memory, Orphan, Registration, Verdict
from celery_redlock_beat.ticks import Tick
from ledger.places import MINUTE, MOMENT, claim, due_ticks, grant, join, push, register


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
