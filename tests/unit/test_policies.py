"""What an entry may say beside its task and its schedule."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler

from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.entry_checks import check_fields, doubts_about
from celery_redlock_beat.errors import ConfigurationError, EntryError
from celery_redlock_beat.policies import PARSERS, Policies, policies_of, with_policies
from support.samples import EACH_POLICY

APP = Celery("shop", set_as_current=False)


def entry(**fields):
    return RedlockEntry(**{"name": "a", "task": "t", "schedule": 60, "app": APP, **fields})


def test_every_key_has_a_value_here():
    assert EACH_POLICY.keys() == PARSERS.keys()


def test_every_policy_is_read_into_one_value():
    assert Policies.of(EACH_POLICY) == Policies(
        timezone="Asia/Tokyo",
        dst="real",
        catch_up="all",
        catch_up_window=3600.0,
        catch_up_limit=20,
        misfire_grace_time=30.0,
        jitter=10.0,
        phase=-7200.0,
        start=datetime(2026, 1, 1),
        end=datetime(2027, 1, 1, tzinfo=UTC),
        max_runs=3,
        run_on_start=True,
        enabled=False,
        expires="next",
        description="Prices of the day",
        tags=("billing", "nightly"),
    )


@pytest.mark.parametrize("key", PARSERS)
def test_none_is_as_if_it_was_not_said(key):
    assert Policies.of({key: None}) == Policies()


@pytest.mark.parametrize("key", PARSERS)
def test_a_value_that_cannot_be_is_refused_by_its_key(key):
    wrong = {"strange": object()}
    with pytest.raises(ConfigurationError, match=f"^{key} = "):
        entry(**{key: wrong})


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("timezone", "Europe/Berln", "'Europe/Berlin'"),
        ("dst", "reel", "'real'"),
        ("catch_up", "latst", "did you mean 'latest'"),
        ("catch_up_window", 0, "more than 0"),
        ("catch_up_limit", 0, "at least 1"),
        ("catch_up_limit", 2.5, "whole number"),
        ("misfire_grace_time", -1, "between 0"),
        ("misfire_grace_time", 0, "more than 0"),
        ("timezone", "localtime", "IANA name"),
        ("misfire_grace_time", "10", "give seconds as a number"),
        ("jitter", True, "give seconds as a number"),
        ("phase", "1h", "give seconds as a number"),
        ("start", "2026-01-01", "with the time of day"),
        ("end", "tomorrow at noon", "'2026-12-31T18:00'"),
        ("end", 1_800_000_000, "give a datetime"),
        ("max_runs", -1, "at least 1"),
        ("max_runs", True, "whole number"),
        ("run_on_start", "yes", "without quotes"),
        ("enabled", 0, "True nor False"),
        ("expires", "nxt", "did you mean 'next'"),
        ("expires", 60, "'next'"),
        ("description", 5, "in quotes"),
        ("tags", "billing", "['billing', 'nightly']"),
        ("tags", ["a", 1], "list of texts"),
    ],
)
def test_an_error_tells_the_way_out(key, value, hint):
    with pytest.raises(ConfigurationError) as caught:
        entry(**{key: value})
    assert str(caught.value).startswith(f"{key} = ")
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("key", "meant"), [("jiter", "jitter"), ("max_run", "max_runs"), ("catchup", "catch_up")]
)
def test_an_unknown_key_is_refused_with_a_suggestion(key, meant):
    with pytest.raises(ConfigurationError, match=f"unknown key '{key}'; did you mean '{meant}'"):
        entry(**{key: 1})
    with pytest.raises(EntryError, match=f"unknown key '{key}'; did you mean '{meant}'"):
        check_fields("a", {"task": "t", "schedule": 1, key: 1})


def test_policies_survive_a_pickle_a_next_run_and_an_update():
    one, other = entry(**EACH_POLICY), entry(jitter=1, tags=["gone"])
    assert policies_of(pickle.loads(pickle.dumps(one))) == Policies.of(EACH_POLICY)
    assert policies_of(next(one)) == Policies.of(EACH_POLICY)
    other.update(one)
    assert policies_of(other) == Policies.of(EACH_POLICY)
    assert other.editable_fields_equal(one)
    one.update(entry())
    assert policies_of(one) == Policies()
    assert not other.editable_fields_equal(one)


def test_what_an_entry_does_not_say_can_be_read():
    plain = entry()
    assert plain.enabled is True
    assert plain.catch_up is None
    assert plain.tags == ()


def test_a_subclass_may_have_a_policy_of_its_own():
    class Gentle(RedlockEntry):
        jitter = 5

    gentle = Gentle(name="a", task="t", schedule=60, app=APP)
    assert policies_of(gentle).jitter == 5
    assert policies_of(Gentle(name="a", task="t", schedule=60, app=APP, jitter=7)).jitter == 7


def test_an_entry_of_stock_beat_has_none():
    assert policies_of(ScheduleEntry(name="a", task="t", schedule=60, app=APP)) == Policies()


def test_add_periodic_task_takes_policies_as_keyword_arguments():
    app = Celery("shop", set_as_current=False)

    @app.task(name="t", shared=False)
    def task():
        """Do nothing."""

    app.add_periodic_task(
        60, task.s(), name="a", jitter=5, catch_up="all", expires="next", priority=3
    )
    app.add_periodic_task(60, task.s(), name="b", expires=30, relative=True)
    one, other = (with_policies(app.conf.beat_schedule[name]) for name in "ab")
    assert other["relative"] is True
    assert one["options"] == {"priority": 3}
    assert policies_of(RedlockEntry(**one, app=app)) == Policies(
        catch_up="all", jitter=5.0, expires="next"
    )
    assert other["options"] == {"expires": 30}
    assert app.conf.beat_schedule["a"]["options"]["jitter"] == 5, "the user's dict stays"


def test_a_policy_among_the_options_is_a_doubt():
    (doubt,) = doubts_about(entry(options={"jitter": 5, "expires": 30, "queue": "slow"}))
    assert doubt == "'jitter' is a key of the entry itself: move it out of its 'options'"
    (doubt,) = doubts_about(entry(options={"expires": "next"}))
    assert doubt == "'expires' is a key of the entry itself: move it out of its 'options'"


@pytest.mark.parametrize(
    ("key", "meant"),
    [("max_run", "max_runs"), ("enable", "enabled"), ("catchup", "catch_up"), ("jiter", "jitter")],
)
def test_a_misspelt_policy_among_the_options_is_a_doubt(key, meant):
    (doubt,) = doubts_about(entry(options={key: 1}))
    assert f"{key!r}; did you mean {meant!r}?" in doubt


def test_without_our_keys_a_configuration_works_with_stock_beat():
    app = Celery("shop", set_as_current=False)
    config = {
        "a": {"task": "t", "schedule": 60, "args": (1,), **EACH_POLICY},
        "b": {"task": "t", "schedule": timedelta(hours=1), "jitter": 5},
    }
    app.conf.beat_schedule = {
        name: {key: value for key, value in fields.items() if key not in PARSERS}
        for name, fields in config.items()
    }
    stock = Scheduler(app, lazy=True)
    stock.setup_schedule()
    stock.merge_inplace(app.conf.beat_schedule)
    assert stock.schedule["a"].args == (1,)
    assert stock.schedule["b"].schedule.run_every == timedelta(hours=1)
