"""What is done in a thread of its own, so that nobody waits for a database that hangs."""

from __future__ import annotations

import os
import threading

import pytest

from celery_redlock_beat.contrib.django.errands import Errands

LIMIT = 10.0


@pytest.fixture
def left():
    return threading.Event()


@pytest.fixture
def errands(left):
    errands = Errands(left.set)
    yield errands
    errands.end(LIMIT)


def test_what_came_of_an_errand_is_told(errands):
    errands.send(lambda: 6 * 7)
    assert errands.back(LIMIT) == (42, None)
    assert not errands.busy


def test_an_error_is_told_and_ends_nothing(errands):
    errands.send(lambda: 1 // 0)
    assert isinstance(errands.back(LIMIT).error, ZeroDivisionError)
    errands.send(threading.get_ident)
    assert errands.back(LIMIT).value != threading.get_ident()


def test_nobody_waits_for_one_that_hangs(errands):
    hangs = threading.Event()
    errands.send(lambda: hangs.wait(LIMIT))
    assert errands.back(0.01) is None
    assert errands.back(0) is None
    assert errands.busy
    hangs.set()
    assert errands.back(LIMIT) == (True, None)


def test_without_an_errand_nothing_is_back(errands):
    assert errands.back(0) is None


def test_the_thread_leaves_when_it_is_to_end_and_is_made_anew(errands, left):
    errands.send(threading.get_ident)
    first = errands.back(LIMIT).value
    errands.end(LIMIT)
    assert left.wait(LIMIT)
    errands.send(lambda: [each.name for each in threading.enumerate()])
    assert errands.back(LIMIT).value.count("redlock-database") == 1
    assert first


def test_a_child_process_has_a_thread_of_its_own(errands, monkeypatch):
    errands.send(lambda: None)
    errands.back(LIMIT)
    errands.send(lambda: None)
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as after a fork, without the thread
    assert errands.back(0) is None
    errands.send(lambda: "here")
    assert errands.back(LIMIT).value == "here"
