"""The report of a run: its numbers, its verdict, and the same in plain text and for machines."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from dataclasses import replace

import pytest

from celery_redlock_beat.ticks import SECOND, Tick
from celery_redlock_beat.verify.account import Account, account_for
from celery_redlock_beat.verify.arrivals import Arrival
from celery_redlock_beat.verify.books import Books
from celery_redlock_beat.verify.checker import Rules, grid
from celery_redlock_beat.verify.report import COLUMNS, Report
from celery_redlock_beat.verify.rig import END
from celery_redlock_beat.verify.schedule import PERIODS
from celery_redlock_beat.verify.screen import plain_table, show

T0 = 1_700_000_000 * SECOND
LAST = T0 + 9 * SECOND
NAMESPACE = "shop"
SINCE = dict.fromkeys(PERIODS, T0 - 1)


def messages() -> list[Arrival]:
    return [came(Tick(entry, at)) for entry in PERIODS for at in due(entry)]


def due(entry):
    return grid(PERIODS[entry], T0, LAST)


def came(tick: Tick, **fields) -> Arrival:
    headers = {"redlock_fence": str(tick.at + 1)}
    return replace(
        Arrival(tick, tick.task_id(NAMESPACE), 1, tick.at + 9, headers=headers), **fields
    )


STRICT = Rules(namespace=NAMESPACE)


def report_on(arrivals, *, opened=(), told=None, troubles=(), rules=STRICT, **totals) -> Report:
    counts = Counter(sent=sum(len(due(entry)) for entry in PERIODS)) + Counter(totals)
    books = Books(dict.fromkeys(PERIODS, LAST), SINCE, frozenset(opened), counts, told or {})
    marks = {entry: due(entry)[-1] for entry in PERIODS}
    account = account_for(
        arrivals,
        PERIODS,
        SINCE,
        LAST,
        replace(books, marks=marks),
        rules=rules,
    )
    return Report(account, arrivals, Counter(kill=2, pause=1), tuple(troubles))


def test_a_run_as_it_should_be_is_good():
    report = report_on([*messages(), Arrival(None, END, 0, LAST)])
    assert report.good
    total = sum(len(due(entry)) for entry in PERIODS)
    assert report.totals["due"] == report.totals["sent once"] == total
    assert report.sentence == f"{total} ticks were due: each was sent once, through 3 faults."
    assert (report.unexplained, report.named) == ({}, [])


TICK = Tick("every second", T0 + 3 * SECOND)
STRAY = Tick("of someone else", T0)
BAD = {
    "doubled": ([came(TICK)], {}, "1 doubled"),
    "early": ([], {"at": TICK.at - 1}, "1 early"),
    "lost": ([], None, "1 lost, 1 ticks counted as sent that did not come"),
    "other id": ([], {"task_id": "x"}, "1 ticks with another task id than their own"),
    "granted too early": (
        [],
        {"headers": {"redlock_fence": TICK.at - 1}},
        "1 ticks granted before their instant",
    ),
    "not due": (
        [came(Tick("every second", T0 + 1))],
        {},
        "1 messages for instants that were not due, 1 ticks that came and were not counted as sent",
    ),
    "of no entry": (
        [came(STRAY)],
        {},
        "1 messages of no entry of this run, 1 ticks that came and were not counted as sent",
    ),
    "of a stock beat": ([Arrival(None, "y", 0, T0)], {}, "1 messages of no entry of this run"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_must_not_be_is_told_and_makes_it_bad(name):
    more, change, told = BAD[name]
    arrivals = [each for each in messages() if each.tick != TICK]
    arrivals += [*more, *([] if change is None else [came(TICK, **change)])]
    report = report_on(arrivals)
    assert not report.good
    assert report.sentence.endswith(f" ticks were due: {told}.")


@pytest.mark.parametrize(("name", "word"), [("doubled", "doubled"), ("lost", "lost")])
def test_the_ticks_that_are_wrong_are_named(name, word):
    more, change, _ = BAD[name]
    arrivals = [each for each in messages() if each.tick != TICK]
    arrivals += [*more, *([] if change is None else [came(TICK, **change)])]
    (line,) = report_on(arrivals).named
    assert line == f"{word}: every second @ 2023-11-14T22:13:23+00:00"


def test_of_many_wrong_ticks_the_first_are_named_and_the_others_counted():
    report = report_on([*messages(), *messages()])
    of_one = [line for line in report.named if "every 0.25 s" in line]
    assert len(of_one) == 6
    assert of_one[-1] == "doubled: every 0.25 s, 32 more"


@pytest.mark.parametrize(
    ("count", "told"),
    [
        ({"sent": 1}, "1 ticks counted that were not due, 1 ticks counted as sent that did not"),
        ({"sent": -1}, "1 ticks in no count of the ledger, 1 ticks that came and were not counted"),
        ({"skipped:grace": 1}, "1 ticks counted that were not due."),
    ],
)
def test_a_count_that_is_off_by_one_is_unexplained(count, told):
    report = report_on(messages())
    counts = dict(report.account.totals)
    for name, number in count.items():
        counts[name] = counts.get(name, 0) + number
    total = report.totals["due"]
    account = replace(
        report.account,
        totals=counts,
        unaccounted=total - sum(counts.values()),
        uncounted=total - counts["sent"],
    )
    changed = replace(report, account=account)
    assert not changed.good
    assert told in changed.sentence


def test_what_the_ledger_says_of_a_tick_that_did_not_come_explains_it():
    arrivals = [each for each in messages() if each.tick != TICK]
    report = report_on(arrivals, told={TICK: "skipped:error"}, **{"skipped:error": 1})
    sent = report.account.totals["sent"]
    account = replace(report.account, totals={"sent": sent - 1}, unaccounted=0, uncounted=0)
    report = replace(report, account=account)
    assert report.good
    assert "but for 1 skipped as the ledger says" in report.sentence


def test_a_tick_that_is_still_open_in_the_end_is_unexplained():
    arrivals = [each for each in messages() if each.tick != TICK]
    report = report_on(arrivals, opened=[TICK], told={TICK: "open"})
    assert report.unexplained["ticks still open at the end"] == 1
    assert report.totals["lost"] == 0


def test_what_came_again_as_it_may_is_told_and_no_fault():
    again = came(TICK, attempt=2)
    report = report_on([*messages(), again], rules=Rules(namespace=NAMESPACE, resends=True))
    assert report.good
    assert ", 1 again under the same id, through 3 faults." in report.sentence
    assert report.totals["sent once"] == report.totals["due"] - 1
    assert (report.totals["doubled"], report.totals["resent"]) == (0, 1)


def test_a_node_that_did_wrong_makes_it_bad():
    report = report_on(messages(), troubles=["node 1 had ended by itself"])
    assert not report.good
    assert "problems of nodes: 1" in report.sentence


def test_a_run_in_which_nothing_was_due_is_no_good_run():
    assert not Report(Account({})).good


def test_the_plain_table_has_a_row_per_entry_and_fits_a_terminal():
    lines = list(plain_table(report_on(messages())))
    assert len(lines) == len(PERIODS) + 3
    assert max(map(len, lines)) <= 80
    assert lines[-1].split()[:2] == ["all", str(report_on(messages()).totals["due"])]


@pytest.mark.parametrize("has_rich", [True, False])
def test_the_table_the_remarks_and_the_verdict_are_printed(monkeypatch, has_rich):
    if not has_rich:
        monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    show(report_on([*messages(), came(TICK)]), out)
    text = out.getvalue()
    for column in COLUMNS:
        assert column in text
    assert "doubled: every second @ 2023-11-14T22:13:23+00:00" in text
    assert "Faults: kill 2, pause 1." in text
    assert text.splitlines()[-1].startswith("✘ ")
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_machines_get_all_of_it():
    report = report_on([*messages(), came(TICK)])
    told = json.loads(json.dumps(report.as_dict()))
    assert told["verdict"] == "bad"
    assert told["entries"]["every second"]["doubled"] == 1
    assert told["totals"]["doubled"] == 1
    assert told["faults"] == {"kill": 2, "pause": 1}
    assert told["ticks"] == report.named
