"""How often an entry with a limit runs: over all nodes, restarts, deploys and losses of data."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ledger import (
    Answer,
    Ask,
    Closing,
    Registration,
    Release,
    Settlement,
    Verdict,
)
from celery_redlock_beat.ledger.testimony import Memory, Testimony
from celery_redlock_beat.ticks import IN_DOUBT, SENT, Reason, Tick, skipped
from ledger.places import (
    HOLD_DOWN,
    MINUTE,
    MOMENT,
    all_at_once,
    changes_nothing,
    claim,
    due_ticks,
    grant,
    join,
    message,
    messages,
    patient_nodes,
    push,
    register,
)

LATE = skipped(Reason.GRACE)


def send(node, tick, limit):
    held = grant(node, tick, limit)
    assert node.enqueue(held, [message(tick)], {}) is Closing.DONE


def skip(node, tick, limit=None):
    assert node.settle([Settlement(grant(node, tick, limit), LATE)]) == [Closing.DONE]


class TestAnEntryWithALimit:
    def test_runs_so_often_and_is_finished_then_for_every_node(self, ledgers, a, b):
        first, second, third, fourth = due_ticks(ledgers, a, count=4)
        send(a, first, limit=2)
        send(b, second, limit=2)
        for node, tick in ((a, third), (b, third), (a, fourth)):
            answer = changes_nothing(ledgers, lambda n=node, t=tick: claim(n, t, limit=2))
            assert answer == Answer(tick, Verdict.FINISHED, second.at, runs=2)
        assert ledgers.record("tidy").runs == 2
        assert messages(ledgers) == {first: 1, second: 1}

    def test_stays_finished_over_restarts_and_deploys(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        send(a, first, limit=1)
        register(a, "tidy", "of another deploy")
        register(a, "tidy", "of another deploy", again=True)
        ledgers.restart()
        late = join(ledgers.node(joined=False))
        assert register(late, "tidy", run_on_start=True).runs == 1
        assert claim(late, second, limit=1).verdict is Verdict.FINISHED

    def test_goes_on_once_it_may_run_more_often(self, ledgers, a):
        first, second, third = due_ticks(ledgers, a, count=3)
        send(a, first, limit=1)
        assert claim(a, second, limit=1).verdict is Verdict.FINISHED
        send(a, second, limit=2)
        assert claim(a, third, limit=2).verdict is Verdict.FINISHED
        assert claim(a, third).verdict is Verdict.GRANTED

    def test_has_what_it_ran_before_it_had_a_limit_counted(self, ledgers, a):
        first, second, third = due_ticks(ledgers, a, count=3)
        send(a, first, limit=None)
        send(a, second, limit=None)
        assert claim(a, third, limit=2).verdict is Verdict.FINISHED

    def test_is_told_so_only_of_ticks_that_could_be_granted_else(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        early = Tick("tidy", ledgers.now() + MINUTE)
        send(a, first, limit=1)
        assert claim(a, first, limit=1).verdict is Verdict.SETTLED
        assert claim(a, early, limit=1).verdict is Verdict.EARLY
        assert claim(a, second, expected=5, limit=1).verdict is Verdict.SETTLED
        ledgers.pause("tidy")
        assert claim(a, second, limit=1).verdict is Verdict.PAUSED

    def test_runs_no_more_often_though_eight_nodes_claim_all_at_once(self, ledgers):
        nodes = [ledgers.node() for _ in range(8)]
        ticks = due_ticks(ledgers, nodes[0], count=100)

        def send_all(node):
            for tick in ticks:
                held = claim(node, tick, limit=5).grant
                if held:
                    assert node.enqueue(held, [message(tick)], {}) is Closing.DONE
            return claim(node, Tick("tidy", ticks[-1].at), limit=5).verdict

        assert set(all_at_once(nodes, send_all)) <= {Verdict.FINISHED, Verdict.HELD}
        assert len(messages(ledgers)) == ledgers.record("tidy").runs == 5


class TestItsTicks:
    """They are granted one after the other: each of them may still be skipped."""

    def test_wait_for_the_one_that_is_open(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        held = grant(a, first, limit=5)
        answer = changes_nothing(ledgers, lambda: claim(b, second, limit=5))
        assert (answer.verdict, answer.mark, answer.runs) == (Verdict.HELD, first.at, 1)
        assert 0 < answer.wait <= MINUTE
        assert claim(a, second, limit=5).verdict is Verdict.HELD, "also for its own node"
        a.settle([Settlement(held, SENT)])
        assert claim(b, second, limit=5).verdict is Verdict.GRANTED

    def test_wait_no_longer_once_its_lease_is_over_and_it_can_be_adopted(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        grant(a, first, limit=1)
        ledgers.set_lease(first, ledgers.now() - 1)
        assert claim(b, second, limit=1).wait == 0
        assert grant(b, first, limit=1).attempt == 2
        assert claim(b, first, limit=1).verdict is Verdict.MINE

    def test_are_granted_side_by_side_where_there_is_no_limit(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        grant(a, first)
        grant(a, second)
        assert ledgers.record("tidy").runs == 2

    def test_are_adopted_also_where_there_may_be_no_more(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        send(a, first, limit=5)
        grant(a, second, limit=5)
        ledgers.set_lease(second, ledgers.now())
        assert grant(b, second, limit=1).attempt == 2

    def test_wait_for_one_that_the_mark_was_raised_over(self, ledgers, a):
        first, second, third = due_ticks(ledgers, a, count=3)
        held = grant(a, first, limit=1)
        a.repair({"tidy": second.at}, "ann@ops", "as a resume does")
        join(a, [Memory("tidy", second.at)])
        (of_another,) = due_ticks(ledgers, a, "other")
        send(a, of_another, limit=1)
        ledgers.pass_time(1)
        asked = [Tick("other", of_another.at + 1), third]
        told = a.claim([Ask(tick, tick.at, limit=1) for tick in asked]).answers
        assert [each.verdict for each in told] == [Verdict.FINISHED, Verdict.HELD]
        a.settle([Settlement(held, LATE)])
        send(a, third, limit=1)


class TestARun:
    def test_is_counted_with_the_grant_so_that_none_is_given_twice(self, ledgers, a):
        first, second, third = due_ticks(ledgers, a, count=3)
        answer = claim(a, first, limit=2)
        assert answer.runs == ledgers.record("tidy").runs == 1
        a.repair({"tidy": second.at}, "ann@ops", "as a resume does")
        join(a, [Memory("tidy", second.at)])
        assert claim(a, third, limit=2).runs == 2

    def test_is_not_what_was_skipped(self, ledgers, a):
        first, second, third = due_ticks(ledgers, a, count=3)
        skip(a, first, limit=1)
        assert ledgers.record("tidy").runs == 0
        send(a, second, limit=1)
        assert claim(a, third, limit=1) == Answer(third, Verdict.FINISHED, second.at, runs=1)

    def test_is_what_an_attempt_before_may_have_sent(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        grant(a, first, limit=1)  # publishes, perhaps, and dies
        ledgers.set_lease(first, ledgers.now())
        skip(b, first, limit=1)
        assert claim(b, second, limit=1) == Answer(second, Verdict.FINISHED, first.at, runs=1)

    def test_is_not_what_was_given_back_untried_and_skipped_then(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        a.release([grant(a, first, limit=1)], 0, Release.UNTRIED)
        skip(b, first, limit=1)
        assert claim(b, second, limit=1).verdict is Verdict.GRANTED

    def test_is_given_back_once_though_the_reply_was_lost(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        send(a, first, limit=9)
        settlement = Settlement(grant(a, second, limit=9), LATE)
        for _ in range(2):
            a.settle([settlement])
        assert ledgers.record("tidy").runs == 1

    def test_is_not_forgotten_by_an_operator_who_sets_the_mark_back(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        send(a, first, limit=1)
        a.repair({"tidy": first.at - 1}, "ann@ops", "once more")
        join(a, [Memory("tidy", first.at - 1)])
        assert claim(a, second, limit=1) == Answer(second, Verdict.FINISHED, first.at - 1, runs=1)
        assert claim(a, first, limit=1) == Answer(first, Verdict.SETTLED, first.at, runs=1)

    def test_is_what_every_answer_with_a_mark_tells(self, ledgers, a, b):
        first, second, third = due_ticks(ledgers, a, count=3)
        send(a, first, limit=None)
        grant(a, second)
        early = Tick("tidy", ledgers.now() + MINUTE)
        asks = [Ask(tick, tick.at) for tick in (first, second, early)]
        answers = b.claim(asks).answers
        (record,) = b.register([Registration("tidy", "every µs")])
        ledgers.pause("tidy")
        assert {each.runs for each in [*answers, record, claim(a, third)]} == {2}


class TestAfterALossOfData:
    @pytest.fixture
    def patient(self, ledgers):
        return patient_nodes(ledgers)

    def test_runs_come_back_with_the_mark(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        send(a, first, limit=1)
        ledgers.flush()
        join(a, [Memory("tidy", first.at, closed=first.at, sure=first.at, runs=1)])
        assert ledgers.record("tidy").runs == 1
        answer = claim(join(b), second, limit=1)
        assert answer == Answer(second, Verdict.FINISHED, first.at, runs=1)

    def test_what_the_recovery_closes_is_among_them(self, ledgers, a):
        tick, last = due_ticks(ledgers, a, count=2)
        held = grant(a, tick)
        for told in (SENT, IN_DOUBT, LATE):
            ledgers.flush()
            join(a, [Memory("tidy", tick.at, runs=1)], settled=[Settlement(held, told)])
            assert ledgers.kept()[tick] == told.text
            assert ledgers.record("tidy").runs == 1
        assert claim(a, last, limit=1).verdict is Verdict.FINISHED

    def test_a_doubt_is_among_them(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        grant(a, first)
        ledgers.flush()
        join(a, [Memory("tidy", first.at, sure=first.at - 1, runs=1)])
        assert ledgers.totals() == {IN_DOUBT.text: 1}
        assert claim(a, second, limit=1).verdict is Verdict.FINISHED

    def test_a_grant_that_is_reopened_is_among_them(self, ledgers, a):
        first, second = due_ticks(ledgers, a, count=2)
        held = grant(a, first, limit=1)
        ledgers.flush()
        join(a, [Memory("tidy", first.at, closed=first.at - 1, runs=1)], held=[held])
        assert claim(a, second, limit=1).verdict is Verdict.HELD
        assert a.enqueue(held, [message(first)], {}) is Closing.DONE
        assert claim(a, second, limit=1) == Answer(second, Verdict.FINISHED, first.at, runs=1)

    def test_the_most_that_anyone_was_told_holds_in_whatever_order(self, ledgers, patient):
        mark = ledgers.now()
        told = [Memory("tidy", mark - 5, runs=2), Memory("tidy", mark, runs=3)]
        for memories in (told, told[::-1]):
            ledgers.flush()
            for node, memory in zip(patient, memories, strict=False):
                node.recover(Testimony([memory]))
            assert ledgers.record("tidy").runs == 3
            ledgers.pass_time(HOLD_DOWN)
            push(patient[0])

    def test_they_come_back_though_two_keys_go_one_after_the_other(self, ledgers, patient):
        node, memory = patient[0], Memory("tidy", ledgers.now(), runs=3)
        push(node, [memory])
        ledgers.lose_open()
        push(node, [memory])
        ledgers.lose_marks()
        push(node, [memory])
        assert ledgers.record("tidy").runs == 3

    def test_a_copy_that_has_the_mark_keeps_its_own(self, ledgers, a, b):
        # The tick was skipped after another node was told that it is open.
        (tick,) = due_ticks(ledgers, a)
        held = grant(a, tick)
        assert claim(b, tick).runs == 1
        a.settle([Settlement(held, LATE)])
        ledgers.restart()
        for _ in range(2):
            join(b, [Memory("tidy", tick.at, closed=tick.at, runs=1)])
        assert ledgers.record("tidy").runs == 0

    def test_a_copy_that_lacks_the_mark_takes_what_was_told_with_it(self, ledgers, a, b):
        first, second, third = due_ticks(ledgers, a, count=3)
        send(a, first, limit=2)
        old = ledgers.snapshot()
        send(a, second, limit=2)
        ledgers.restore(old)
        ledgers.restart()
        memory = Memory("tidy", second.at, closed=second.at, sure=second.at, runs=2)
        join(b, [memory])
        join(b, [memory])
        assert claim(b, third, limit=2) == Answer(third, Verdict.FINISHED, second.at, runs=2)

    def test_a_grant_whose_mark_was_lost_is_a_run(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        send(a, first, limit=1)
        ledgers.lose_marks()
        push(b)
        assert claim(b, first, limit=1) == Answer(first, Verdict.SETTLED, first.at, runs=1)
        assert claim(b, second, limit=1).verdict is Verdict.FINISHED

    def test_an_open_tick_whose_grant_was_lost_may_have_been_sent(self, ledgers, a, b):
        first, second = due_ticks(ledgers, a, count=2)
        grant(a, first, limit=1)
        ledgers.lose_grants()
        join(b)
        ledgers.set_lease(first, ledgers.now())
        skip(b, first, limit=1)
        assert claim(b, second, limit=1).verdict is Verdict.FINISHED

    def test_an_entry_that_nobody_remembers_begins_anew(self, ledgers, a):
        send(a, *due_ticks(ledgers, a), limit=1)
        ledgers.flush()
        join(a)
        assert register(a, "tidy").runs == 0
        ledgers.pass_time(MOMENT)
        assert claim(a, Tick("tidy", ledgers.now()), limit=1).verdict is Verdict.GRANTED
