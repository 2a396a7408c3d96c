"""What nodes tell of themselves is read as far as it is clear, whatever somebody wrote."""

from __future__ import annotations

import json

import pytest

from celery_redlock_beat.ledger import HEARTBEAT_ALIVE
from celery_redlock_beat.store.heartbeats import heartbeats
from celery_redlock_beat.ticks import LATEST, SECOND

NOW = 1_900_000_000 * SECOND


def read(told, at=NOW):
    raw = told if isinstance(told, bytes) else json.dumps(told).encode()
    (beat,) = heartbeats({"n": at}, {"n": raw}, NOW)
    return beat


@pytest.mark.parametrize(
    ("at", "left", "alive"),
    [
        (NOW, False, True),
        (NOW - HEARTBEAT_ALIVE, False, True),
        (NOW - HEARTBEAT_ALIVE - 1, False, False),
        (NOW, True, False),
    ],
)
def test_a_node_lives_while_it_beats_and_has_not_left(at, left, alive):
    assert read({"left": left}, at).is_alive is alive


def test_one_that_tells_nothing_of_itself_is_a_node():
    (beat,) = heartbeats({"n": NOW}, {}, NOW)
    assert (beat.node, beat.is_alive, beat.version, beat.ready) == ("n", True, "", None)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"[]", b"null", b'"text"', b"[" * 99_999])
def test_what_is_no_object_tells_nothing(raw):
    assert read(raw).host == ""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pid", True),
        ("pid", "7"),
        ("offset", 1e300),
        ("offset", float("nan")),
        ("started", -1),
        ("started", LATEST),
        ("bad", [1]),
        ("problems", "text"),
        ("ready", 1),
    ],
)
def test_a_value_of_another_kind_is_not_told(key, value):
    assert not getattr(read({key: value}), key)


def test_a_duration_may_be_a_whole_number_and_below_zero():
    assert (read({"offset": -2}).offset, read({"lateness": 0.5}).lateness) == (-2.0, 0.5)


def test_texts_among_others_are_told():
    assert read({"problems": ["a", 1, None, "b"]}).problems == ["a", "b"]


def test_the_newest_comes_first():
    beats = heartbeats({"a": NOW - 2, "b": NOW, "c": NOW}, {}, NOW)
    assert [beat.node for beat in beats] == ["b", "c", "a"]
