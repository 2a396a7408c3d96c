"""What nodes vouch for after a loss of data: settled, held and tried; and what is in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from celery_redlock_beat.errors import LedgerRecovering
from celery_redlock_beat.ledger import Closing, Settlement, Verdict
from celery_redlock_beat.ledger.testimony import Doubt, Memory, Recovery, Testimony
from celery_redlock_beat.ticks import IN_DOUBT, SECOND, SENT, Reason, Tick, skipped
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
DOUBTFUL = "in_doubt:data_loss"


@pytest.fixture
def patient(ledgers):
    return patient_nodes(ledgers)


def vouch(node, *memories, **more) -> Recovery:
    return node.recover(Testimony(memories, **more))


class TestATickThatAnyoneKnowsSettled:
    def test_is_closed_where_the_copy_has_it_open(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        old = ledgers.snapshot()
        a.settle([Settlement(held, SENT)])
        ledgers.restore(old)
        ledgers.restart()
        join(b)
        told = [Settlement(held, SENT, {Reason.SUPERSEDED: 2})]
        join(a, [Memory("tidy", tick.at)], settled=told)
        assert ledgers.open_ticks() == {}
        assert ledgers.totals() == {"sent": 1, "skipped:superseded": 2}
        assert claim(b, tick).verdict is Verdict.SETTLED

    def test_is_counted_once_however_often_it_is_told(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        a.settle([Settlement(held, skipped(Reason.GRACE))])
        ledgers.restart()
        for node in (a, b, a):
            join(node, settled=[Settlement(held, IN_DOUBT)])
        assert ledgers.totals() == {"skipped:grace": 1}

    def test_is_closed_where_the_copy_never_heard_of_it(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        ledgers.flush()
        told = [Settlement(held, SENT, {Reason.SUPERSEDED: 2})]
        join(a, [Memory("tidy", tick.at, closed=tick.at, sure=tick.at)], settled=told)
        assert ledgers.totals() == {"sent": 1}, "what it passed over is in doubt, or sure"
        assert claim(join(b), tick).verdict is Verdict.SETTLED

    def test_is_closed_in_whatever_order_nodes_tell(self, ledgers, patient):
        first, second, third = patient
        (tick,) = due_ticks(ledgers, first)
        held = grant(first, tick)
        for order in ((first, second), (second, first)):
            ledgers.flush()
            for node in order:
                settled = [Settlement(held, SENT)] if node is first else []
                vouch(node, settled=settled, held=[] if node is first else [held])
            assert ledgers.kept()[tick] == "sent"
            assert ledgers.open_ticks() == {}
        third.recover(Testimony())

    def test_counts_what_it_passed_over_once_though_another_node_reopened_it(
        self, ledgers, patient
    ):
        first, second, third = patient
        ticks = due_ticks(ledgers, first, count=3)
        held = grant(first, ticks[2])
        for order in ((first, second), (second, first)):
            ledgers.flush()
            for node in order:
                settled = [Settlement(held, SENT, {Reason.SUPERSEDED: 2})] if node is first else []
                more = {"settled": settled, "held": [] if node is first else [held]}
                assert vouch(node, Memory("tidy", ticks[2].at), **more).wait > 0
            ledgers.pass_time(HOLD_DOWN)
            (doubt,) = third.recover(Testimony()).doubts
            third.resolve({doubt: [tick.at for tick in ticks]})
            assert ledgers.totals() == {"sent": 1, DOUBTFUL: 2}

    def test_loses_no_count_of_what_an_open_grant_of_it_had_passed_over(self, ledgers, a, b):
        ticks = due_ticks(ledgers, a, count=3)
        held = grant(a, ticks[2])
        ledgers.restart()
        mine = replace(held, previous=ticks[0].at)
        told = vouch(b, Memory("tidy", ticks[2].at), settled=[Settlement(mine, SENT)])
        (doubt,) = told.doubts
        assert doubt == Doubt("tidy", held.previous, ticks[2].at)
        assert b.resolve({doubt: [tick.at for tick in ticks]}) == ticks[:2]
        assert vouch(b) == Recovery(0)

    def test_its_late_message_finds_it_closed(self, ledgers, a):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        ledgers.restart()
        join(a, settled=[Settlement(held, IN_DOUBT)])
        assert a.enqueue(held, [message(tick)], {}) is Closing.ALREADY
        assert ledgers.queue() == []

    def test_is_closed_if_it_lies_before_what_a_node_knows_to_be_closed(self, ledgers, a, b):
        one, two = due_ticks(ledgers, a, count=2)
        grant(a, one)
        old = ledgers.snapshot()
        ledgers.restore(old)
        ledgers.restart()
        told = vouch(b, Memory("tidy", two.at, closed=one.at))
        assert told.in_doubt == [one]
        assert ledgers.open_ticks() == {}
        assert ledgers.totals() == {DOUBTFUL: 1}


class TestAGrantThatWasNeverTried:
    def test_is_reopened_under_its_own_fence(self, ledgers, patient):
        first, second, third = patient
        (tick,) = due_ticks(ledgers, first)
        held = grant(first, tick)
        ledgers.flush()
        vouch(first, Memory("tidy", tick.at), held=[held])
        vouch(second)
        third.recover(Testimony())
        assert ledgers.open_ticks().keys() == {tick}
        assert ledgers.record("tidy").mark == tick.at

    def test_can_be_sent_and_is_not_granted_meanwhile(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = replace(grant(a, tick), previous=tick.at - 3, waited=True)
        ledgers.flush()
        a_pushes_first(ledgers, a, held)
        join(b)
        assert claim(b, tick).verdict is Verdict.HELD
        assert claim(a, tick).grant == held
        assert a.enqueue(held, [message(tick)], {}) is Closing.DONE
        assert len(ledgers.queue()) == 1

    def test_is_told_if_it_is_not_in_force(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        slow = grant(a, tick)
        ledgers.set_lease(tick, ledgers.now())
        quick = grant(b, tick)
        ledgers.restart()
        assert vouch(a, held=[slow]).not_in_force == [tick]
        assert vouch(b, held=[quick]).not_in_force == []

    def test_stays_with_the_higher_fence(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        slow = grant(a, tick)
        ledgers.set_lease(tick, ledgers.now())
        quick = grant(b, tick)
        for order in ((slow, quick), (quick, slow)):
            ledgers.flush()
            join(a, held=order)
            assert a.settle([Settlement(slow, SENT)]) == [Closing.STALE]
        assert b.epoch != a.epoch
        assert join(b).settle([Settlement(quick, SENT)]) == [Closing.DONE]

    def test_is_not_reopened_once_the_recovery_is_over(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        ledgers.flush()
        join(b, [Memory("tidy", tick.at)])
        assert ledgers.kept()[tick] == DOUBTFUL
        join(a, [Memory("tidy", tick.at)], held=[held])
        assert ledgers.open_ticks() == {}
        assert a.enqueue(held, [message(tick)], {}) is Closing.STALE

    def test_has_a_lease_no_longer_than_any(self, ledgers, a):
        (tick,) = due_ticks(ledgers, a)
        held = replace(grant(a, tick), deadline=ledgers.now() + HOUR)
        ledgers.flush()
        a_pushes_first(ledgers, a, held)
        assert ledgers.open_ticks()[tick] <= ledgers.now() + MINUTE


def a_pushes_first(ledgers, node, held):
    join(node, [Memory("tidy", held.tick.at, closed=held.tick.at - 1)], held=[held])


class TestWhatIsInDoubt:
    def test_lies_between_the_mark_of_the_copy_and_the_one_that_is_remembered(self, ledgers, a):
        ticks = due_ticks(ledgers, a, count=6)
        grant(a, ticks[1])
        old = ledgers.snapshot()
        ledgers.restore(old)
        ledgers.restart()
        told = vouch(a, Memory("tidy", ticks[5].at))
        assert told.doubts == [Doubt("tidy", ticks[1].at, ticks[5].at)]
        assert told.wait == 0
        with pytest.raises(LedgerRecovering):
            a.claim([])
        doubted = a.resolve({told.doubts[0]: [tick.at for tick in ticks[2:]]})
        assert doubted == ticks[2:]
        assert vouch(a) == Recovery(0)
        assert ledgers.totals() == {DOUBTFUL: 4}
        assert set(ledgers.open_ticks()) == {ticks[1]}
        assert claim(a, ticks[3]).verdict is Verdict.SETTLED

    def test_is_not_what_someone_is_sure_of_or_holds(self, ledgers):
        first, second, third = (ledgers.node(hold_down=MOMENT, joined=False) for _ in range(3))
        push(first)
        ledgers.pass_time(MOMENT)
        for node in (first, second, third):
            join(node)
        ticks = due_ticks(ledgers, first, count=6)
        held = replace(grant(first, ticks[5]), previous=ticks[4].at)
        ledgers.flush()
        vouch(first, Memory("tidy", ticks[5].at, closed=ticks[2].at, sure=ticks[2].at), held=[held])
        vouch(second, Memory("tidy", ticks[1].at, closed=ticks[1].at, sure=ticks[1].at))
        ledgers.pass_time(MOMENT)
        told = third.recover(Testimony())
        assert told.doubts == [Doubt("tidy", ticks[2].at, ticks[5].at)]
        doubted = third.resolve({told.doubts[0]: [tick.at for tick in ticks[3:]]})
        assert doubted == ticks[3:5]

    def test_is_not_what_an_open_tick_passed_over(self, ledgers, a):
        ticks = due_ticks(ledgers, a, count=3)
        held = grant(a, ticks[2])
        ledgers.flush()
        told = vouch(a, Memory("tidy", ticks[2].at, sure=held.previous), held=[held])
        assert a.resolve({told.doubts[0]: [tick.at for tick in ticks]}) == []
        join(a)
        assert a.settle([Settlement(held, SENT, {Reason.SUPERSEDED: 2})]) == [Closing.DONE]
        assert ledgers.totals() == {"sent": 1, "skipped:superseded": 2}

    def test_is_what_a_tick_passed_over_that_is_known_closed(self, ledgers, a, b):
        ticks = due_ticks(ledgers, a, count=3)
        grant(a, ticks[2])
        ledgers.restart()
        told = vouch(b, Memory("tidy", ticks[2].at, closed=ticks[2].at))
        assert told.in_doubt == [ticks[2]]
        (doubt,) = told.doubts
        assert b.resolve({doubt: [tick.at for tick in ticks]}) == ticks[:2]
        assert vouch(b) == Recovery(0)

    def test_is_not_what_lies_before_the_entry_was_known_or_over_an_hour_ago(self, ledgers, a):
        now = ledgers.now()
        ledgers.flush()
        told = vouch(a, Memory("new", now, since=now - 10), Memory("old", now, since=5))
        new, old = sorted(told.doubts, key=lambda doubt: doubt.entry)
        assert new == Doubt("new", now - 10, now)
        assert old.floor >= now - HOUR

    def test_is_nothing_after_a_restart_without_a_loss(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        a.enqueue(held, [message(tick)], {})
        ledgers.restart()
        assert vouch(a, Memory("tidy", tick.at)) == Recovery(0)
        assert vouch(b, Memory("tidy", tick.at - 1)) == Recovery(0)
        assert ledgers.totals() == {"sent": 1}

    def test_is_counted_for_a_node_that_comes_late(self, ledgers, a, b):
        one, two = due_ticks(ledgers, a, count=2)
        ledgers.flush()
        join(a, [Memory("tidy", one.at, sure=one.at)])
        told = vouch(b, Memory("tidy", two.at, sure=one.at))
        assert told.doubts == [Doubt("tidy", one.at, two.at)]
        assert b.resolve({told.doubts[0]: [two.at]}) == [two]
        assert vouch(b) == Recovery(0)
        assert ledgers.totals() == {DOUBTFUL: 1}

    def test_is_counted_once_by_whoever_ends_the_recovery(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        ledgers.flush()
        (doubt,) = vouch(a, Memory("tidy", tick.at, sure=tick.at - 1)).doubts
        assert vouch(b).doubts == [doubt]
        assert a.resolve({doubt: [tick.at]}) == [tick]
        assert b.resolve({doubt: [tick.at]}) == []
        assert ledgers.totals() == {DOUBTFUL: 1}


class TestWhatIsClosedAboveAnOpenTick:
    def test_is_closed_and_the_open_one_is_not(self, ledgers, a, b):
        one, two, three = due_ticks(ledgers, a, count=3)
        for tick in (one, two, three):
            grant(a, tick)
        ledgers.restart()
        told = vouch(b, Memory("tidy", three.at, closed=three.at, still_open=(one.at, three.at)))
        assert told.in_doubt == [two]
        push(b)
        assert set(ledgers.open_ticks()) == {one, three}

    def test_is_closed_if_one_node_of_several_says_so(self, ledgers):
        first, second = (ledgers.node(hold_down=MOMENT, joined=False) for _ in range(2))
        push(first)
        ledgers.pass_time(MOMENT)
        join(first)
        join(second)
        one, two = due_ticks(ledgers, first, count=2)
        for tick in (one, two):
            grant(first, tick)
        second.claim([])  # so that it is waited for
        ledgers.restart()
        vouch(first, Memory("tidy", two.at, closed=two.at, still_open=(one.at,)))
        ledgers.pass_time(MOMENT)
        told = vouch(second, Memory("tidy", two.at, closed=two.at, still_open=(two.at,)))
        assert set(told.in_doubt) == {one, two}


class TestASecondLossDuringTheRecovery:
    def test_reckons_from_what_the_first_copy_had(self, ledgers):
        first, second = (ledgers.node(hold_down=MOMENT, joined=False) for _ in range(2))
        push(first)
        ledgers.pass_time(MOMENT)
        join(first)
        join(second)
        one, two = due_ticks(ledgers, first, count=2)
        ledgers.restart()
        assert vouch(first, Memory("tidy", two.at)).wait > 0  # raises the mark, and dies
        ledgers.restart()
        assert vouch(second).wait > 0
        ledgers.pass_time(MOMENT)
        (doubt,) = vouch(second).doubts
        assert second.resolve({doubt: [one.at, two.at]}) == [one, two]

    def test_takes_no_doubts_of_the_first_recovery(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        ledgers.flush()
        (doubt,) = vouch(a, Memory("tidy", tick.at, sure=tick.at - 1)).doubts
        ledgers.restart()
        push(b)
        assert a.resolve({doubt: [tick.at]}) == []


class TestWhatThisCopyHadClosedByItsOwnMark:
    """Its settled grants are swept after some minutes: then only the mark tells."""

    @pytest.fixture
    def swept(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        b.settle([])
        a.settle([Settlement(held, SENT)])
        ledgers.lose_grants()
        return held

    def test_is_not_counted_again(self, ledgers, a, swept):
        join(a, [Memory("tidy", swept.tick.at)], settled=[Settlement(swept, SENT)])
        assert ledgers.totals() == {"sent": 1}

    def test_is_not_reopened(self, ledgers, a, b, swept):
        told = vouch(b, Memory("tidy", swept.tick.at), held=[swept])
        assert told.not_in_force == [swept.tick]
        assert ledgers.open_ticks() == {}


class TestAKeyThatWasLost:
    @pytest.mark.parametrize("key", ["marks", "open", "grants", "pauses", "entries"])
    def test_is_noticed_at_once_and_told_by_its_name(self, ledgers, a, key):
        (tick,) = due_ticks(ledgers, a)
        grant(a, tick)
        getattr(ledgers, f"lose_{key}")()
        with pytest.raises(LedgerRecovering):
            a.claim([])
        assert vouch(a, Memory("tidy", tick.at, closed=tick.at - 1)).lost == [
            {"pauses": "paused"}.get(key, key)
        ]
        push(a)
        a.claim([])
        assert vouch(a).lost == []

    def test_the_open_ticks_are_found_again_among_the_grants(self, ledgers, a, b):
        (tick,) = due_ticks(ledgers, a)
        grant(a, tick)
        ledgers.lose_open()
        join(b)
        assert claim(b, tick).verdict is Verdict.HELD
        ledgers.set_lease(tick, ledgers.now())
        assert grant(b, tick).attempt == 2

    def test_an_empty_ledger_has_lost_them_all(self, ledgers, a):
        ledgers.flush()
        assert vouch(a).lost == ["marks", "open", "grants", "paused", "entries"]


class TestARepair:
    def test_sets_a_mark_back_and_nodes_forget_the_old_one(self, ledgers, a, b):
        record = register(a, "tidy")
        ahead = record.mark + HOUR // 2
        join(b, [Memory("tidy", ahead)])
        operator = join(ledgers.node(joined=False))
        (before, mark) = operator.repair({"tidy": record.mark}, "ann@ops", "clock")["tidy"]
        assert (before.startswith(f"{ahead} "), mark) == (True, record.mark)
        for node in (a, b):
            with pytest.raises(LedgerRecovering):
                node.claim([])
            told = vouch(node, Memory("tidy", ahead))
            assert told == Recovery(0, repaired={"tidy": record.mark})
            assert ledgers.record("tidy").mark == record.mark
        assert vouch(b, Memory("tidy", record.mark)) == Recovery(0)

    def test_leaves_an_audit_record(self, ledgers, a):
        register(a, "tidy")
        a.repair({"tidy": 5}, "ann@ops", "since I say so")
        (told,) = ledgers.audit()
        assert told["from"].endswith(" every µs")
        assert (told["who"], told["entry"], told["to"], told["why"]) == (
            "ann@ops",
            "tidy",
            "5",
            "since I say so",
        )

    def test_makes_an_entry_known_that_was_not(self, ledgers, a):
        assert a.repair({"tidy": 5}, "ann@ops", "") == {"tidy": ("", 5)}
        record = ledgers.record("tidy")
        assert (record.mark, record.since, record.fingerprint) == (5, 5, "")

    def test_without_a_mark_sets_it_to_the_servers_now(self, ledgers, a):
        register(a, "tidy")
        before = ledgers.now()
        ((_, mark),) = a.repair({"tidy": None}, "ann@ops", "").values()
        assert before <= mark == ledgers.record("tidy").mark <= ledgers.now()

    def test_frees_what_is_open_above_the_mark(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        for tick in (first, second):
            grant(a, tick)
        a.repair({"tidy": first.at}, "ann@ops", "")
        join(a, [Memory("tidy", first.at)])
        assert set(ledgers.open_ticks()) == {first}
        assert grant(a, second).attempt == 1

    def test_waits_for_the_end_of_a_recovery(self, ledgers, a):
        ledgers.restart()
        with pytest.raises(LedgerRecovering):
            a.repair({"tidy": 5}, "ann@ops", "")

    def test_of_one_entry_leaves_the_marks_of_others_to_the_nodes(self, ledgers, a):
        for entry in ("tidy", "other"):
            register(a, entry)
        mark = ledgers.record("other").mark + 1
        a.repair({"tidy": 5}, "ann@ops", "")
        late = ledgers.node(joined=False)
        told = vouch(late, Memory("tidy", mark), Memory("other", mark, sure=mark))
        assert told == Recovery(0, repaired={"tidy": 5})
        assert (ledgers.record("tidy").mark, ledgers.record("other").mark) == (5, mark)


def test_a_claim_names_the_open_ticks_unless_they_are_too_many(ledgers, a):
    ticks = due_ticks(ledgers, a, count=33)
    assert a.claim([]).open == {}
    for tick in ticks[:32]:
        grant(a, tick)
    assert a.claim([]).open == {tick: tick.at - 1 for tick in ticks[:32]}
    grant(a, ticks[32])
    assert a.claim([]).open is None


def test_a_doubt_of_very_many_ticks_is_resolved_in_parts(ledgers, a):
    now = ledgers.now()
    ledgers.flush()
    (doubt,) = vouch(a, Memory("tidy", now, since=now - 2500)).doubts
    instants = range(now - 2499, now + 1)
    assert a.resolve({doubt: instants}) == [Tick("tidy", at) for at in instants]
    assert vouch(a) == Recovery(0)
    assert ledgers.totals() == {DOUBTFUL: 2500}
