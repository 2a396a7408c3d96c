"""The checker finds each planted fault as exactly that, and none in a run that has none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from celery_redlock_beat.ticks import SECOND, Tick
from celery_redlock_beat.verify.account import account_for
from celery_redlock_beat.verify.arrivals import Arrival
from celery_redlock_beat.verify.books import Books, Memory
from celery_redlock_beat.verify.checker import Rules, judge

NAMESPACE = "shop"
T0 = 1_700_000_000 * SECOND
SINCE = T0 - SECOND // 2  # so that T0 is the first instant
LATE = SECOND
RULES = Rules(LATE, NAMESPACE)
FAULTS = ("doubled", "other_id", "early", "late", "lost", "off_grid")


def came(second: float, *, entry="a", delay=0.01, passed_over=0, **fields) -> Arrival:
    tick = Tick(entry, T0 + round(second * SECOND))
    at = tick.at + round(delay * SECOND)
    headers = {"redlock_fence": str(tick.at + 1000), "redlock_passed_over": passed_over}
    return replace(Arrival(tick, tick.task_id(NAMESPACE), 1, at, headers=headers), **fields)


def run(seconds=10, entry="a") -> list[Arrival]:
    return [came(second, entry=entry) for second in range(seconds)]


def found(arrivals, last=9, **more) -> dict[str, tuple[float, ...]]:
    """The faults of a run of entry "a" from second 0 to ``last``, in seconds."""
    window = {"first": T0, "last": T0 + last * SECOND}
    verdict = judge(arrivals, "a", 1, **window, rules=RULES, **more)
    kinds = {name: getattr(verdict, name) for name in (*FAULTS, "skipped", "in_doubt", "open")}
    assert verdict.clean is not any(kinds.values())
    return {
        name: tuple((at - T0) / SECOND for at in instants)
        for name, instants in kinds.items()
        if instants
    }


# --- planted faults: what is done to a clean run, and what must be found

doubled = (lambda some: [*some, replace(some[3], at=some[3].at + 5)], {"doubled": (3,)})
early = (lambda some: [*some[:4], came(4, delay=-0.001), *some[5:]], {"early": (4,)})
late = (lambda some: [*some[:5], came(5, delay=1.1), *some[6:]], {"late": (5,)})
lost = (lambda some: [each for each in some if each.tick.at != T0 + 6 * SECOND], {"lost": (6,)})
off_grid = (lambda some: [*some, came(6.5)], {"off_grid": (6.5,)})
other_id = (lambda some: [*some[:1], came(1, task_id="x"), *some[2:]], {"other_id": (1,)})
resent = (
    lambda some: [*some, came(2, task_id="x", attempt=2)],
    {"doubled": (2,), "other_id": (2,)},
)
PLANTED = {
    "doubled": doubled,
    "early": early,
    "late": late,
    "lost": lost,
    "off_grid": off_grid,
    "other_id": other_id,
    "resent": resent,
}


def test_a_run_without_faults_has_none():
    assert found(run()) == {}


@pytest.mark.parametrize("name", PLANTED)
def test_each_planted_fault_is_found_as_exactly_that(name):
    plant, expected = PLANTED[name]
    assert found(plant(run())) == expected


@pytest.mark.parametrize("one", PLANTED)
@pytest.mark.parametrize("other", PLANTED)
def test_no_fault_hides_another(one, other):
    arrivals, expected = run(), {}
    for plant, kinds in (PLANTED[one], PLANTED[other]):
        if not all(instants == expected.get(kind) for kind, instants in kinds.items()):
            arrivals = plant(arrivals)
        for kind, instants in kinds.items():
            expected[kind] = tuple(sorted({*expected.get(kind, ()), *instants}))
    assert found(arrivals) == expected


def test_the_first_of_two_messages_decides_whether_a_tick_was_early_or_late():
    assert found([*run(), came(3, delay=2)]) == {"doubled": (3,)}
    assert found([*run(), came(3, delay=-1)]) == {"doubled": (3,), "early": (3,)}


def test_another_attempt_may_come_under_the_same_id_where_messages_are_published():
    rules = Rules(namespace=NAMESPACE, resends=True)
    again = came(3, attempt=2)
    verdict = judge([*run(), again], "a", 1, rules=rules)
    assert verdict.clean
    assert verdict.resent == (again.tick.at,)
    for more in ([came(3)], [again, again], [came(3, attempt=2, task_id="x")]):
        assert judge([*run(), *more], "a", 1, rules=rules).doubled == (again.tick.at,)


def test_what_happens_to_one_entry_is_no_matter_of_another():
    for plant, _ in PLANTED.values():
        assert found([*run(), *map(as_of_b, plant(run()))]) == {}


def as_of_b(arrival: Arrival) -> Arrival:
    return replace(arrival, tick=Tick("b", arrival.tick.at))


@st.composite
def clean_runs(draw) -> list[Arrival]:
    delays = draw(st.lists(st.floats(0, 1), min_size=2, max_size=10))
    some = [came(second, delay=delay) for second, delay in enumerate(delays)]
    return draw(st.permutations([*some, *run(len(some), "b")]))


@given(clean_runs())
def test_any_clean_run_is_clean(arrivals):
    assert found(arrivals, len(arrivals) // 2 - 1) == {}


@given(clean_runs(), st.data())
def test_any_single_fault_is_found_and_nothing_else(arrivals, data):
    victim = data.draw(st.sampled_from([each for each in arrivals if each.tick.entry == "a"]))
    others = [each for each in arrivals if each is not victim]
    kind = data.draw(st.sampled_from(FAULTS))
    second = (victim.tick.at - T0) / SECOND
    by = data.draw(st.integers(1, 100 * SECOND))
    changed = {
        "doubled": [victim, replace(victim, at=victim.at + by)],
        "other_id": [replace(victim, task_id="x")],
        "early": [replace(victim, at=victim.tick.at - by)],
        "late": [replace(victim, at=victim.tick.at + LATE + by)],
        "lost": [],
        "off_grid": [victim, came(second + data.draw(st.integers(1, 999_999)) / SECOND)],
    }[kind]
    last = len(arrivals) // 2 - 1
    instants = (second,)
    if kind == "off_grid":
        instants = (pytest.approx((changed[1].tick.at - T0) / SECOND),)
        last += 1
        others.append(came(last))
    assert found([*others, *changed], last) == {kind: instants}


# --- what the ledger or a later message says of ticks that did not come


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("open", "open"),
        ("skipped:grace", "skipped"),
        ("in_doubt:data_loss", "in_doubt"),
        ("sent", "lost"),
        ("nonsense", "lost"),
    ],
)
def test_the_ledger_can_excuse_that_nothing_came_but_not_by_calling_it_sent(word, kind):
    plant, _ = lost
    assert found(plant(run()), told={T0 + 6 * SECOND: word}) == {kind: (6,)}


def test_the_ledger_can_excuse_nothing_else():
    for name in set(PLANTED) - {"lost"}:
        plant, expected = PLANTED[name]
        told = {T0 + second * SECOND: "in_doubt:data_loss" for second in range(10)}
        assert found(plant(run()), told=told) == expected


def test_a_message_excuses_as_many_ticks_right_before_it_as_it_says():
    some = [came(0), came(1), came(5, passed_over=2), came(6)]
    assert found(some, 6) == {"lost": (2,), "skipped": (3, 4)}
    assert found([came(0), came(2, passed_over=5)], 2) == {"skipped": (1,)}


# --- the account: messages against the ledger's counts


def books(seconds=10, *, told=None, opened=(), **totals) -> Books:
    """The books after a run, with these totals besides those of a clean one."""
    mark = T0 + (seconds - 1) * SECOND
    return Books(
        marks={"a": mark},
        since={"a": SINCE},
        open=frozenset(Tick("a", T0 + second * SECOND) for second in opened),
        totals={"sent": seconds} | totals,
        told={Tick("a", T0 + second * SECOND): word for second, word in (told or {}).items()},
    )


def faults(arrivals, present, earlier=()) -> dict[str, object]:
    memory = reduce(Memory.then, earlier, Memory())
    last = T0 + 9 * SECOND
    return account_for(arrivals, ["a"], {"a": SINCE}, last, present, memory=memory).faults


def seconds_of(*seconds):
    return tuple(T0 + second * SECOND for second in seconds)


def without(*seconds):
    return [each for each in run() if each.tick.at not in seconds_of(*seconds)]


def test_a_clean_run_with_fitting_counts_has_no_faults():
    assert faults(run(), books()) == {}


def test_a_message_that_was_not_counted_is_found_although_it_was_due():
    assert faults(run(), books(sent=9)) == {"unaccounted": 1, "uncounted": 1}


def test_a_message_that_was_counted_and_never_came_is_found_twice():
    assert faults(without(6), books()) == {"a lost": seconds_of(6), "uncounted": -1}


def test_a_tick_that_nobody_counted_is_unaccounted_for():
    assert faults(without(6), books(sent=9)) == {"a lost": seconds_of(6), "unaccounted": 1}


def test_a_tick_that_was_counted_twice_is_found_by_the_count_alone():
    assert faults(run(), books(**{"skipped:grace": 1})) == {"unaccounted": -1}
    assert faults(run(), books(sent=11)) == {"unaccounted": -1, "uncounted": -1}


def test_a_grant_older_than_its_tick_is_premature_though_its_message_came_later():
    headers = {"redlock_fence": str(T0 + 3 * SECOND - 1)}
    some = [*without(3), came(3, headers=headers)]
    assert faults(some, books()) == {"premature": 1}


def test_a_tick_of_a_complete_entry_that_was_skipped_or_left_open_is_a_fault_but_not_lost():
    skipped = books(sent=9, told={6: "skipped:error"}, **{"skipped:error": 1})
    assert faults(without(6), skipped) == {"a skipped": seconds_of(6)}
    left_open = books(sent=9, told={6: "open"}, opened=[6])
    assert faults(without(6), left_open) == {"a open": seconds_of(6)}


def test_a_tick_in_doubt_may_have_come_or_not_and_is_no_fault():
    in_doubt = {"told": {6: "in_doubt:data_loss"}, "sent": 9, "in_doubt:data_loss": 1}
    assert faults(without(6), books(**in_doubt)) == {}
    assert faults(run(), books(**in_doubt)) == {}


def test_more_that_is_missing_than_is_in_doubt_is_lost():
    in_doubt = {"told": {6: "in_doubt:data_loss"}, "sent": 8, "in_doubt:data_loss": 1}
    told = faults(without(6, 7), books(**in_doubt))
    assert told == {"a lost": seconds_of(7), "unaccounted": 1}


# --- the account over a loss of data: the totals are lost with the rest


def after_the_loss(told=(4, 5), **totals) -> Books:
    """The books of a ledger that had lost everything at second 5, when 4 had been noted before."""
    words = dict.fromkeys(told, "in_doubt:data_loss")
    return books(told=words, **{"sent": 4, "in_doubt:data_loss": len(told)} | totals)


BEFORE = books(5)  # with 0 to 4 sent; 5 was sent after that and before the loss


def test_what_was_counted_before_a_loss_counts():
    assert faults(run(), after_the_loss(), [BEFORE]) == {}
    assert faults(without(5), after_the_loss(), [BEFORE]) == {}


def test_without_the_books_from_before_the_counts_of_a_lossy_run_do_not_fit():
    assert set(faults(run(), after_the_loss())) == {"unaccounted", "uncounted"}


def test_what_is_missing_after_a_loss_and_not_in_doubt_is_lost():
    assert faults(without(7), after_the_loss(), [BEFORE]) == {"a lost": seconds_of(7)}
    told = faults(without(5), after_the_loss(told=()), [BEFORE])
    assert told == {"a lost": seconds_of(5), "unaccounted": 1}


def test_what_was_in_doubt_is_remembered_over_the_next_loss():
    first = books(7, told={4: "in_doubt:data_loss"}, **{"sent": 2, "in_doubt:data_loss": 1})
    second = books(told={7: "in_doubt:data_loss"}, **{"sent": 2, "in_doubt:data_loss": 1})
    assert faults(without(4, 7), second, [BEFORE, first]) == {}


def test_what_comes_twice_is_doubled_whatever_was_lost():
    assert faults([*run(), came(5)], after_the_loss(), [BEFORE]) == {"a doubled": seconds_of(5)}


def test_earlier_books_change_nothing_where_nothing_was_lost():
    assert faults(run(), books(), [books(3), books(8)]) == {}
    assert faults(run(), books(sent=9), [books(3)]) == {"unaccounted": 1, "uncounted": 1}


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=8))
def test_counts_go_on_over_any_number_of_losses(steps):
    """Each step counts some, and then perhaps everything is lost."""
    present, really, noted = 0, 0, []
    for number, is_lost in steps:
        present, really = present + number, really + number
        noted.append(Books({}, {}, frozenset(), {"sent": present} if present else {}))
        present = 0 if is_lost else present
    memory = reduce(Memory.then, noted, Memory())
    assert Counter(memory.totals)["sent"] <= really
    if not any(is_lost for _, is_lost in steps):
        assert (Counter(memory.totals)["sent"], memory.lossy) == (really, False)


# --- the books, as they are in Redis


def test_sentinels_in_the_keys_are_no_ticks(shared_redis):
    with shared_redis.client() as client:
        stem = "{redlock:shop}"
        client.hset(f"{stem}:marks", mapping={"identity": "x", "e:a": f"{T0} {SINCE} 7 2 every 1"})
        client.zadd(f"{stem}:open", {f"{T0}:a": 5, "": "inf"})
        grants = {
            f"{T0}:a": "open node 7 1 0 0",
            f"{T0 - SECOND}:a": "done 6 sent",
            f"{T0 - SECOND}:a:b": "done 5 in_doubt:data_loss",
            "": "1",
        }
        client.hset(f"{stem}:grants", mapping=grants)
        client.hset(f"{stem}:totals", mapping={"sent": 2, "in_doubt:data_loss": 1})
        read = Books.read(client, "shop")
    assert (read.marks, read.since) == ({"a": T0}, {"a": SINCE})
    assert read.open == {Tick("a", T0)}
    assert read.totals == {"sent": 2, "in_doubt:data_loss": 1}
    assert read.told == {
        Tick("a", T0): "open",
        Tick("a", T0 - SECOND): "sent",
        Tick("a:b", T0 - SECOND): "in_doubt:data_loss",
    }


def test_a_ledger_that_is_not_there_has_empty_books(shared_redis):
    with shared_redis.client() as client:
        assert Books.read(client, "shop") == Books({}, {}, frozenset(), {})
