"""Ticks as they are shown: a name is the user's, a line of the log is ours."""

from __future__ import annotations

import pytest

from celery_redlock_beat.ticks import Tick, shown


@pytest.mark.parametrize("name", ["pulse", "日本", "{a} %s", "a b"])
def test_a_name_that_can_be_shown_is_shown_as_it_is(name):
    assert str(Tick(name, 0)) == f"{name} @ 1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "nul\0", "\x1b[31m", "\u2028", "\udc80"])
def test_a_name_never_breaks_or_colours_a_line(name):
    assert shown(name) == repr(name)


def test_a_long_name_is_cut():
    assert len(str(Tick("x" * 10_000, 0))) < 250
