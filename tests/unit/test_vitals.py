"""What a node tells of itself, on a ledger in memory."""

import json

import pytest

from celery_redlock_beat.settings import Settings
from celery_redlock_beat.ticks import SECOND, SENT, Event, Reason, Tick, skipped
from celery_redlock_beat.vitals import LOOKED_BACK, MOST_NAMED, Vitals
from support.fleet import Fleet


class Patient:
    """A node whose vitals are looked at; time stands still until it is moved."""

    def __init__(self):
        self.fleet = Fleet()
        self.vitals = Vitals(Settings(), list, list)
        node = self.fleet.add().node
        node.run()
        self.vitals.begin(node, "enqueue")

    def comes_about(self, outcome, entry="a"):
        event = Event(Tick(entry, self.fleet.now), outcome, "t", "id", 1, 0, {})
        self.vitals.observe(event, "")

    def problems(self):
        self.fleet.advance(1)
        self.vitals.passed(0)
        return json.loads(self.vitals.tell())["problems"]


@pytest.fixture
def patient():
    return Patient()


def test_a_node_that_sends_what_is_due_has_no_problem(patient):
    patient.comes_about(SENT)
    assert patient.problems() == []


@pytest.mark.parametrize("reason", [Reason.ERROR, Reason.ATTEMPTS])
def test_an_entry_that_cannot_be_sent_is_a_problem_until_it_is_sent(patient, reason):
    patient.comes_about(skipped(reason))
    assert patient.problems() == ["cannot be sent: 'a'; see the log"]
    patient.comes_about(SENT)
    assert patient.problems() == []


def test_what_a_policy_passes_over_is_no_problem(patient):
    patient.comes_about(skipped(Reason.GRACE))
    assert patient.problems() == []


def test_an_entry_that_is_another_one_may_be_good(patient):
    patient.comes_about(skipped(Reason.ERROR))
    patient.vitals.forget("a")
    assert patient.problems() == []


def test_what_failed_here_long_ago_may_be_sent_by_others(patient):
    patient.comes_about(skipped(Reason.ERROR))
    patient.fleet.advance(LOOKED_BACK / SECOND)
    assert patient.problems() == []


def test_of_very_many_some_are_named(patient):
    for number in range(MOST_NAMED + 2):
        patient.comes_about(skipped(Reason.ERROR), f"entry {number}")
    (problem,) = patient.problems()
    assert "'entry 2' and 2 more" in problem
