"""The signals of outcomes, as those who connect receivers meet them."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from celery_redlock_beat import signals
from celery_redlock_beat.observers.group import Group
from celery_redlock_beat.observers.receivers import Receivers
from celery_redlock_beat.ticks import (
    IN_DOUBT,
    SECOND,
    Reason,
    Tick,
    skipped,
)
from support.samples import INSTANT, event

ALL = [getattr(signals, name) for name in signals.__all__]
PAGE = Path(__file__).parents[2] / "docs" / "observers.md"


@pytest.fixture
def heard():
    """Return the names of the signals that come, in order, and what they carry."""
    calls = []

    def receiver(signal, **arguments):
        calls.append((signal.name, arguments))

    for each in ALL:
        each.connect(receiver, weak=False)
    yield calls
    for each in ALL:
        each.disconnect(receiver)


def names(heard):
    return [name for name, _ in heard]


@pytest.mark.parametrize(
    ("what", "come"),
    [
        (event(), ["tick_sent"]),
        (event(lateness=10 * SECOND), ["tick_sent"]),
        (event(lateness=10 * SECOND + 1), ["tick_sent", "tick_late"]),
        (event(attempt=2), ["tick_sent", "tick_taken_over"]),
        (
            event(attempt=2, lateness=60 * SECOND),
            ["tick_sent", "tick_late", "tick_taken_over"],
        ),
        (event(skipped(Reason.GRACE), lateness=60 * SECOND), ["tick_skipped"]),
        (event(skipped(Reason.ATTEMPTS), attempt=9), ["tick_skipped"]),
        (event(IN_DOUBT, attempt=0, lateness=60 * SECOND), ["tick_in_doubt"]),
    ],
)
def test_each_outcome_has_its_signals(heard, what, come):
    Receivers()(what, "one")
    assert names(heard) == come


def test_a_receiver_is_told_everything_by_name(heard):
    passed = {Reason.SUPERSEDED: 3}
    what = event(skipped(Reason.WINDOW), passed_over=passed, attempt=2)
    Receivers()(what, "one")
    ((_, arguments),) = heard
    assert arguments == {
        "sender": "nightly",
        "event": what,
        "entry": "nightly",
        "tick": INSTANT,
        "task": "shop.clean",
        "task_id": "5913c2d8",
        "reason": "window",
        "lateness": 0.25,
        "attempt": 2,
        "passed_over": {"superseded": 3},
        "node": "one",
    }


def test_each_signal_says_which_arguments_it_has(heard):
    Receivers()(event(), "one")
    ((_, arguments),) = heard
    for each in ALL:
        assert each.providing_args == set(arguments) - {"sender"}
        assert all(f"``{name}``" in signals.__doc__ for name in each.providing_args)


def test_a_receiver_can_ask_for_one_entry():
    heard = []

    @signals.tick_sent.connect(sender="nightly")
    def receiver(sender, **_):
        heard.append(sender)

    Receivers()(event(), "one")
    Receivers()(event(tick=Tick("hourly", 0)), "one")
    signals.tick_sent.disconnect(receiver, sender="nightly")
    assert heard == ["nightly"]


def test_a_receiver_that_raises_is_logged_and_stops_nobody(heard, caplog):
    @signals.tick_sent.connect
    def broken(**_):
        raise RuntimeError("no pager")

    Receivers()(event(attempt=2), "one")
    signals.tick_sent.disconnect(broken)
    assert names(heard) == ["tick_sent", "tick_taken_over"]
    assert "no pager" in caplog.text


def test_an_end_that_was_asked_for_in_a_receiver_goes_through():
    @signals.tick_sent.connect
    def ended(**_):
        raise SystemExit

    with pytest.raises(SystemExit):
        Group(Receivers())(event(), "one")
    signals.tick_sent.disconnect(ended)


def test_an_observer_that_fails_stops_no_other_one(caplog):
    told = []

    def broken(*_):
        raise RuntimeError("no metrics")

    with caplog.at_level(logging.ERROR):
        Group(broken, lambda *what: told.append(what))(event(), "one")
    assert told == [(event(), "one")]
    assert "nightly" in caplog.text
    assert "no metrics" in caplog.text


def test_the_receivers_of_the_page_hear_what_it_says(capsys):
    page = PAGE.read_text("utf-8")
    (snippet,) = re.findall(r"^```python\n(from celery_.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found: dict[str, object] = {}
    exec(snippet, found)
    Receivers()(event(skipped(Reason.ERROR)), "one")
    Receivers()(event(skipped(Reason.GRACE)), "one")
    Receivers()(event(lateness=12 * SECOND), "one")
    Receivers()(event(lateness=12 * SECOND, tick=Tick("hourly", 0)), "one")
    assert capsys.readouterr().out.splitlines() == [
        "nightly at 2030-01-31 12:00:00+00:00 was not sent: error",
        "nightly was sent 12 s late",
    ]
    assert sorted(re.findall(r"^\| `(tick_\w+)`", page, re.MULTILINE)) == signals.__all__
