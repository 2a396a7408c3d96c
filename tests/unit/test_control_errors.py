"""The errors of operators say what was not done, and are caught as what they are."""

from __future__ import annotations

import pytest

import celery_redlock_beat
from celery_redlock_beat import errors
from celery_redlock_beat.errors import ControlError, EntryChanged, RedlockBeatError


def test_the_tree_that_is_drawn_is_the_tree():
    drawn = errors.__doc__
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in kinds if issubclass(each, RedlockBeatError)]
    assert [each.__name__ for each in ours if each.__name__ not in drawn] == []


@pytest.mark.parametrize("kind", ControlError.__subclasses__())
def test_each_can_be_imported_from_the_package(kind):
    assert getattr(celery_redlock_beat, kind.__name__) is kind


def test_a_change_meanwhile_shows_both():
    error = EntryChanged("a", 3, 5, {"task": "ours"}, {"task": "theirs"})
    assert "it has revision 5, and not 3" in str(error)
    assert 'yours: {"task": "ours"}; now stored: {"task": "theirs"}' in str(error)


def test_a_removal_meanwhile_has_nothing_to_show():
    error = EntryChanged("a", 3, 0)
    assert "it is removed, and not 3" in str(error)
    assert "stored" not in str(error)


def test_control_is_imported_when_it_is_asked_for():
    assert celery_redlock_beat.Control.__module__ == "celery_redlock_beat.control.api"
    with pytest.raises(AttributeError, match="no attribute 'Kontrol'"):
        celery_redlock_beat.Kontrol  # noqa: B018
