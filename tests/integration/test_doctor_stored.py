"""What doctor says of stored entries, pauses and nodes, each planted in a real ledger."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from celery_redlock_beat import Control
from celery_redlock_beat.diagnostics import Severity, examine
from celery_redlock_beat.ledger.steering import Removal, Resumption
from celery_redlock_beat.ticks import SECOND, to_datetime
from support.patient import GOOD

HOUR = 3600 * SECOND
DAY = 24 * HOUR
ERROR, WARNING, HINT = Severity
YEARLY = '{"task": "proj.add", "schedule": "0 0 29 2 *"}'


def only(patient):
    """Return the only finding, and see that looking changed nothing."""
    before = patient.dump()
    (finding,) = examine(patient.app).findings
    assert patient.dump() == before
    assert all(len(each) < 500 and each.isprintable() for each in finding.examples)
    assert finding.meaning
    assert finding.advice
    return finding


def named(finding):
    return finding.severity, finding.name, finding.subject


def test_good_stored_entries_and_pauses_give_no_finding(patient):
    patient.store("nightly")
    patient.store("yearly", YEARLY)
    patient.operator.pause(["nightly"], "too loud", "anna", patient.now + HOUR)
    patient.operator.pause(["yearly", "report"])
    report = examine(patient.app)
    assert report.findings == []
    assert report.facts["entries"] == "4, 2 stored, 3 paused"
    assert report.facts["history"] == "6 outcomes"


CRONTAB = '{"task": "proj.add", "schedule": {"kind": "crontab", "minute": "99"}}'
RRULE = '{"task": "proj.add", "schedule": 30, "jitter": 5, "max_runs": "many"}'


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("not json", "no JSON"),
        ("", "no JSON"),
        ("[]", "must be an object"),
        ("null", "must be an object"),
        ('{"format": 7, "task": "proj.add", "schedule": 30}', "format is 7"),
        ('{"task": "proj.add"}', "no 'schedule'"),
        ('{"schedule": 30}', "no 'task'"),
        ('{"task": "proj.add", "schedule": null}', "no 'schedule'"),
        ('{"task": "proj.add", "schedule": {"kind": "lunar"}}', "lunar"),
        ('{"task": "proj.add", "schedule": -1}', "schedule"),
        ('{"task": "proj.add", "schedule": "* * *"}', "* * *"),
        ('{"task": "proj.add", "schedule": 30, "shcedule": 1}', "unknown key 'shcedule'"),
        ('{"task": "proj.add", "schedule": 30, "timezone": "Mars"}', "Mars"),
        ('{"task": "proj.add", "schedule": 30, "args": 5}', "args"),
        ('{"task": 5, "schedule": 30}', "'task'"),
        (CRONTAB, "schedule.minute = '99'"),
        (RRULE, "max_runs"),
        ("[" * 100_000, "nested"),
    ],
    ids=range(18),
)
def test_a_bad_stored_entry_is_told_by_name_with_what_is_wrong(patient, document, told):
    patient.store("nightly", document)
    patient.store("other")
    finding = only(patient)
    assert named(finding) == (ERROR, "bad-stored-entries", patient.keys["entries"])
    (example,) = finding.examples
    assert example.startswith("nightly: ")
    assert told in example
    assert "edit NAME" in finding.advice
    assert "remove NAME" in finding.advice


def test_a_stored_entry_that_is_no_utf_8_is_told(patient):
    revision = patient.store("nightly")
    patient.client.hset(patient.keys["entries"], "nightly", b"%d \xff\xfe" % revision)
    finding = only(patient)
    assert finding.name == "bad-stored-entries"
    assert "UTF-8" in finding.examples[0]


def test_a_stored_entry_with_a_name_that_is_no_utf_8_is_told(patient):
    patient.client.hset(patient.keys["entries"], b"\xff\n", GOOD)
    patient.node.changes(0)
    found = {each.name: each for each in examine(patient.app).findings}
    assert found["bad-stored-entries"].examples == (
        r"'\\xff\n': its name cannot be written as UTF-8; give it another one",
    )


def test_only_the_first_bad_entries_are_shown_and_all_are_counted(patient):
    for number in range(15):
        patient.store(f"entry {number:02}", "{}")
    finding = only(patient)
    assert finding.count == 15
    assert [each.partition(":")[0] for each in finding.examples] == [
        f"entry {number:02}" for number in range(10)
    ]


def test_an_entry_that_the_code_has_as_well_is_told(patient):
    patient.app.conf.beat_schedule = {"nightly": {"task": "proj.add", "schedule": 30}}
    patient.store("nightly")
    finding = only(patient)
    assert named(finding) == (WARNING, "stored-and-in-code", patient.keys["entries"])
    assert finding.examples == ("nightly",)


def test_stored_entries_are_judged_also_where_the_code_cannot_be_loaded(patient):
    patient.app.conf.beat_schedule = "no dict"
    patient.store("nightly", "{}")
    assert only(patient).name == "bad-stored-entries"


def test_what_was_written_or_deleted_by_hand_and_no_node_has_noticed(patient):
    patient.store("deleted")
    patient.operator.pause(["report"])
    patient.client.hset(patient.keys["entries"], mapping={"new": GOOD, "written": GOOD})
    patient.client.hset(patient.keys["paused"], "tidy", "7 0 {}")
    patient.client.hdel(patient.keys["entries"], "deleted")
    patient.client.hdel(patient.keys["paused"], "report")
    finding = only(patient)
    assert named(finding) == (WARNING, "not-noticed", patient.keys["changes"])
    assert finding.examples == (
        "deleted: an entry that was deleted by hand",
        "new: an entry that was written by hand",
        "written: an entry that was written by hand",
        "report: a pause that was deleted by hand",
        "tidy: a pause that was written by hand",
    )
    patient.node.changes(0)
    assert only(patient).name == "written-by-hand"


def test_what_was_written_by_hand_waits_for_a_node(patient):
    patient.place.set_heartbeat(patient.node.node, patient.now - HOUR)
    patient.client.hset(patient.keys["entries"], "written", GOOD)
    found = {each.name: each.severity for each in examine(patient.app).findings}
    assert found == {"not-noticed": HINT, "no-node": HINT}


@pytest.mark.parametrize("has_revision", [True, False])
def test_a_text_that_was_changed_by_hand_is_told_until_it_is_stored_anew(patient, has_revision):
    revision = patient.store("nightly")
    text = f"{revision + 1} {GOOD}" if has_revision else GOOD
    patient.client.hset(patient.keys["entries"], "nightly", text)
    finding = only(patient)
    assert named(finding) == (HINT, "written-by-hand", patient.keys["entries"])
    assert finding.examples == ("nightly",)
    patient.store("nightly", expected=revision)
    assert examine(patient.app).findings == []


def test_a_lost_feed_is_told_with_all_that_stood_in_it(patient):
    patient.store("nightly")
    patient.operator.pause(["tidy"])
    patient.client.delete(patient.keys["changes"])
    finding = only(patient)
    assert (finding.name, finding.count) == ("not-noticed", 2)
    patient.node.changes(0)
    assert examine(patient.app).findings == []


@pytest.mark.parametrize("text", ["for the holidays", "7 by hand", "7 0 [", "7 0 []", "7 soon {}"])
def test_an_unreadable_pause_is_told(patient, text):
    patient.client.hset(patient.keys["paused"], "report", text)
    patient.node.changes(0)
    finding = only(patient)
    assert named(finding) == (WARNING, "pause-unreadable", patient.keys["paused"])
    assert finding.examples == (f"report: '{text}'",)
    patient.operator.pause(["report"])  # as the advice says: it is written anew ...
    assert examine(patient.app).findings == []
    patient.client.hset(patient.keys["paused"], "report", text)
    revision = int(patient.client.zscore(patient.keys["changes"], "p:report"))
    (done,) = patient.operator.resume([Resumption("report", revision)])  # ... or ended
    assert done.done
    assert examine(patient.app).findings == []


def test_a_pause_of_an_entry_that_nobody_has_is_told(patient):
    patient.operator.pause(["unheard of"])
    finding = only(patient)
    assert named(finding) == (HINT, "pause-without-entry", patient.keys["paused"])
    assert finding.examples == ("unheard of",)
    assert finding.advice.endswith("celery redlock resume NAME")
    with Control(patient.app) as control:
        assert control.resume("unheard of").names == ("unheard of",)
    patient.client.hset(patient.keys["paused"], b"caf\xe9", "1 0 {}")
    patient.node.changes(0)
    assert only(patient).advice.endswith(f"HDEL {patient.keys['paused']} NAME")
    patient.client.hdel(patient.keys["paused"], b"caf\xe9")
    patient.node.changes(0)
    assert examine(patient.app).findings == []


def test_a_pause_of_an_entry_that_went_missing_is_told_beside_it(patient):
    patient.operator.pause(["report"])
    patient.client.zadd(patient.keys["present"], {"report": patient.now - HOUR})
    assert [each.name for each in examine(patient.app).findings] == [
        "pause-without-entry",
        "gone-entries",
    ]


@pytest.mark.parametrize("origin", ["stored", "code"])
def test_a_pause_that_is_over_and_that_no_node_ends_is_told(patient, origin):
    now = patient.now
    if origin == "stored":
        patient.store("nightly")
    else:
        patient.app.conf.beat_schedule = {"nightly": {"task": "proj.add", "schedule": 30}}
    patient.client.zadd(patient.keys["present"], {"nightly": now})
    patient.operator.pause(["nightly"], until=now - 2 * HOUR)
    patient.mark("nightly", now - 3 * HOUR)
    finding = only(patient)
    assert named(finding) == (WARNING, "pause-over", patient.keys["paused"])
    assert finding.examples == ("nightly: over for 2 h",)


def test_a_pause_that_is_over_stays_until_a_tick_is_due(patient):
    now = patient.now
    patient.store("yearly", YEARLY)
    patient.store("nightly")
    patient.operator.pause(["yearly", "nightly"], until=now - HOUR)
    patient.mark("yearly", now - 2 * HOUR)
    assert examine(patient.app).findings == []


def test_a_ledger_that_began_empty_is_told_for_a_week(patient):
    now = patient.now
    patient.client.hset(patient.keys["marks"], "began", now - DAY)
    finding = only(patient)
    assert named(finding) == (HINT, "began-empty", f"{patient.keys['marks']}: began")
    assert to_datetime(now - DAY).strftime("%Y-%m-%dT%H:%M:%S") in finding.meaning
    patient.client.hset(patient.keys["marks"], "began", now - 8 * DAY)
    assert examine(patient.app).findings == []


def test_a_new_ledger_tells_that_it_began_empty(patient):
    patient.client.flushall()
    patient.place.node().claim([])
    assert [each.name for each in examine(patient.app).findings] == ["began-empty"]


@pytest.mark.parametrize("field", ["revision", "pruned", "began", "s:report"])
def test_fields_beside_the_marks_that_mean_nothing(patient, field):
    patient.client.hset(patient.keys["marks"], field, "soon")
    finding = only(patient)
    assert named(finding) == (WARNING, "unreadable-field", patient.keys["marks"])
    assert finding.examples == (f"{field.removeprefix('s:')}: 'soon'",)
    assert ("redlock skip" in finding.advice) == (field == "s:report")


def test_nodes_that_agree_give_no_finding(patient):
    for _ in range(3):
        patient.beat(version="1.0", schedule="abc", offset=0.2, started=1)
    assert examine(patient.app).findings == []


@pytest.mark.parametrize(
    ("key", "name"), [("version", "versions-differ"), ("schedule", "schedules-differ")]
)
@pytest.mark.parametrize("deploying", [True, False])
def test_nodes_that_differ_are_told_the_most_common_first(patient, key, name, deploying):
    started = patient.now - (0 if deploying else HOUR)
    for value in ("1.0", "1.1", "1.1"):
        patient.beat(**{key: value, "started": started})
    finding = only(patient)
    assert named(finding) == (HINT if deploying else WARNING, name, patient.keys["beats"])
    assert [each.partition(":")[0] for each in finding.examples] == ["1.1", "1.0"]
    assert finding.examples[0].endswith(" and 1 more")


def test_nodes_whose_clocks_are_off_are_told(patient):
    ahead, behind = patient.beat(offset=2.5), patient.beat(offset=-7200)
    patient.beat(offset=-0.9)
    finding = only(patient)
    assert named(finding) == (HINT, "node-clock", patient.keys["beats"])
    assert set(finding.examples) == {f"{ahead}: 2.5 s ahead", f"{behind}: 7,200.0 s behind"}


def test_bad_entries_of_nodes_are_told_once_and_by_name(patient):
    for _ in range(2):
        patient.beat(bad=3, bad_names=["hourly", "weekly"], ready=False, problems=["bad entries"])
    finding = only(patient)
    assert named(finding) == (ERROR, "bad-entries", patient.keys["beats"])
    assert finding.examples == ("hourly: left out by 2 nodes", "weekly: left out by 2 nodes")
    assert finding.count == 3


def test_bad_stored_entries_are_not_told_twice(patient):
    name = "n" * 100
    patient.store(name, "{}")
    patient.client.zadd(patient.keys["present"], {name: patient.now - HOUR})
    patient.beat(bad=1, bad_names=[name[:60]], ready=False, problems=["bad entries"])
    assert only(patient).name == "bad-stored-entries"


def test_a_node_that_is_not_ready_is_told_with_its_reasons(patient):
    node = patient.beat(ready=False, problems=["the broker is away", "no disk"])
    finding = only(patient)
    assert named(finding) == (WARNING, "not-ready", patient.keys["beats"])
    assert finding.examples == (f"{node}: the broker is away; no disk",)


def test_a_node_that_has_left_or_died_is_not_judged(patient):
    dead = patient.beat(version="0.9", ready=False)
    patient.beat(version="0.8", ready=False, left=True)
    patient.beat(version="1.0")
    patient.place.set_heartbeat(dead, patient.now - HOUR)
    report = examine(patient.app)
    assert report.findings == []
    assert report.facts["nodes"] == "2 alive"


@pytest.mark.parametrize("text", ["", "no json", "[1]", "[" * 9000])
def test_what_a_node_tells_may_be_anything(patient, text):
    patient.client.hset(patient.keys["beats"], patient.node.node, text)
    finding = only(patient)
    assert named(finding) == (WARNING, "unreadable-field", patient.keys["beats"])


@pytest.mark.parametrize(
    "told",
    [
        {"version": 5, "schedule": None, "offset": "far", "bad": [], "bad_names": 7},
        {"started": -1e308, "offset": 1e308, "bad": True, "bad_names": [None], "ready": "no"},
        {"started": 10**400, "offset": 10**400, "bad": -(10**400), "problems": {"a": 1}},
    ],
)
def test_what_a_node_tells_of_the_wrong_type_is_left_out(patient, told):
    patient.beat(**told)
    assert examine(patient.app).findings == []


def test_stored_entries_that_change_meanwhile_are_not_taken_for_broken_ones(patient):
    ended = threading.Event()
    steering = patient.operator
    steering.look(["any"])  # connects

    def work(name):
        while not ended.is_set():
            revision = patient.store(name)
            (paused,) = steering.pause([name])
            steering.resume([Resumption(name, paused)])
            steering.pause([name])
            steering.remove([Removal(name, revision)])

    with ThreadPoolExecutor(2) as workers:
        working = [workers.submit(work, f"entry {number}") for number in range(2)]
        try:
            for _ in range(30):
                assert examine(patient.app).findings == []
        finally:
            ended.set()
        for each in working:
            each.result(10)


@pytest.mark.slow
def test_one_bad_entry_of_a_hundred_thousand_is_found_within_a_minute(patient):
    now = patient.now
    names = [f"entry {number}" for number in range(100_000)]
    for start in range(0, len(names), 10_000):
        chunk = list(enumerate(names[start : start + 10_000], start))
        documents = {name: f'1 {{"task": "t", "schedule": {n + 1}}}' for n, name in chunk}
        patient.client.hset(patient.keys["entries"], mapping=documents)
        patient.client.zadd(patient.keys["changes"], {f"e:{name}": 1 for _, name in chunk})
        patient.client.zadd(patient.keys["present"], {name: now for _, name in chunk})
    patient.client.hset(patient.keys["entries"], names[77_777], "1 {}")
    started = time.monotonic()
    finding = only(patient)
    assert time.monotonic() - started < 60
    assert (finding.name, finding.count) == ("bad-stored-entries", 1)
    assert finding.examples[0].startswith("entry 77777: ")


def test_only_a_part_of_long_documents_is_looked_at_and_that_is_told(patient, monkeypatch):
    monkeypatch.setattr("celery_redlock_beat.store.contents.MOST_BYTES", 100_000)
    long = f'{{"task": "proj.add", "schedule": 30, "args": ["{"x" * 1000}"]}}'
    for number in range(600):
        patient.store(f"entry {number}", long)
    (finding,) = examine(patient.app).findings
    assert named(finding) == (HINT, "not-looked-at", patient.keys["entries"])


def test_only_so_many_stored_entries_are_judged_and_that_is_told(patient, monkeypatch):
    monkeypatch.setattr("celery_redlock_beat.diagnostics.taking_in.MOST", 2)
    for number in range(3):
        patient.store(f"entry {number}")
    finding = only(patient)
    assert named(finding) == (HINT, "not-looked-at", patient.keys["entries"])
