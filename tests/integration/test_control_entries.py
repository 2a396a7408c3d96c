"""Operators add, change and remove stored entries: only as they saw them, and only good ones."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Barrier, Thread

import pytest
from celery.schedules import crontab

from celery_redlock_beat import (
    Control,
    ControlError,
    EntryChanged,
    EntryError,
    EntryExists,
    NoSuchEntry,
    NothingSelected,
    NotStored,
)
from celery_redlock_beat.control import Origin, State
from celery_redlock_beat.errors import ConfigurationError, LedgerUnavailable
from celery_redlock_beat.ledger import Closing, Verdict
from celery_redlock_beat.ticks import SECOND, Tick
from ledger.places import MINUTE, claim, message, reply_lost
from support.control_case import HOURLY, OTHERWISE, app_on, last_due

NEW_YEAR = datetime(2040, 1, 1, tzinfo=UTC)


def totals(case):
    return case.place.totals()


class TestAdding:
    def test_it_is_stored_known_to_the_ledger_and_told(self, case, control):
        view = control.add(
            "report",
            task="shop.report",
            schedule="0 3 * * *",
            args=[1],
            kwargs={"a": 2},
            tags=["b", "a"],
            description="Every night",
            note="new",
        )
        assert (view.origin, view.state) == (Origin.STORED, State.ACTIVE)
        assert (view.task, view.tags, view.description) == (
            "shop.report",
            ("a", "b"),
            "Every night",
        )
        assert view.definition["args"] == [1]
        assert "03:00" in view.schedule
        assert view.next.hour == 3
        assert view.revision > 0
        assert case.place.record("report").runs == 0
        (change,) = case.node.changes(0).changes
        assert (change.name, change.revision) == ("report", view.revision)
        (record,) = control.history("report")
        assert (record.action, record.node, record.detail) == ("added", "anna@here", "new")

    @pytest.mark.parametrize(
        "schedule",
        [30, crontab(hour=3), "@hourly", "RRULE:FREQ=DAILY", {"kind": "interval", "every": 5}],
    )
    def test_its_schedule_is_as_in_code_or_as_in_a_document(self, control, schedule):
        assert control.add("x", task="t", schedule=schedule).next is not None

    def test_a_name_is_given_once(self, control):
        control.add("report", **HOURLY)
        with pytest.raises(EntryExists, match="is stored already, with revision"):
            control.add("report", **HOURLY)
        with pytest.raises(EntryExists, match="'pulse' is defined in code"):
            control.add("pulse", **HOURLY)

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"schedule": "0 61 * * *"}, "hour field"),
            ({"schedule": 30, "jitterr": 1}, "did you mean 'jitter'"),
            ({"schedule": 30, "args": "abc"}, "'args' must be"),
            ({"schedule": object()}, "schedule"),
            ({"schedule": {"kind": "chron"}}, "kind"),
            (
                {"schedule": 30, "run_on_start": True, "start": datetime(2030, 1, 1, tzinfo=UTC)},
                "run_on_start",
            ),
            ({"schedule": 30, "kwargs": {"a": {1}}}, "does not come back"),
        ],
    )
    def test_what_beat_would_leave_out_is_not_stored(self, case, control, fields, told):
        with pytest.raises(EntryError, match=told) as raised:
            control.add("report", task="t", **fields)
        assert raised.value.entry == "report"
        assert not case.client.exists(case.keys["changes"])

    def test_one_in_memory_cannot_be_steered(self):
        control = Control(app_on("memory://", "memory://"))
        for ask in (control.entries, control.health, lambda: control.add("x", **HOURLY)):
            with pytest.raises(ConfigurationError, match=r"memory://.*name a Redis"):
                ask()

    def test_where_the_app_has_no_time_zone_it_is_told_and_no_entry_is_bad(self, case):
        case.app.conf.timezone = "Mars/X"
        with Control(case.app) as control:
            for ask in (control.entries, lambda: control.add("x", **HOURLY)):
                with pytest.raises(ConfigurationError, match="timezone = 'Mars/X' names no time"):
                    ask()

    def test_a_new_ledger_is_begun_first(self, shared_redis):
        with Control(app_on(shared_redis.url, shared_redis.url)) as control:
            assert control.add("report", **HOURLY).revision > 0


class TestChanging:
    def test_fields_are_changed_and_taken_out(self, control):
        first = control.add("report", **HOURLY, catch_up="all", tags=["a"])
        view = control.update("report", task="shop.other", catch_up=None, jitter=3)
        assert view.definition == {
            "format": 1,
            "task": "shop.other",
            "schedule": first.definition["schedule"],
            "tags": ["a"],
            "jitter": 3,
        }
        assert view.revision > first.revision
        assert control.history("report")[0].action == "changed"

    def test_what_stays_the_same_is_not_stored_again(self, control):
        first = control.add("report", **HOURLY)
        assert control.update("report", task="shop.report").revision == first.revision

    def test_somebody_elses_change_is_shown_with_ours(self, control):
        first = control.add("report", **HOURLY)
        now = control.update("report", task="shop.theirs")
        with pytest.raises(EntryChanged, match=r"yours: .*ours.*; now stored: .*theirs") as raised:
            control.update("report", revision=first.revision, task="shop.ours")
        error = raised.value
        assert (error.expected, error.found) == (first.revision, now.revision)
        assert (error.ours["task"], error.theirs["task"]) == ("shop.ours", "shop.theirs")
        with pytest.raises(EntryChanged):
            control.remove("report", revision=first.revision)
        control.remove("report", revision=now.revision)
        with pytest.raises(NoSuchEntry):
            control.update("report", revision=now.revision, task="x")
        with pytest.raises(EntryChanged, match="is removed"):
            control.replace("report", first.definition, revision=now.revision)

    def test_of_two_at_once_who_name_a_revision_one_wins(self, case, control):
        first = control.add("report", **HOURLY)
        start, told = Barrier(2), []

        def change(task):
            with Control(case.app, who=task) as mine:
                mine.get("report")
                start.wait(10)
                try:
                    told.append(mine.update("report", revision=first.revision, task=task).task)
                except EntryChanged:
                    told.append("changed")

        threads = [Thread(target=change, args=(name,)) for name in ("shop.a", "shop.b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert min(told) == "changed"
        assert control.get("report").task in told

    def test_a_whole_document_is_replaced(self, control):
        control.add("report", **HOURLY, tags=["a"])
        view = control.replace("report", {"task": "t", "schedule": "@daily"})
        assert view.tags == ()
        with pytest.raises(EntryError, match="unknown key 'nam'"):
            control.replace("report", {"task": "t", "schedule": 3, "nam": 1})
        with pytest.raises(NoSuchEntry, match="there is no stored entry 'other': add it"):
            control.replace("other", {"task": "t", "schedule": 3})

    def test_what_no_entry_has_cannot_be_taken_out_either(self, case, control):
        control.add("report", **HOURLY)
        for key in ("nope", "app", "last_run_at"):
            with pytest.raises(EntryError, match=f"unknown key '{key}'"):
                control.update("report", **{key: None})
        with pytest.raises(EntryError, match="did you mean 'jitter'"):
            control.update("report", jiter=None)
        with pytest.raises(EntryError, match="unknown key 'nope'"):
            control.add("other", **HOURLY, nope=None)
        assert case.actions() == ["added"]

    @pytest.mark.parametrize(
        "said", [{"args": ["\udce9"]}, {"tags": ["\udce9"]}, {"task": "\udce9"}]
    )
    def test_what_is_no_utf_8_is_not_stored(self, case, control, said):
        with pytest.raises(EntryError):
            control.add("odd", **{**HOURLY, **said})
        assert case.actions() == []

    def test_code_is_edited_in_code(self, control):
        for deed in (
            lambda: control.update("pulse", task="t"),
            lambda: control.replace("pulse", {"task": "t", "schedule": 3}),
            lambda: control.remove("pulse"),
            lambda: control.disable("pulse"),
        ):
            with pytest.raises(NotStored, match="edit it in code, or pause it"):
                deed()

    def test_ticks_of_the_old_schedule_are_counted_and_not_caught_up(self, case, control):
        control.add("report", **HOURLY)
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 180 * MINUTE)
        control.update("report", schedule=OTHERWISE)
        record = case.place.record("report")
        assert record.mark > noon
        assert record.since > noon
        assert totals(case) == {"skipped:before_registration": 3}
        assert control.history("report")[0].passed == {"before_registration": 3}

    def test_what_a_node_holds_is_sent_as_it_was(self, case, control):
        control.add("report", **HOURLY)
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 60 * MINUTE)
        held = case.grant("report", noon)
        control.update("report", task="shop.other")
        assert case.node.enqueue(held, [message(held.tick)], {}) is Closing.DONE

    def test_disabled_is_not_due_and_enabled_catches_up_nothing(self, case, control):
        control.add("report", **HOURLY)
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 180 * MINUTE)
        (view,) = control.disable("report")
        assert (view.state, view.next) == (State.DISABLED, None)
        assert totals(case) == {"skipped:before_registration": 3}
        case.set_mark("report", noon - 180 * MINUTE)
        (view,) = control.enable("report")
        assert view.state is State.ACTIVE
        assert "enabled" not in view.definition
        assert totals(case) == {"skipped:before_registration": 3}
        assert case.place.record("report").mark > noon


class TestRemoving:
    def test_nothing_of_it_is_sent_after_it_has_returned(self, case, control):
        control.add("report", **HOURLY)
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 180 * MINUTE)
        held = case.grant("report", noon - 60 * MINUTE)
        assert control.remove("report", note="done with") == ["report"]
        assert case.node.enqueue(held, [message(held.tick)], {}) is Closing.STALE
        assert case.place.queue() == []
        assert case.place.open_ticks() == {}
        assert totals(case) == {"skipped:removed": 2, "skipped:superseded": 1}
        assert case.actions("report")[:2] == ["removed", "skipped"]
        with pytest.raises(NoSuchEntry):
            control.get("report")
        assert claim(case.node, Tick("report", noon)).verdict is Verdict.UNREGISTERED

    def test_all_that_match_are_removed_but_not_what_is_in_code(self, control):
        for name in ("a:1", "a:2", "b:1"):
            control.add(name, **HOURLY)
        assert control.remove("a:*") == ["a:1", "a:2"]
        control.add("a:3", **HOURLY)
        with pytest.raises(NotStored):
            control.remove("a:*", "pulse")
        assert control.remove(all=True) == ["a:3", "b:1"]
        with pytest.raises(NotStored):
            control.remove(all=True)
        assert [view.name for view in control.entries()] == ["pulse"]

    def test_a_revision_is_that_of_one_entry(self, control):
        for name in ("a", "b"):
            control.add(name, **HOURLY)
        with pytest.raises(ControlError, match="name one"):
            control.remove("*", revision=1)

    def test_one_that_was_written_by_hand_and_cannot_be_read_can_be_removed(self, case, control):
        case.client.hset(case.keys["entries"], "hand", "not json")
        case.node.changes(0)
        view = control.get("hand")
        assert (view.state, view.next) == (State.BAD, None)
        assert view.problem
        assert control.remove("hand") == ["hand"]

    def test_where_marks_move_all_the_time_it_is_looked_at_again(self, case, control):
        control.add("report", task="t", schedule=1)
        steering, moved = control._access.steering, []
        remove = steering.remove

        def move_first(rows):
            if len(moved) < 3:
                moved.append(case.place.record("report").mark - SECOND)
                case.set_mark("report", moved[-1])
            return remove(rows)

        steering.remove = move_first
        assert control.remove("report") == ["report"]
        assert len(moved) == 3

    def test_it_is_given_up_in_the_end(self, case, control):
        control.add("report", task="t", schedule=1)
        steering = control._access.steering
        remove, tries = steering.remove, []

        def move_first(rows):
            tries.append(1)
            case.set_mark("report", case.place.record("report").mark - SECOND)
            return remove(rows)

        steering.remove = move_first
        with pytest.raises(ControlError, match="again and again"):
            control.remove("report")
        assert len(tries) == 20


class TestSelecting:
    @pytest.fixture(autouse=True)
    def _entries(self, control):
        control.add("mail:daily", task="mail.send", schedule="@daily", tags=["mail", "slow"])
        control.add("mail:hourly", task="mail.send", schedule="@hourly", tags=["mail"])
        control.add("[odd]*", task="odd.job", schedule=30)

    @pytest.mark.parametrize(
        ("names", "narrowed", "meant"),
        [
            (["mail:daily"], {}, ["mail:daily"]),
            (["mail:*"], {}, ["mail:daily", "mail:hourly"]),
            (["[odd]*"], {}, ["[odd]*"]),
            (["mail:daily", "pul*"], {}, ["mail:daily", "pulse"]),
            ([], {"tag": "mail"}, ["mail:daily", "mail:hourly"]),
            ([], {"task": "*.send", "tag": "slow"}, ["mail:daily"]),
            (["mail:*"], {"tag": "slow"}, ["mail:daily"]),
            ([], {"tag": "health"}, ["pulse"]),
            ([], {}, ["[odd]*", "mail:daily", "mail:hourly", "pulse"]),
            ([], {"origin": "code"}, ["pulse"]),
            ([], {"state": "paused"}, []),
        ],
    )
    def test_names_patterns_tags_and_tasks_narrow(self, control, names, narrowed, meant):
        assert [view.name for view in control.entries(*names, **narrowed)] == meant

    @pytest.mark.parametrize(
        ("narrowed", "told"),
        [
            ({"state": "bogus"}, "state = 'bogus' is none; there are active, paused, disabled"),
            ({"state": "pausd"}, "did you mean 'paused'"),
            ({"origin": "bogus"}, "origin = 'bogus' is none; there are code, stored"),
            ({"origin": 5}, "origin = 5 is none"),
        ],
    )
    def test_a_state_and_an_origin_that_there_are_not_are_refused(self, control, narrowed, told):
        with pytest.raises(ControlError, match=told):
            control.entries(**narrowed)

    def test_what_is_meant_must_be_said(self, control):
        for deed in (control.pause, control.remove, control.fire, control.resume, control.enable):
            with pytest.raises(NothingSelected):
                deed()

    def test_what_may_have_been_meant_is_told(self, control):
        with pytest.raises(NoSuchEntry, match="'mail:dayly': did you mean 'mail:daily'"):
            control.pause("mail:*", "mail:dayly")
        assert control.entries(state="paused") == []
        with pytest.raises(NoSuchEntry, match="no entry with the tag 'nope'"):
            control.pause(tag="nope")
        with pytest.raises(NoSuchEntry):
            control.get("mail:*")

    def test_entries_that_code_adds_later_are_there(self, case, control):
        control.entries()
        case.app.add_periodic_task(5.0, case.app.signature("shop.later"), name="later")
        assert control.get("later").origin is Origin.CODE
        del case.app.conf.beat_schedule["later"]
        with pytest.raises(NoSuchEntry):
            control.get("later")

    def test_a_bad_entry_of_the_code_is_told_as_bad(self, case, control):
        case.app.conf.beat_schedule = {"bad": {"task": "x", "schedule": "nonsense"}}
        assert control.get("bad").state is State.BAD

    def test_code_wins_over_what_is_stored_by_its_name(self, case, control):
        control.add("later", **HOURLY)
        case.app.conf.beat_schedule = {"later": {"task": "from.code", "schedule": 5}}
        view = control.get("later")
        assert (view.origin, view.task) == (Origin.CODE, "from.code")
        assert "remove one of them" in view.problem
        assert control.remove("later") == ["later"]
        assert control.get("later").problem == ""


class TestFiles:
    def test_what_is_exported_is_imported_as_the_same(self, case, control):
        control.add("report", **HOURLY, tags=["a"])
        documents = control.export()
        assert list(documents) == ["report"]
        assert [each.done for each in control.import_(documents)] == ["same"]
        control.remove("report")
        assert [each.done for each in control.import_(documents)] == ["added"]
        assert control.export() == documents

    def test_each_document_is_told_what_became_of_it(self, control):
        control.add("report", **HOURLY)
        documents = {
            "report": {"task": "t", "schedule": 30},
            "bad": {"task": "t", "schedule": "nonsense"},
            "pulse": {"task": "t", "schedule": 30},
            "new": {"task": "t", "schedule": 30},
        }
        told = control.import_(documents)
        assert [(each.name, each.done) for each in told] == [
            ("report", "refused"),
            ("bad", "refused"),
            ("pulse", "refused"),
            ("new", "added"),
        ]
        assert "say replace" in told[0].problem
        assert "nonsense" in told[1].problem
        assert [each.done for each in control.import_(documents, replace=True)] == [
            "changed",
            "refused",
            "refused",
            "same",
        ]

    def test_what_only_code_can_have_is_told(self, case, control):
        case.app.conf.beat_schedule = {
            "good": {"task": "t", "schedule": 30},
            "set": {"task": "t", "schedule": 30, "kwargs": {"a": {1}}},
            "bad": {"task": "t", "schedule": "nonsense"},
        }
        documents, problems = control.export_code()
        assert list(documents) == ["good"]
        assert list(problems) == ["bad", "set"]


def test_many_entries_are_read_in_chunks(case, control):
    documents = {f"entry {number}": {"task": "t", "schedule": 30} for number in range(1000)}
    control.import_(documents)
    calls = case.client.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert len(control.entries()) == 1001
    assert case.client.info("commandstats")["cmdstat_evalsha"]["calls"] - calls <= 30


def test_a_server_that_is_away_is_said_to_be(redis_server):
    app = app_on(redis_server.url, redis_server.url)
    redis_server.kill()
    with Control(app) as control:
        with pytest.raises(LedgerUnavailable):
            control.entries()
        health = control.health()
    assert not health.alive
    assert not health.ready
    assert health.problems[0].startswith("the ledger is away: ")


def test_a_reply_that_was_lost_leaves_the_entry_as_it_was_wanted(case, control):
    with reply_lost(control._access.steering):
        control.add("report", **HOURLY)
    assert control.update("report", task="shop.other").task == "shop.other"
