"""Operators ask what came about, why, who lives, and whether all is well."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from celery_redlock_beat import Control, ControlError, NoSuchEntry, RedlockScheduler
from celery_redlock_beat.ledger import Settlement
from celery_redlock_beat.ticks import SECOND, Reason, Tick, skipped, to_datetime
from ledger.places import MINUTE, NAMESPACE
from support.control_case import HOUR, HOURLY, OTHERWISE, Case, app_on, last_due
from support.servers import wait_until


@pytest.fixture
def case(case):
    case.control.add("report", **HOURLY)
    return case


@pytest.fixture
def due(case):
    """Return the last tick, of which three before are neither sent nor skipped."""
    due = last_due(case.place.now())
    case.set_mark("report", due - 4 * HOUR)
    return due


def why(control, at, name="report"):
    return control.why(name, to_datetime(at))


class TestTheHistory:
    def test_it_is_told_newest_first_with_ids_of_messages(self, case, control, due):
        case.sends("report", due, {Reason.SUPERSEDED: 3})
        newest, first = control.history("report")
        assert (newest.action, newest.reason, newest.entry) == ("sent", "", "report")
        assert newest.tick == to_datetime(due)
        assert newest.previous == to_datetime(due - 4 * HOUR)
        assert newest.passed == {"superseded": 3}
        assert newest.task_id == Tick("report", due).task_id(NAMESPACE)
        assert newest.node == case.node.node
        since = (case.place.now() - due) / SECOND
        assert since - 60 < newest.lateness <= since
        assert not newest.taken_over
        assert (first.action, first.task_id, first.lateness) == ("added", "", 0)
        assert control.get("report").last.task_id == newest.task_id

    def test_it_is_of_those_that_are_meant_and_so_many(self, control):
        for name in ("a:1", "a:2"):
            control.add(name, task="mail.send", schedule=30, tags=["mail"])
        assert [each.entry for each in control.history()] == ["a:2", "a:1", "report"]
        assert [each.entry for each in control.history("a:*")] == ["a:2", "a:1"]
        assert [each.entry for each in control.history(tag="mail")] == ["a:2", "a:1"]
        assert [each.entry for each in control.history(task="mail.*", number=1)] == ["a:2"]

    def test_it_is_also_of_those_that_are_gone(self, case, control):
        control.remove("report")
        assert case.actions("report") == ["removed", "added"]
        with pytest.raises(NoSuchEntry):
            control.history("never was")

    def test_a_fixed_task_id_is_that_of_its_messages(self, case, control):
        control.add("fixed", **HOURLY, options={"task_id": "mine"})
        due = last_due(case.place.now())
        case.set_mark("fixed", due - HOUR)
        case.sends("fixed", due)
        assert control.history("fixed", number=1)[0].task_id == "mine"

    def test_it_is_read_in_chunks_as_far_as_needed(self, case, control):
        for number in range(1200):
            case.client.xadd(case.keys["history"], _row(f"e{number % 3}", number))
        case.client.xadd(case.keys["history"], {"strange": "row"})
        assert len(control.history("e1", number=10_000)) == 400

    def test_it_can_be_off(self, shared_redis):
        case = Case(shared_redis, redlock_beat_history=0)
        try:
            case.control.add("report", **HOURLY)
            assert case.control.history() == []
            due = last_due(case.place.now())
            case.set_mark("report", due)
            assert "the history is off" in why(case.control, due - HOUR).text
        finally:
            case.close()

    def test_what_is_no_stream_is_no_history(self, case, control):
        case.client.delete(case.keys["history"])
        case.client.set(case.keys["history"], "text")
        assert control.history() == []


class TestWhy:
    def test_a_tick_was_sent_or_late(self, case, control, due):
        case.sends("report", due)
        told = why(control, due)
        assert told.answer == "late"
        assert "it was sent 3" in told.text
        assert told.record.tick == told.at == to_datetime(due)

    def test_an_open_one_is_being_sent_and_what_it_passed_over_waits_for_it(
        self, case, control, due
    ):
        case.grant("report", due)
        assert why(control, due).answer == "open"
        assert f"node {case.node.node} is sending it" in why(control, due).text
        assert why(control, due - HOUR).answer == "owed"

    def test_one_that_was_passed_over_says_why(self, case, control, due):
        case.sends("report", due, {Reason.SUPERSEDED: 3})
        told = why(control, due - HOUR)
        assert told.answer == "skipped"
        assert "a newer one was due by then" in told.text
        assert told.record.tick == to_datetime(due)
        assert why(control, due - HOUR - SECOND).answer == "not_a_tick"

    @pytest.mark.parametrize("reason", [each for each in Reason if each is not Reason.DATA_LOSS])
    def test_each_reason_has_a_sentence(self, case, control, due, reason):
        grant = case.grant("report", due)
        case.node.settle([Settlement(grant, skipped(reason))])
        told = why(control, due)
        assert told.answer == "skipped"
        assert len(told.text) > len("it was not sent: ") + len(reason)

    def test_in_doubt(self, case, control, due):
        grant = case.grant("report", due)
        case.node.settle([Settlement(grant, skipped(Reason.DATA_LOSS))])
        assert why(control, due).answer == "in_doubt"

    @pytest.mark.parametrize(
        ("deed", "told"),
        [
            (lambda control: control.resume("report"), "paused; it ended when"),
            (lambda control: control.update("report", schedule=OTHERWISE), ""),
            (lambda control: control.remove("report"), "removed; it ended when"),
        ],
    )
    def test_what_a_deed_ended_says_so(self, control, due, deed, told):
        control.pause("report")
        deed(control)
        found = why(control, due - HOUR)
        # Of a schedule that was changed, it is no tick any more.
        assert found.answer == ("skipped" if told else "not_a_tick")
        assert told in found.text

    def test_what_is_due_and_not_asked_for_is_owed(self, case, control, due):
        told = why(control, due)
        assert told.answer == "owed"
        assert "no node has asked for it yet" in told.text
        case.client.delete(case.keys["nodes"])
        assert "no node lives: start one" in why(control, due).text

    def test_what_comes_says_how_it_stands(self, control):
        first, second = (each.tick for each in control.upcoming(2, "report"))
        assert control.why("report", first).answer == "ahead"
        control.skip("report", first)
        assert control.why("report", first).answer == "to_be_skipped"
        control.pause("report", note="deploy", until=second - timedelta(minutes=1))
        assert control.why("report", second).answer == "ahead"
        control.pause("report", note="deploy")
        told = control.why("report", second)
        assert told.answer == "paused"
        assert "by anna@here (deploy)" in told.text
        control.resume("report")
        control.disable("report")
        assert "disabled" in control.why("report", second).text

    def test_with_a_jitter_it_says_when(self, control):
        control.update("report", jitter=600)
        (first,) = control.upcoming(1, "report")
        assert first.tick < first.due
        assert "by its jitter at" in control.why("report", first.tick).text

    def test_what_was_before_is_not_recorded(self, case, control):
        told = control.why("report", to_datetime(last_due(case.place.now()) - 24 * HOUR))
        assert told.answer == "not_recorded"
        assert "due before the entry" in told.text

    def test_the_last_outcome_is_known_without_a_history(self, case, control, due):
        case.sends("report", due)
        case.client.delete(case.keys["history"])
        assert why(control, due).answer == "late"
        assert why(control, due - HOUR).answer == "not_recorded"
        case.control.pause("report")
        assert "the history begins" in why(control, due - HOUR).text

    def test_one_of_an_entry_that_was_removed_says_so(self, case, control):
        control.remove("report")
        told = control.why("report", datetime.now(UTC) + timedelta(hours=1))
        assert told.answer == "not_a_tick"
        assert "the entry was removed by anna@here" in told.text
        assert told.record.action == "removed"
        told = control.why("report", datetime.now(UTC) - timedelta(days=1))
        assert told.answer == "not_recorded"
        assert "the entry was removed by anna@here" in told.text
        with pytest.raises(NoSuchEntry):
            control.why("rep*", datetime.now(UTC))

    def test_of_a_bad_entry_and_of_none(self, case, control):
        case.app.conf.beat_schedule = {"bad": {"task": "x", "schedule": "nonsense"}}
        assert "no node can send it" in control.why("bad", datetime.now(UTC)).text
        with pytest.raises(NoSuchEntry, match="did you mean 'report'"):
            control.why("repotr", datetime.now(UTC))
        with pytest.raises(ControlError, match="no offset"):
            control.why("report", datetime(2030, 1, 1))

    def test_one_that_has_run_as_often_as_it_may(self, case, control):
        control.update("report", max_runs=1)
        due = last_due(case.place.now())
        case.set_mark("report", due - HOUR)
        case.sends("report", due)
        assert control.get("report").state == "finished"
        told = control.why("report", to_datetime(due + HOUR))
        assert "as often as it may" in told.text


class TestNodes:
    def test_they_are_told_as_they_told_of_themselves(self, case, control):
        case.tells(
            version="1.0",
            host="here",
            pid=7,
            started=1_900_000_000_000_000,
            offset=0.5,
            schedule="abc",
            entries=3,
            bad=0,
            lateness=0.25,
            ready=True,
            left=False,
        )
        (node,) = control.nodes()
        assert (node.id, node.alive, node.left) == (case.node.node, True, False)
        assert (node.host, node.pid, node.version) == ("here", 7, "1.0")
        assert (node.offset, node.lateness, node.ready) == (0.5, 0.25, True)
        assert (node.entries, node.bad_entries, node.schedule) == (3, 0, "abc")
        assert node.started == to_datetime(1_900_000_000_000_000)
        assert node.remarks == []

    def test_what_is_odd_beside_the_others_is_remarked(self, case, control):
        nodes = [case.node, *(case.place.node() for _ in range(3))]
        for node in nodes[:3]:
            case.tells(node, version="2.0", schedule="abc", offset=0.0)
        case.tells(nodes[3], version="1.0", schedule="other", offset=-3.0)
        odd = {node.id: node.remarks for node in control.nodes()}[nodes[3].node]
        assert odd == [
            "version 1.0, and others have 2.0",
            "its schedule from code is another one than that of most nodes",
            "its clock is 3 s behind the ledger's",
        ]
        assert sum(bool(node.remarks) for node in control.nodes()) == 1
        assert len(control.health().warnings) == 3

    def test_the_silent_and_the_left_come_last(self, case, control):
        case.place.set_heartbeat("silent", case.place.now() - 90 * SECOND)
        leaver = case.place.node()
        case.tells(leaver, version="1.0")
        leaver.depart('{"left": true}')
        assert [node.remarks for node in control.nodes()] == [
            [],
            ["it has left"],
            ["silent for 1 min 30 s"],
        ]
        assert control.health().nodes == 1

    @pytest.mark.parametrize(
        "told",
        ["not json", "[]", '{"pid": "x", "offset": NaN, "bad": true, "started": -1}', "[" * 9999],
    )
    def test_whatever_one_tells_it_is_a_node(self, case, control, told):
        case.client.hset(case.keys["beats"], case.node.node, told)
        (node,) = control.nodes()
        assert (node.alive, node.pid, node.offset, node.bad_entries) == (True, 0, None, None)


class TestHealth:
    def test_all_is_well(self, case, control):
        _began_long_ago(case)
        case.tells(ready=True, entries=1)
        health = control.health()
        assert (health.problems, health.warnings) == ([], [])
        assert (health.alive, health.ready, health.nodes) == (True, True, 1)
        assert health.entries == {"code": 1, "stored": 1, "paused": 0}
        assert (health.open, health.oldest_open) == (0, None)
        assert abs(health.now - datetime.now(UTC)) < timedelta(minutes=1)

    def test_an_empty_ledger_has_seen_no_node(self, shared_redis):
        with Control(app_on(shared_redis.url, shared_redis.url)) as control:
            health = control.health()
        assert not health.alive
        assert health.problems == ["the ledger is empty: no node has been here; start one"]

    def test_one_that_began_empty_just_now_may_have_lost_all(self, case, control):
        now = case.place.now()
        case.client.hset(case.keys["marks"], "began", now - 10 * SECOND)
        assert "import an export" in control.health().problems[0]
        case.client.hset(case.keys["marks"], "began", now - 3600 * SECOND)
        assert "import an export" in control.health().warnings[0]
        case.client.hset(case.keys["marks"], "began", now - 48 * 3600 * SECOND)
        assert control.health().warnings == []

    def test_without_a_live_node_nothing_is_sent(self, case, control):
        _began_long_ago(case)
        case.place.set_heartbeat(case.node.node, case.place.now() - 60 * SECOND)
        health = control.health()
        assert (health.alive, health.ready) == (False, False)
        (problem,) = health.problems
        assert "no node lives" in problem
        assert "the last heartbeat was 1 min" in problem

    def test_a_node_that_is_not_ready_says_why(self, case, control):
        _began_long_ago(case)
        case.tells(ready=False, host="here", problems=["the broker is away"])
        (problem,) = control.health().problems
        assert problem.endswith("on here is not ready: the broker is away")
        case.tells(ready=True, bad=2)
        assert "it leaves out 2 bad entries" in control.health().problems[0]

    def test_a_recovery_is_told(self, case, control):
        case.client.hset(case.keys["marks"], "recovering", "x")
        assert any("nodes tell what they remember" in each for each in control.health().problems)

    def test_open_ticks_that_nobody_finishes_are_told_unless_they_are_paused(
        self, case, control, due
    ):
        _began_long_ago(case)
        case.grant("report", due)
        case.ages_grant("report", due, case.place.now() - 60 * SECOND)
        health = control.health()
        assert (health.open, len(health.problems)) == (1, 1)
        assert "1 entry has an open tick that no node has taken" in health.problems[0]
        control.pause("report")
        assert control.health().problems == []

    def test_marks_ahead_are_told(self, case, control):
        _began_long_ago(case)
        ahead = case.place.now() + 60 * MINUTE
        case.set_mark("report", ahead)
        case.client.hset(case.keys["marks"], "fence", ahead + 1)  # given before it was set back
        (problem,) = control.health().problems
        assert "'report'" in problem
        assert "celery redlock repair --future" in problem

    def test_bad_entries_are_told_as_nodes_tell_them_and_not_all_of_many(self, case, control):
        _began_long_ago(case)
        case.tells(ready=False, bad=8, bad_names=[f"hand {number}" for number in range(7)])
        case.tells(case.place.node(), ready=True, bad=1, bad_names=["other"])
        (problem,) = [each for each in control.health().problems if "are bad" in each]
        assert problem.startswith("8 entries are bad, and are not sent: 'hand 0', 'hand 1', ")
        assert "'hand 4' and 3 more; see celery redlock list --state bad" in problem
        case.tells(ready=False, bad=1)
        assert not any("other" in each for each in control.health().problems[:2])

    def test_a_real_node_tells_of_a_stored_entry_that_is_bad(self, case, control):
        case.client.hset(case.keys["entries"], "hand", "not json")
        told = "1 entry is bad, and is not sent: 'hand';"
        node = RedlockScheduler(app=case.app)

        def is_told():
            node.tick()
            return any(each.startswith(told) for each in control.health().problems)

        try:
            wait_until(is_told, 20, "the node to tell of it", 0.05)
        finally:
            node.close()

    def test_a_name_that_is_no_text_stops_nothing(self, case, control):
        case.client.hset(case.keys["entries"], b"\xff", "{}")
        case.client.xadd(case.keys["history"], _row(b"\xff", 1))
        case.node.changes(0)
        assert [view.name for view in control.entries()] == ["pulse", "report"]
        assert len(control.history()) == 2
        case.tells(ready=False, bad=1, bad_names=["\udcff"])
        assert any("1 entry is bad" in problem for problem in control.health().problems)

    def test_the_tasks_of_the_app_need_not_be_there(self, case, control):
        _began_long_ago(case)
        case.app.conf.imports = ["no_such_module"]
        case.app.conf.beat_schedule = "nonsense"
        assert control.health().ready
        assert [node.alive for node in control.nodes()] == [True]
        assert control.totals() == {}

    def test_what_is_no_key_of_ours_is_told_by_others(self, case, control):
        for name in ("entries", "paused", "open", "nodes", "beats", "totals"):
            case.client.delete(case.keys[name])
            case.client.set(case.keys[name], "text")
        health = control.health()
        assert (health.nodes, health.open, health.entries) == (0, 0, {"stored": 0, "paused": 0})


def _began_long_ago(case):
    case.client.hset(case.keys["marks"], "began", 1)


def _row(entry, number):
    return {
        "entry": entry,
        "tick": number,
        "outcome": "sent",
        "node": "n",
        "fence": 1,
        "attempt": 1,
        "previous": number,
        "late": 0,
        "passed": "",
        "detail": "",
    }
