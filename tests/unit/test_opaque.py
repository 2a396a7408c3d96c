from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import BaseSchedule, crontab, schedstate, schedule

from celery_redlock_beat.errors import ConfigurationError
from celery_redlock_beat.ticks import SECOND, to_micros
from celery_redlock_beat.timetables import Opaque
from celery_redlock_beat.timetables.opaque import LATEST, LOOK_AGAIN, SOONEST

NOW = to_micros(datetime(2026, 6, 19, 12, 0, tzinfo=UTC))
HOUR = 3600 * SECOND
BERLIN = Celery("shop", set_as_current=False, timezone="Europe/Berlin")


class Answering:
    """A schedule with nothing but is_due, which notes what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def is_due(self, last_run_at):
        self.asked.append(last_run_at)
        return self.answer


class Workdays(crontab):
    """A crontab of a user's own class."""


def test_ledger_time_decides_and_not_the_wall_clock():
    table = Opaque(schedule(timedelta(hours=1), app=BERLIN), BERLIN.timezone)
    assert table.check(NOW - HOUR, NOW) == (True, NOW + HOUR)
    assert table.check(NOW - HOUR + SECOND, NOW) == (False, NOW + SECOND)
    assert table.check(NOW - 50 * 365 * 24 * HOUR, NOW - 49 * 365 * 24 * HOUR)[0]


def test_the_schedule_is_asked_in_the_zone_of_the_app():
    table = Opaque(Workdays("30", "14", app=BERLIN), BERLIN.timezone)
    assert table.check(NOW, NOW) == (False, NOW + HOUR // 2)
    assert table.check(NOW, NOW + HOUR)[0]


def test_the_last_run_arrives_aware_and_in_the_zone_of_the_app():
    answering = Answering((False, 1))
    Opaque(answering, BERLIN.timezone).check(NOW, NOW)
    assert answering.asked == [datetime(2026, 6, 19, 12, tzinfo=UTC)]
    assert answering.asked[0].tzinfo == ZoneInfo("Europe/Berlin")


def test_a_relative_schedule_is_rounded_to_the_local_day():
    table = Opaque(schedule(timedelta(days=1), relative=True, app=BERLIN), BERLIN.timezone)
    assert table.check(NOW, NOW) == (False, NOW + 10 * HOUR)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((True, 20), (True, NOW + 20 * SECOND)),
        (schedstate(False, 12.3), (False, NOW + 12_300_000)),
        ([1, 5], (True, NOW + 5 * SECOND)),
        ((False, timedelta(minutes=1)), (False, NOW + 60 * SECOND)),
        ((False, None), (False, NOW + LOOK_AGAIN)),
        ((True, None), (True, NOW + LOOK_AGAIN)),
        ((False, -3), (False, NOW + LOOK_AGAIN)),
        ((False, math.nan), (False, NOW + LOOK_AGAIN)),
        ((False, math.inf), (False, NOW + LOOK_AGAIN)),
        ((False, "soon"), (False, NOW + LOOK_AGAIN)),
        ((False, 0), (False, NOW + SOONEST)),
        ((False, 1e12), (False, NOW + LATEST)),
        (True, (True, NOW + LOOK_AGAIN)),
    ],
)
def test_whatever_is_answered_the_next_look_is_later_than_now(answer, expected):
    assert Opaque(Answering(answer)).check(NOW - HOUR, NOW) == expected


@pytest.mark.parametrize("answer", [None, 7, (True,), (True, 1, 2)])
def test_an_answer_that_is_no_pair_is_an_error_that_names_the_class(answer):
    with pytest.raises(ConfigurationError, match=r"Answering\.is_due answered"):
        Opaque(Answering(answer)).check(NOW - HOUR, NOW)


def test_an_error_of_the_schedule_is_raised_as_it_is():
    class Broken(BaseSchedule):
        def is_due(self, last_run_at):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Opaque(Broken()).check(NOW, NOW)


def test_a_text_is_no_answer():
    with pytest.raises(ConfigurationError, match="must answer a pair"):
        Opaque(Answering("no")).check(NOW - HOUR, NOW)


def test_the_users_own_nowfun_stays():
    theirs = datetime(2030, 1, 1, tzinfo=UTC)
    table = Opaque(schedule(timedelta(hours=1), nowfun=lambda: theirs, app=BERLIN), BERLIN.timezone)
    assert table.check(NOW, NOW)[0]


def test_asking_leaves_no_nowfun_behind():
    inner = schedule(timedelta(hours=1), app=BERLIN)
    Opaque(inner, BERLIN.timezone).check(NOW, NOW)
    assert inner.nowfun is None


def test_what_a_schedule_notes_on_itself_is_kept():
    class Alternating(BaseSchedule):
        turn = 0

        def is_due(self, last_run_at):
            self.turn += 1
            return self.turn % 2 == 0, 1

    table = Opaque(Alternating(app=BERLIN), BERLIN.timezone)
    assert [table.check(NOW, NOW)[0] for _ in range(4)] == [False, True, False, True]


def test_a_schedule_that_is_changed_in_place_is_seen():
    answering = Answering((False, 1))
    table = Opaque(answering)
    answering.answer = (True, 1)
    assert table.check(NOW, NOW)[0]


@dataclass(frozen=True)
class Frozen:
    nowfun: object = None

    def is_due(self, _):
        return self.nowfun() == datetime(2026, 6, 19, 12, tzinfo=UTC), 1


class Slotted:
    __slots__ = ()

    def is_due(self, _):
        return True, 1


@pytest.mark.parametrize("inner", [Frozen(), Slotted()])
def test_frozen_and_slotted_schedules_can_be_asked(inner):
    assert Opaque(inner).check(NOW - HOUR, NOW) == (True, NOW + SECOND)


def test_it_is_equal_only_to_itself():
    inner = schedule(10)
    one, other = Opaque(inner), Opaque(inner)
    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other}) == 2


class Telling(Answering):
    def __repr__(self):
        return f"<telling {self.answer}>"


class Unspeakable(Answering):
    def __repr__(self):
        raise RuntimeError


def test_the_fingerprint_tells_class_and_repr():
    assert Opaque(Telling(1)).fingerprint == f"opaque:{__name__}.Telling:<telling 1>"
    assert Opaque(Telling(1)).fingerprint != Opaque(Telling(2)).fingerprint


@pytest.mark.parametrize("cls", [Answering, Unspeakable])
def test_the_fingerprint_is_the_class_where_the_repr_is_no_use(cls):
    assert Opaque(cls(1)).fingerprint == f"opaque:{__name__}.{cls.__name__}"


def test_the_fingerprint_is_a_text_that_redis_can_take():
    assert Opaque(Telling("\udc80")).fingerprint.encode()
