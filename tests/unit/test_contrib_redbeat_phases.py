"""An interval that is saved through RedBeat's interface first runs a period after its last run."""

from __future__ import annotations

from datetime import timedelta

import pytest
from celery.schedules import crontab, schedule

from celery_redlock_beat.contrib.redbeat.phases import with_phase
from celery_redlock_beat.ticks import SECOND

MINUTELY = {"task": "shop.report", "schedule": schedule(60)}
AT = 125 * SECOND + 7


def test_a_new_interval_has_the_phase_of_its_last_run():
    assert with_phase(MINUTELY, {}, AT) == {**MINUTELY, "phase": 5.000007}


@pytest.mark.parametrize("period", [timedelta(seconds=60), schedule(60.0)])
def test_the_same_period_keeps_its_phase(period):
    before = {"schedule": period, "phase": 42}
    assert with_phase(MINUTELY, before, AT)["phase"] == 42
    assert with_phase({**MINUTELY, "phase": 42}, before, AT)["phase"] == 42


def test_an_interval_that_was_stored_without_a_phase_goes_on_without():
    assert "phase" not in with_phase(MINUTELY, {"schedule": timedelta(minutes=1)}, AT)


@pytest.mark.parametrize(
    "before",
    [
        {"schedule": timedelta(seconds=90), "phase": 42},
        {"schedule": crontab()},
        {"schedule": schedule(60, relative=True)},
    ],
)
def test_another_period_counts_from_the_last_run(before):
    said = {**MINUTELY, **{key: before[key] for key in ("phase",) if key in before}}
    assert with_phase(said, before, AT)["phase"] == 5.000007


def test_a_phase_that_is_said_stays():
    assert with_phase({**MINUTELY, "phase": 1}, {"phase": 2}, AT)["phase"] == 1


@pytest.mark.parametrize("spec", [crontab(), schedule(60, relative=True)])
def test_other_schedules_have_none(spec):
    before = {"schedule": timedelta(seconds=60), "phase": 42}
    assert "phase" not in with_phase({"schedule": spec, "phase": 42}, before, AT)


def test_what_is_no_interval_yet_is_left_for_the_check_to_find():
    assert "phase" not in with_phase({"schedule": schedule(0)}, {}, AT)
