"""The lines that outcomes leave in the log: their text, their levels, and their fields."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
from celery.app.log import TaskFormatter

from celery_redlock_beat.observers.facts import facts_of
from celery_redlock_beat.observers.log import OutcomeLog
from celery_redlock_beat.ticks import (
    IN_DOUBT,
    SECOND,
    SENT,
    Reason,
    skipped,
)
from support.samples import event

PAGE = Path(__file__).parents[2] / "docs" / "observers.md"
FIELDS = {
    "action": "skipped",
    "entry": "nightly",
    "tick": "2030-01-31T12:00:00+00:00",
    "task": "shop.clean",
    "task_id": "5913c2d8",
    "reason": "grace",
    "lateness": 0.25,
    "attempt": 1,
    "passed_over": {"superseded": 3},
    "node": "one",
}


@pytest.fixture(autouse=True)
def _log_all(caplog):
    caplog.set_level(logging.INFO)


def levels(caplog):
    return [record.levelname for record in caplog.records]


def test_the_text_says_what_became_of_the_tick(caplog):
    passed = {Reason.SUPERSEDED: 3, Reason.WINDOW: 2}
    OutcomeLog()(event(passed_over=passed, passed_over_exact=False, detail="as ever"), "one")
    assert caplog.messages == [
        (
            "nightly @ 2030-01-31T12:00:00+00:00 (shop.clean): sent 0.250 s after its instant, "
            "id 5913c2d8, attempt 1; passed over: at least 3 superseded, 2 window; as ever"
        )
    ]


def test_the_record_has_the_same_as_fields(caplog):
    OutcomeLog()(event(skipped(Reason.GRACE), passed_over={Reason.SUPERSEDED: 3}), "one")
    (record,) = caplog.records
    assert {name: getattr(record, name) for name in FIELDS} == FIELDS
    assert json.loads(json.dumps({name: getattr(record, name) for name in FIELDS})) == FIELDS


def test_no_field_hides_one_that_every_record_has():
    plain = logging.LogRecord("a", logging.INFO, "", 1, "", (), None)
    names = {*facts_of(event(), "one"), "action"}
    assert names == set(FIELDS)
    assert not names & {*vars(plain), "message", "asctime", "taskName"}


def test_celerys_formatter_of_tasks_keeps_the_id(caplog):
    OutcomeLog()(event(), "one")
    (record,) = caplog.records
    assert "5913c2d8" in TaskFormatter("%(task_id)s", use_color=False).format(record)


def test_what_is_not_logged_costs_no_fields(caplog):
    caplog.set_level(logging.ERROR)
    OutcomeLog()(event(), "one")
    assert not caplog.records


CASES = [
    ("sent", event(), "INFO"),
    ("sent, up to 10 s late", event(lateness=10 * SECOND), "INFO"),
    ("sent, more than 10 s late", event(lateness=10 * SECOND + 1), "WARNING"),
    ("sent at a later attempt", event(attempt=2), "WARNING"),
    *(
        (f"skipped, `{reason}`", event(skipped(reason), lateness=90 * SECOND, attempt=2), level)
        for reason, level in {
            **dict.fromkeys(Reason, "INFO"),
            Reason.UNKNOWN_ENTRY: "WARNING",
            Reason.NOT_SENT: "WARNING",
            Reason.ERROR: "ERROR",
            Reason.ATTEMPTS: "ERROR",
        }.items()
        if reason is not Reason.DATA_LOSS
    ),
    ("in doubt", event(IN_DOUBT, attempt=0, lateness=90 * SECOND), "WARNING"),
]


@pytest.mark.parametrize(("what", "told", "level"), CASES, ids=[case[0] for case in CASES])
def test_each_outcome_has_its_level(caplog, what, told, level):
    OutcomeLog()(told, "one")
    assert levels(caplog) == [level]


@pytest.mark.parametrize(("what", "told", "level"), CASES, ids=[case[0] for case in CASES])
def test_the_page_has_the_same_table(what, told, level):
    rows = re.findall(r"^\| (.+?) \| (\w+)[^|]* \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert (what, level) in [(outcome, named) for outcome, named in rows]


def test_that_an_entry_comes_to_no_message_is_a_warning_once(caplog):
    log = OutcomeLog()
    for outcome in (skipped(Reason.NOT_SENT), skipped(Reason.NOT_SENT), SENT):
        log(event(outcome), "one")
    log(event(skipped(Reason.NOT_SENT)), "one")
    assert levels(caplog) == ["WARNING", "INFO", "INFO", "WARNING"]


def test_the_formatter_of_the_page_writes_what_the_page_says(caplog):
    page = PAGE.read_text("utf-8")
    (snippet,) = re.findall(r"^```python\n(import json\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found: dict[str, object] = {}
    exec(snippet.replace("app = Celery", "app = lambda *_, **__: None  # "), found)
    OutcomeLog()(event(skipped(Reason.GRACE), passed_over={Reason.SUPERSEDED: 3}), "one")
    written = json.loads(found["AsJson"]().format(caplog.records[0]))
    assert {name: written[name] for name in FIELDS} == FIELDS
    assert set(re.findall(r"^\| `(\w+)` \| \w+ \|", page, re.MULTILINE)) == set(FIELDS)
