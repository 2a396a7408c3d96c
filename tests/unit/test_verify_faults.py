"""The script of faults: reproducible, bounded, and never against all nodes at once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat.verify.faults import BACK, LASTS, Fault, parse_kinds, plan
from celery_redlock_beat.verify.injector import Injector

ALL = tuple(LASTS)
kinds = st.lists(st.sampled_from(ALL), min_size=1, unique=True).map(tuple)
seconds = st.floats(6, 200)
seeds = st.integers(0, 2**32)


@given(kinds, st.integers(2, 9), seconds, seeds)
def test_the_same_seed_gives_the_same_faults(some, nodes, length, seed):
    assert plan(some, nodes, length, seed) == plan(some, nodes, length, seed)


@given(kinds, st.integers(2, 9), seconds, seeds)
def test_faults_are_of_the_kinds_and_within_the_run(some, nodes, length, seed):
    for fault in plan(some, nodes, length, seed):
        assert fault.kind in some
        assert 0 <= fault.node < nodes
        assert fault.at > 0
        assert 0 < fault.lasts <= LASTS[fault.kind][1]
        assert fault.at + fault.lasts <= length + 0.01


@given(kinds, st.integers(2, 9), seconds, seeds)
def test_one_node_is_well_at_any_time_and_none_has_two_faults_at_once(some, nodes, length, seed):
    script = plan(some, nodes, length, seed)
    for fault in script:
        harmed = [
            other.node
            for other in script
            if other.at <= fault.at < other.at + other.lasts + BACK.get(other.kind, 0) - 0.01
        ]
        assert len(harmed) < nodes
        assert len(harmed) == len(set(harmed))


@pytest.mark.parametrize("nodes", [2, 3])
def test_a_run_of_two_minutes_has_some_dozens_of_faults_of_every_kind(nodes):
    for seed in range(20):
        count = Counter(fault.kind for fault in plan(ALL, nodes, 120, seed))
        assert set(count) == set(ALL)
        assert 20 < sum(count.values()) < 120


def test_no_kinds_are_no_faults():
    assert plan((), 3, 120, 1) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kill", ("kill",)),
        (" Pause , kill,kill", ("kill", "pause")),
        ("all", ALL),
        ("none", ()),
    ],
)
def test_a_list_of_faults_is_read(text, found):
    assert parse_kinds(text) == found


def test_all_means_all_that_are_possible_here():
    assert parse_kinds("all", ("kill", "pause")) == ("kill", "pause")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kil", "'kil' is no fault: did you mean 'kill'?"),
        ("kill,restrat", "'restrat' is no fault: did you mean 'restart'?"),
        ("flood", "'flood' is no fault: choose some of kill, pause, restart, cut; or all, or none"),
        ("all,kill", "'all' stands alone"),
        ("none,kill", "'none' stands alone"),
        (",", "no fault is named"),
    ],
)
def test_what_is_no_fault_is_told_with_a_suggestion(text, problem):
    with pytest.raises(ValueError) as told:
        parse_kinds(text)
    assert problem in str(told.value)


class Recorder:
    """A node, or its proxy, that writes down what is done to it."""

    def __init__(self, name, done):
        self.name, self.done = name, done

    def __getattr__(self, verb):
        return lambda: self.done.append((self.name, verb))


@pytest.mark.parametrize(
    ("kind", "silent", "begins", "ends"),
    [
        ("kill", False, ["kill"], ["start"]),
        ("pause", False, ["freeze"], ["thaw"]),
        ("restart", False, ["ask_to_end"], ["stop", "start"]),
        ("cut", False, ["cut"], ["restore"]),
        ("cut", True, ["half_open"], ["restore"]),
    ],
)
def test_each_fault_begins_in_time_and_is_mended_in_time(kind, silent, begins, ends):
    done: list = []
    nodes = [Recorder(f"node {number}", done) for number in range(2)]
    proxies = {number: [Recorder(f"proxy {number}", done)] for number in range(2)}
    injector = Injector([Fault(2.0, kind, 1, 3.0, silent)], nodes, proxies)
    victim = "proxy 1" if kind == "cut" else "node 1"
    assert injector.advance(1.9) == []
    assert done == []
    (began,) = injector.advance(2.0)
    assert began.kind == kind
    assert done == [(victim, verb) for verb in begins]
    injector.advance(4.9)
    assert len(done) == len(begins)
    injector.advance(5.0)
    assert done[len(begins) :] == [(victim, verb) for verb in ends]
    assert injector.done == {kind: 1}


def test_a_run_that_ends_early_mends_what_is_broken():
    done: list = []
    nodes = [Recorder("node", done)] * 2
    injector = Injector([Fault(1.0, "pause", 0, 9.0)], nodes, {})
    injector.advance(2.0)
    injector.advance(float("inf"))
    assert [verb for _, verb in done] == ["freeze", "thaw"]
