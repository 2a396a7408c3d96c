"""Entries: what a definition may say, and names that are the same on every node."""

import pickle
from datetime import timedelta

import pytest
from celery import Celery
from celery.schedules import crontab

from celery_redlock_beat import cron
from celery_redlock_beat.entries import RedlockEntry
from celery_redlock_beat.entry_checks import OPTIONS, check_entry, check_fields, doubts_about
from celery_redlock_beat.entry_names import canonical_name
from celery_redlock_beat.errors import ConfigurationError, EntryError


@pytest.fixture
def app():
    return Celery("tests", broker="memory://", set_as_current=False)


def unnamed(app, *args, **kwargs):
    """Return the name and fields that add_periodic_task makes without a name."""
    signature = app.signature("tasks.ping", args, kwargs)
    fields = {"task": "tasks.ping", "schedule": 1, "args": args, "kwargs": kwargs}
    return repr(signature), fields


def test_a_string_as_schedule_is_a_cron_string(app):
    entry = RedlockEntry(name="a", task="t", schedule="*/5 * * * *", app=app)
    assert entry.schedule == cron("*/5 * * * *")


@pytest.mark.parametrize("schedule", [30, 0.5, timedelta(minutes=1), crontab(minute=5)])
def test_what_celery_takes_as_schedule_is_taken(app, schedule):
    assert RedlockEntry(name="a", task="t", schedule=schedule, app=app).schedule


def test_an_unknown_catch_up_is_refused_by_name(app):
    with pytest.raises(ConfigurationError, match=r"'newest'.*'latest', 'all', 'none'"):
        RedlockEntry(name="a", task="t", schedule=1, app=app, catch_up="newest")


def test_policies_are_part_of_the_definition(app):
    one = RedlockEntry(name="a", task="t", schedule=1, app=app, catch_up="all")
    other = RedlockEntry(name="a", task="t", schedule=1, app=app)
    assert one != other
    other.update(one)
    assert one == other
    assert next(one).catch_up == "all"
    assert pickle.loads(pickle.dumps(one)).catch_up == "all"


def test_a_misspelt_key_is_refused_with_a_suggestion():
    with pytest.raises(EntryError, match=r"entry 'a': unknown key 'shedule'; did you mean 'sched"):
        check_fields("a", {"task": "t", "schedule": 1, "shedule": 2})


@pytest.mark.parametrize("key", ["task", "schedule"])
def test_a_missing_key_is_named(key):
    fields = {"task": "t", "schedule": 1}
    del fields[key]
    with pytest.raises(EntryError, match=f"has no '{key}'"):
        check_fields("a", fields)


def test_an_entry_that_is_no_mapping_is_refused():
    with pytest.raises(EntryError, match="must be a mapping"):
        check_fields("a", ["t", 1])


@pytest.mark.parametrize("option", [*sorted(OPTIONS - {"task_id"}), "once", "x-delay", "custom"])
def test_an_option_that_is_known_or_like_no_other_raises_no_doubt(app, option):
    entry = RedlockEntry(name="a", task="t", schedule=1, options={option: 1}, app=app)
    assert doubts_about(entry) == []


@pytest.mark.parametrize("empty", [{}, {"args": None, "kwargs": None, "options": None}])
def test_an_entry_may_have_no_arguments_and_no_options(app, empty):
    check_entry("a", RedlockEntry(name="a", task="t", schedule=1, app=app, **empty))


@pytest.mark.parametrize("args", ["text", 5, {"a": 1}, {1, 2}, object()])
def test_arguments_that_are_no_list_are_refused_without_a_word_on_their_value(app, args):
    entry = RedlockEntry(name="a", task="t", schedule=1, args=args, app=app)
    with pytest.raises(EntryError, match=f"is of type {type(args).__name__}$"):
        check_entry("a", entry)


def test_an_object_in_the_place_of_a_schedule_is_refused_and_left_as_it_is(app):
    for schedule in (crontab, [1], True, object()):
        with pytest.raises(ConfigurationError, match="is not a schedule; use a number of seconds"):
            RedlockEntry(name="a", task="t", schedule=schedule, app=app)
    assert "app" not in vars(crontab)


def test_a_very_long_name_does_not_fill_the_log():
    assert len(str(EntryError("x" * 10_000, "it is bad"))) < 400


def test_a_given_name_is_kept():
    assert canonical_name("mine", {"task": "t", "args": ({3, 1},)}) == "mine"


def test_celerys_own_name_is_kept_where_it_is_the_same_everywhere(app):
    name, fields = unnamed(app, 1, "x", key=[None, 2.5])
    assert canonical_name(name, fields) == name


def test_sets_are_sorted_so_that_nodes_agree(app):
    name, fields = unnamed(app, {"pear", "apple", "fig"}, kinds=frozenset({2, 1}))
    assert canonical_name(name, fields) == "tasks.ping({'apple', 'fig', 'pear'}, kinds={1, 2})"


@pytest.mark.parametrize("value", [object(), lambda: 1, [object()], {"key": object()}])
def test_what_looks_different_in_every_process_is_refused_with_the_way_out(app, value):
    name, fields = unnamed(app, value)
    with pytest.raises(EntryError, match=r"name it: add_periodic_task\(\.\.\., name='\.\.\.'\)"):
        canonical_name(name, fields)
