"""The judge of steered entries: each thing that must not be is found, and nothing else."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ticks import SECOND, Tick
from support.account import Books
from support.collector import Arrival
from support.deeds import BEGINS, RETURNED, Deed, Kind, Moment, Terms, lives_of
from support.passages import Passage
from support.steered_judge import Findings, judge_books, judge_messages

NAMESPACE = "tests"
START = 1_800_000_000 * SECOND
CALL = SECOND // 100


class Run:
    """An entry that is due every second, added at the start; seconds count from there."""

    def __init__(self):
        self.deeds, self.arrivals, self.passages, self.mark = [], [], [], START

    def do(self, kind, at, version=0, schedule=1.0, **more):
        """Do something that returns a moment later, with its marks in the queue."""
        begins = START + round(at * SECOND)
        terms = Terms(schedule, schedule, "all", version) if version else None
        deed = Deed(len(self.deeds), kind, "a", Moment(begins, begins + CALL), terms=terms, **more)
        self.deeds.append(deed)
        for when in (BEGINS, RETURNED):
            self.arrivals.append(Arrival(None, deed.mark(when), 0, begins))

    def come(self, second, version=1, fence=None, task_id=None):
        """Have the message of a tick come, granted at an instant."""
        tick = Tick("a", START + round(second * SECOND))
        fence = tick.at if fence is None else START + round(fence * SECOND)
        headers = {"redlock_fence": fence, "argsrepr": f"({version},)"}
        own = task_id or tick.task_id(NAMESPACE)
        self.arrivals.append(Arrival(tick, own, 1, fence + CALL, headers=headers))
        self.passages.append(Passage("a", tick.at, self.mark, "sent", 0))
        self.mark = max(self.mark, tick.at)

    def skip(self, upto, counted, reason="paused", deed="resumed"):
        """Have the history tell that so many ticks ended unsent, up to an instant."""
        at = START + round(upto * SECOND)
        passed = f"{reason} {counted}" if counted else ""
        self.passages.append(Passage("a", at, self.mark, deed, counted, passed))
        self.mark = max(self.mark, at)

    def faults(self, ends=20.5):
        found, end = Findings(), START + round(ends * SECOND)
        lives = lives_of(self.deeds, {}, end)
        judge_messages(self.arrivals, self.deeds, lives, NAMESPACE, found)
        totals = {"sent": sum(each.outcome == "sent" for each in self.passages)}
        for each in self.passages:
            if each.counted:
                name = f"skipped:{each.passed.split()[0]}"
                totals[name] = totals.get(name, 0) + each.counted
        books = Books({"a": self.mark}, {}, frozenset(), totals)
        judge_books(self.arrivals, lives, self.passages, books, end, found)
        return set(found.faults)


@pytest.fixture
def run():
    run = Run()
    run.do(Kind.ADD, 0.5, version=1)
    return run


def come_all(run, first, last, **more):
    for second in range(first, last + 1):
        run.come(second, **more)


def test_a_run_in_which_all_came_has_no_fault(run):
    come_all(run, 1, 20)
    assert run.faults() == set()


def test_what_comes_twice_or_under_another_id_is_found(run):
    come_all(run, 1, 20)
    run.come(5)
    assert "doubled" in run.faults()
    run.arrivals[-1] = Arrival(
        Tick("a", START + 21 * SECOND),
        "other",
        1,
        START + 21 * SECOND,
        headers={"redlock_fence": START + 21 * SECOND, "argsrepr": "(1,)"},
    )
    assert "other id" in run.faults()


def test_what_was_granted_before_its_instant_is_found(run):
    come_all(run, 1, 19)
    run.come(20, fence=19.9)
    assert run.faults() == {"early"}


def test_what_never_came_and_is_not_counted_is_found(run):
    come_all(run, 1, 9)
    come_all(run, 11, 20)
    assert run.faults() == {"lost", "not sent in calm", "not accounted for"}


def test_what_lies_behind_a_pause_that_had_returned_is_found(run):
    come_all(run, 1, 10)
    run.do(Kind.PAUSE, 10.5)
    run.come(11)
    run.do(Kind.RESUME, 20.2)
    run.skip(20.2, 9)
    assert run.faults() == {"after pause"}


def test_a_pause_that_forgets_what_was_due_is_no_fault(run):
    come_all(run, 1, 10)
    run.do(Kind.PAUSE, 10.5)
    run.do(Kind.RESUME, 15.5)
    run.skip(15.5, 5)
    come_all(run, 16, 20)
    assert run.faults() == set()


def test_what_was_due_within_such_a_pause_and_came_after_it_is_found(run):
    come_all(run, 1, 10)
    run.do(Kind.PAUSE, 10.5)
    run.do(Kind.RESUME, 15.5)
    run.come(14, fence=15.6)
    run.skip(15.5, 4)
    come_all(run, 16, 20)
    assert "of within a pause" in run.faults()


def test_what_is_caught_up_after_a_pause_is_no_fault(run):
    come_all(run, 1, 10)
    run.do(Kind.PAUSE, 10.5)
    run.do(Kind.RESUME, 15.5, catch_up=True)
    come_all(run, 11, 15, fence=15.6)
    come_all(run, 16, 20)
    assert run.faults() == set()


def test_what_comes_after_a_pause_that_ended_by_itself_is_no_fault(run):
    come_all(run, 1, 10)
    run.do(Kind.PAUSE, 10.5, until=START + 13 * SECOND)
    run.skip(13, 3)
    come_all(run, 14, 20)
    assert run.faults() == set()
    run.come(13, fence=12.5)
    assert "after pause" in run.faults()


def test_what_comes_after_a_removal_is_found(run):
    come_all(run, 1, 10)
    run.do(Kind.REMOVE, 10.5)
    assert run.faults() == set()
    run.come(11)
    assert "after remove" in run.faults()


def test_what_was_due_before_an_entry_was_added_again_is_found(run):
    come_all(run, 1, 9)
    run.do(Kind.REMOVE, 10.5)
    run.skip(10.5, 1, "removed", "removed")
    run.do(Kind.ADD, 12.5, version=2)
    run.mark = START + 13 * SECOND
    come_all(run, 13, 20, version=2)
    assert run.faults() == set()
    run.come(10, version=2, fence=13)
    assert "of before a change" in run.faults()


def test_arguments_that_were_not_in_force_any_more_are_found(run):
    come_all(run, 1, 10)
    run.do(Kind.EDIT, 10.5, version=2)
    come_all(run, 11, 19, version=2)
    run.come(20, version=1)
    assert run.faults() == {"arguments not in force"}


def test_a_grant_of_before_a_change_may_be_sent_after_it(run):
    come_all(run, 1, 9)
    run.do(Kind.EDIT, 10.001, version=2)
    run.come(10, version=1, fence=10.0005)
    come_all(run, 11, 20, version=2)
    assert run.faults() == set()


def test_a_tick_of_a_timetable_that_was_not_in_force_is_found(run):
    come_all(run, 1, 10)
    run.do(Kind.EDIT, 10.5, version=2, schedule=2.0)
    for second in range(12, 21, 2):
        run.come(second, version=2)
    assert run.faults() == set()
    run.come(17, version=2)
    assert "off grid" in run.faults()


def test_more_skipped_than_was_due_is_found(run):
    come_all(run, 1, 10)
    run.do(Kind.PAUSE, 10.5)
    run.do(Kind.RESUME, 15.5)
    run.skip(15.5, 7)
    come_all(run, 16, 20)
    assert run.faults() == {"not accounted for"}
