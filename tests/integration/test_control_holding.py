"""Operators hold entries back, let them go on, skip ticks, and send beside the schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.signals import before_task_publish
from redis import Redis

from celery_redlock_beat import (
    Control,
    ControlError,
    DeliveryError,
    EntryError,
    EntryPaused,
    NoSuchEntry,
    RedlockScheduler,
    TickRefused,
)
from celery_redlock_beat.control import State
from celery_redlock_beat.errors import BrokerUnreachable, LedgerRecovering
from celery_redlock_beat.ledger import Closing, Verdict
from celery_redlock_beat.testing.server import free_port
from celery_redlock_beat.ticks import SECOND, Tick, to_datetime
from ledger.places import MINUTE, claim, message
from support.control_case import HOURLY, Case, app_on, last_due


@pytest.fixture
def case(case):
    case.control.add("report", **HOURLY)
    return case


class TestPausing:
    def test_nothing_is_enqueued_after_it_has_returned(self, case, control):
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 60 * MINUTE)
        held = case.grant("report", noon)
        (view,) = control.pause("report", note="deploy")
        assert (view.state, view.next) == (State.PAUSED, None)
        assert (view.paused.note, view.paused.who) == ("deploy", "anna@here")
        assert view.paused.until is None
        assert abs(view.paused.since - datetime.now(UTC)) < timedelta(minutes=1)
        assert case.node.enqueue(held, [message(held.tick)], {}) is Closing.PAUSED
        assert case.place.queue() == []
        (record,) = control.history("report", number=1)
        assert (record.action, record.detail, record.node) == ("paused", "deploy", "anna@here")

    def test_what_was_due_meanwhile_is_skipped_when_it_is_resumed(self, case, control):
        noon = last_due(case.place.now())
        control.pause("report")
        case.set_mark("report", noon - 180 * MINUTE)
        (view,) = control.resume("report", note="done")
        assert (view.state, view.paused) == (State.ACTIVE, None)
        assert case.place.totals() == {"skipped:paused": 3}
        assert claim(case.node, Tick("report", noon)).verdict is Verdict.SETTLED
        (record,) = control.history("report", number=1)
        assert (record.action, record.passed, record.detail) == ("resumed", {"paused": 3}, "done")

    def test_it_is_caught_up_if_that_is_wanted(self, case, control):
        noon = last_due(case.place.now())
        control.pause("report")
        case.set_mark("report", noon - 180 * MINUTE)
        control.resume("report", catch_up=True)
        assert case.place.totals() == {}
        assert claim(case.node, Tick("report", noon)).verdict is Verdict.GRANTED

    def test_what_is_being_sent_stays_open_and_what_was_given_up_ends(self, case, control):
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 120 * MINUTE)
        given_up, held = (case.grant("report", at) for at in (noon - 60 * MINUTE, noon))
        case.ages_grant("report", given_up.tick.at, case.place.now() - SECOND)
        control.pause("report")
        control.resume("report")
        assert list(case.place.open_ticks()) == [held.tick]
        assert case.place.totals() == {"skipped:paused": 1}
        assert case.node.enqueue(held, [message(held.tick)], {}) is Closing.DONE

    def test_a_pause_until_an_instant_counts_up_to_that(self, case, control):
        (view,) = control.pause("report", until=timedelta(hours=2))
        assert timedelta(minutes=119) < view.paused.until - datetime.now(UTC)
        held = [each.held for each in control.upcoming(4, "report")]
        assert held == ["paused", "paused", "", ""]
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 180 * MINUTE)
        set_end(case, "report", noon - 90 * MINUTE)
        control.resume("report")
        assert case.place.totals() == {"skipped:paused": 1}

    @pytest.mark.parametrize(
        ("until", "told"),
        [
            (timedelta(seconds=-1), "is over"),
            (datetime(2020, 1, 1, tzinfo=UTC), "is over"),
            (datetime(2040, 1, 1), "has no offset from UTC"),
            (timedelta.max, "is later than 2255"),
            (datetime.max.replace(tzinfo=UTC), "is later than 2255"),
            (datetime.min.replace(tzinfo=UTC), "is over"),
            ("2h", "neither an aware datetime nor a timedelta"),
            (5, "neither an aware datetime nor a timedelta"),
        ],
    )
    def test_its_end_must_be_ahead_and_clear(self, control, until, told):
        with pytest.raises(ControlError, match=told):
            control.pause("report", until=until)
        assert control.get("report").paused is None

    def test_what_is_not_paused_is_resumed_without_a_word(self, case, control):
        control.pause("pulse")
        answer = control.resume("pulse", "report")
        assert [view.state for view in answer] == [State.ACTIVE] * 2
        assert answer.names == ("pulse",)
        assert case.actions("report") == ["added"]

    def test_one_that_is_over_holds_nothing_back_also_before_a_node_ended_it(self, case, control):
        control.pause("report", until=timedelta(hours=2))
        set_end(case, "report", case.place.now() - MINUTE)
        view = control.get("report")
        assert (view.state, view.paused) == (State.ACTIVE, None)
        assert view.next == control.upcoming(1, "report")[0].tick
        assert control.entries(state="paused") == []
        assert [each.entry for each in control.fire("report")] == ["report"]
        assert control.resume("report").names == ("report",)

    def test_of_what_was_due_before_it_was_over_why_says_that_it_is_skipped(self, case, control):
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 60 * MINUTE)
        control.pause("report", until=timedelta(hours=2))
        set_end(case, "report", noon + SECOND)
        told = control.why("report", to_datetime(noon))
        assert told.answer == "paused"
        assert "it is counted as skipped with the next tick" in told.text

    def test_a_pause_that_was_written_by_hand_can_be_ended(self, case, control):
        case.client.hset(case.keys["paused"], "report", "7 by hand")
        assert control.get("report").paused.note == "by hand"
        (view,) = control.resume("report")
        assert view.paused is None

    def test_entries_from_code_are_paused_before_any_node_knows_them(self, case, control):
        assert [view.name for view in control.pause(all=True)] == ["pulse", "report"]
        assert [view.name for view in control.entries(state="paused")] == ["pulse", "report"]
        assert [view.state for view in control.resume("*")] == [State.ACTIVE] * 2

    def test_a_bad_entry_can_be_held_back_too(self, case, control):
        case.app.conf.beat_schedule = {"bad": {"task": "x", "schedule": "nonsense"}}
        (view,) = control.pause("bad")
        assert view.paused is not None
        (view,) = control.resume("bad")
        assert view.paused is None

    def test_a_pause_of_an_entry_that_is_gone_is_counted_and_can_be_ended(self, case, control):
        case.app.conf.beat_schedule = {"old": {"task": "x", "schedule": 30}}
        control.pause("old")
        case.app.conf.beat_schedule = {}
        assert control.health().entries["paused"] == 1
        with pytest.raises(NoSuchEntry):
            control.get("old")
        answer = control.resume("o*")
        assert answer.names == ("old",)
        assert [(view.name, view.state, view.paused) for view in answer] == [
            ("old", State.BAD, None)
        ]
        assert "neither stored nor in the code" in answer[0].problem
        assert case.actions("old") == ["resumed", "paused"]
        assert control.health().entries["paused"] == 0

    def test_where_a_timetable_fails_nobody_can_count(self, case, control):
        class Failing:
            fingerprint = "failing"

            def next_after(self, _moment):
                raise RuntimeError("no idea")

            latest_until = next_after

            def count_between(self, _after, _before):
                raise RuntimeError("no idea")

        case.app.conf.beat_schedule = {"own": {"task": "x", "schedule": Failing()}}
        case.registers("own")
        case.set_mark("own", case.place.now() - MINUTE)
        control.pause("own")
        with pytest.raises(EntryError, match=r"no idea.*resume it with catch_up"):
            control.resume("own")
        (view,) = control.resume("own", catch_up=True)
        assert view.state is State.BAD
        assert "no idea" in view.problem
        assert control.upcoming(1, "own") == []


class TestSkipping:
    def test_a_tick_is_skipped_when_it_is_due_and_no_other(self, case, control):
        first, second = control.upcoming(2, "report")
        view = control.skip("report", first.tick, note="holiday")
        assert (list(view.unwanted), view.next) == ([first.tick], second.tick)
        assert [each.held for each in control.upcoming(2, "report")] == ["skip", ""]
        (record,) = control.history("report", number=1)
        assert (record.action, record.tick, record.detail) == (
            "to_be_skipped",
            first.tick,
            "holiday",
        )

    def test_to_say_it_twice_is_to_say_it_once(self, case, control):
        (first,) = control.upcoming(1, "report")
        control.skip("report", first.tick)
        control.skip("report", first.tick)
        assert case.actions("report").count("to_be_skipped") == 1

    def test_the_node_that_claims_it_is_told(self, case, control):
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 60 * MINUTE)
        control.skip("report", to_datetime(noon))
        assert case.grant("report", noon).unwanted

    def test_what_is_no_tick_or_too_late_is_refused(self, case, control):
        noon = last_due(case.place.now())
        case.set_mark("report", noon - 60 * MINUTE)
        with pytest.raises(TickRefused, match="is no tick of it; the next one is 20"):
            control.skip("report", to_datetime(noon + 1))
        case.grant("report", noon)
        with pytest.raises(TickRefused, match="it is being sent just now"):
            control.skip("report", to_datetime(noon))
        with pytest.raises(TickRefused, match="it was sent or skipped already"):
            control.skip("report", to_datetime(noon - 60 * MINUTE))
        with pytest.raises(TickRefused, match="no node has made the entry known"):
            control.skip("pulse", control.upcoming(1, "pulse")[0].tick)
        with pytest.raises(ControlError, match="no offset"):
            control.skip("report", datetime(2040, 1, 1))
        with pytest.raises(ControlError, match="the tick must be an aware datetime"):
            control.skip("report", "noon")

    def test_one_before_the_entry_was_known_was_neither_sent_nor_skipped(self, case, control):
        noon = last_due(case.place.now())
        with pytest.raises(TickRefused, match="due before the entry, or its present schedule"):
            control.skip("report", to_datetime(noon - 24 * 60 * MINUTE))


class TestFiring:
    def test_a_message_is_sent_as_a_node_does_and_the_schedule_stays(self, case, control):
        control.update("report", args=[1], kwargs={"a": 2}, options={"shadow": "it"})
        before = case.place.record("report")
        (fired,) = control.fire("report", note="by hand")
        assert (fired.entry, fired.already) == ("report", False)
        (sent,) = _sent(case)
        headers = sent["headers"]
        assert headers["id"] == fired.task_id
        assert (headers["task"], headers["shadow"]) == ("shop.report", "it")
        assert (headers["redlock_entry"], headers["redlock_fired_by"]) == ("report", "anna@here")
        assert headers["periodic_task_name"] == "report"
        assert case.place.record("report") == before
        assert control.totals() == {"fired": 1}
        (record,) = control.history("report", number=1)
        assert (record.action, record.task_id, record.detail) == (
            "fired",
            fired.task_id,
            "by hand",
        )

    def test_a_key_sends_once_whoever_asks(self, case, control):
        (first,) = control.fire("pulse", key="2030-01")
        with Control(case.app, who="bob@there") as other:
            (second,) = other.fire("pulse", key="2030-01")
            (third,) = other.fire("pulse", key="2030-02")
        assert second.already
        assert second.task_id == first.task_id
        assert third.task_id != first.task_id
        assert len(_sent(case)) == 2

    def test_an_empty_key_is_refused(self, case, control):
        with pytest.raises(ControlError, match="key is empty: give one that names what"):
            control.fire("pulse", key="")
        assert _sent(case) == []

    def test_without_a_key_each_sends(self, case, control):
        assert control.fire("pulse")[0].task_id != control.fire("pulse")[0].task_id
        assert len(_sent(case)) == 2

    def test_what_is_held_back_is_sent_only_by_force(self, case, control):
        control.pause("report")
        with pytest.raises(EntryPaused, match="is paused"):
            control.fire("report", "pulse")
        assert _sent(case) == []
        control.fire("report", force=True)
        control.resume("report")
        control.disable("report")
        with pytest.raises(EntryPaused, match="is disabled"):
            control.fire("report")
        assert len(_sent(case)) == 1

    def test_a_pattern_leaves_out_what_is_held_back(self, case, control, caplog):
        control.pause("report")
        assert [each.entry for each in control.fire(all=True)] == ["pulse"]
        assert "'report' is paused" in caplog.text

    def test_one_that_was_paused_between_look_and_push_is_not_sent(self, case, control):
        fire = control._access.steering.fire

        def pause_first(shot, step, commands=()):
            with Control(case.app) as other:
                other.pause(shot.entry)
            return fire(shot, step, commands)

        control._access.steering.fire = pause_first
        with pytest.raises(EntryPaused):
            control.fire("pulse")
        assert _sent(case) == []

    def test_a_fixed_task_id_is_kept_and_has_no_keys(self, case, control):
        control.add("fixed", **HOURLY, options={"task_id": "mine"})
        with pytest.raises(ControlError, match="fix the 'task_id'"):
            control.fire("fixed", key="k")
        assert [control.fire("fixed")[0].task_id for _ in range(2)] == ["mine", "mine"]
        assert [each["headers"]["id"] for each in _sent(case)] == ["mine", "mine"]

    def test_a_bad_entry_cannot_be_sent(self, case, control):
        case.app.conf.beat_schedule = {"bad": {"task": "x", "schedule": "nonsense"}}
        with pytest.raises(EntryError, match="nonsense"):
            control.fire("bad")

    def test_an_apply_async_of_the_users_own_is_used(self, case):
        class Own(RedlockScheduler):
            def apply_async(self, entry, *args, **kwargs):
                entry.kwargs = {**(entry.kwargs or {}), "mine": True}
                return super().apply_async(entry, *args, **kwargs)

        case.app.conf.beat_scheduler = Own
        seen = []

        def look(body, **_):
            seen.append(body[1])

        before_task_publish.connect(look)
        try:
            with Control(case.app) as control:
                control.fire("pulse")
        finally:
            before_task_publish.disconnect(look)
        assert seen == [{"mine": True}]

    def test_what_makes_no_message_is_an_error(self, case):
        class Declines(RedlockScheduler):
            def apply_async(self, *_args, **_kwargs):
                return None

        case.app.conf.beat_scheduler = Declines
        with Control(case.app) as control, pytest.raises(DeliveryError, match="no message came"):
            control.fire("pulse", key="k")


class TestFiringThroughAnotherBroker:
    def test_it_is_reserved_published_and_noted(self, shared_redis):
        url = f"{shared_redis.url[:-1]}5"
        case = Case(shared_redis, broker=url)
        try:
            (first,) = case.control.fire("pulse", key="k")
            (second,) = case.control.fire("pulse", key="k")
            assert (first.already, second.already) == (False, True)
            with Redis.from_url(url, protocol=2) as broker:
                assert broker.llen("celery") == 1
            assert case.control.totals() == {"fired": 1}
            case.control.pause("pulse")
            with pytest.raises(EntryPaused):
                case.control.fire("pulse", key="other")
        finally:
            case.close()

    def test_what_was_certainly_not_sent_can_be_sent_again(self, shared_redis):
        case = Case(shared_redis, broker=f"redis://127.0.0.1:{free_port()}/0")
        try:
            for _ in range(2):
                with pytest.raises(BrokerUnreachable):
                    case.control.fire("pulse", key="k")
            assert case.control.totals() == {}
            assert case.client.zcard(case.keys["fired"]) == 0
        finally:
            case.close()


@pytest.mark.parametrize("text", ["caf\udce9", b"note", None])
def test_what_is_no_text_that_can_be_kept_is_refused_and_nothing_is_done(case, control, text):
    tick = control.upcoming(1, "report")[0].tick
    for deed in (
        lambda: control.pause("report", note=text),
        lambda: control.resume("report", note=text),
        lambda: control.skip("report", tick, note=text),
        lambda: control.fire("report", note=text),
        lambda: control.add("other", **HOURLY, note=text),
        lambda: control.update("report", max_runs=3, note=text),
        lambda: control.replace("report", control.get("report").definition, note=text),
        lambda: control.disable("report", note=text),
        lambda: control.import_({"other": control.get("report").definition}, note=text),
        lambda: control.remove("report", note=text),
    ):
        with pytest.raises(ControlError, match="note"):
            deed()
    assert case.actions() == ["added"]


def test_nor_is_a_key_or_who_it_is(case, control):
    with pytest.raises(ControlError, match=r"key = 'k\\udce9' cannot be written as UTF-8"):
        control.fire("report", key="k\udce9")
    with pytest.raises(ControlError, match=r"who = .* cannot be written as UTF-8"):
        Control(case.app, who="andr\udce9")


def test_a_user_with_odd_bytes_is_somebody_too(case, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "andr\udce9")
    with Control(case.app) as control:
        assert control.pause("report")[0].paused.who.startswith("andr?@")


def test_while_nodes_tell_what_they_remember_a_deed_waits(case, control):
    case.place.restart()
    assert control.pause("report")[0].state is State.PAUSED


def test_it_does_not_wait_for_ever(case, control, monkeypatch):
    monkeypatch.setattr("celery_redlock_beat.control.access.LONGEST_RECOVERY", 0.1)
    case.place.restart()
    with pytest.raises(LedgerRecovering):
        control.pause("report")


def test_it_is_asked_by_somebody(shared_redis):
    control = Control(app_on(shared_redis.url, shared_redis.url))
    assert "@" in control._access.who


def test_to_make_one_touches_no_network():
    dead = f"redis://127.0.0.1:{free_port()}/0"
    app = Celery("shop", broker=dead, set_as_current=False)
    Control(app).close()


def set_end(case, name, ends):
    """Set the end of a pause, as if it had been said so when it began."""
    revision, _, kept = case.client.hget(case.keys["paused"], name).decode().split(" ", 2)
    case.client.hset(case.keys["paused"], name, f"{revision} {ends} {kept}")


def _sent(case):
    return case.messages()
