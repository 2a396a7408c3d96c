"""Each defect planted in a real ledger is found, named and explained, and nothing is changed."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery import Celery

from celery_redlock_beat.diagnostics import Severity, examine
from celery_redlock_beat.errors import LedgerError
from celery_redlock_beat.ledger import Ask, Settlement, Verdict
from celery_redlock_beat.ticks import SECOND, SENT, Tick
from ledger.places import NAMESPACE, RedisPlace, due_ticks

HOUR = 3600 * SECOND
ERROR, WARNING, HINT = Severity


def test_a_healthy_ledger_gives_no_finding(patient):
    before = patient.dump()
    report = examine(patient.app)
    assert report.findings == []
    assert patient.dump() == before
    assert report.facts["ledger"].endswith("/0 (namespace tests)")
    assert "primary, 0 replicas" in report.facts["server"]
    assert report.facts["nodes"] == "1 alive"
    assert report.facts["entries"] == "2, 0 stored, 0 paused"
    assert report.facts["history"] == "1 outcome"
    assert report.facts["counted"] == "sent 1"


def unreadable_mark(patient):
    patient.client.hset(patient.keys["marks"], "e:report", "12 rubbish")
    return ERROR, "unreadable", "marks", ["report: '12 rubbish'"]


def unreadable_fence(patient):
    patient.client.hset(patient.keys["marks"], "fence", "many")
    return WARNING, "unreadable-field", "marks", ["fence: 'many'"]


def a_long_unreadable_mark_with_a_name_of_two_lines(patient):
    patient.client.hset(patient.keys["marks"], "e:a\nb", b"\xff" * 5000)
    return ERROR, "unreadable", "marks", [r"'a\nb': '" + r"\xff" * 20]


def unreadable_grant(patient):
    patient.client.hset(patient.keys["grants"], "17:report", "maybe")
    return WARNING, "unreadable-field", "grants", ["17:report: 'maybe'"]


def unreadable_tick(patient):
    patient.client.zadd(patient.keys["open"], {"someday": patient.now})
    return WARNING, "unreadable-field", "open", ["someday"]


def unreadable_total(patient):
    patient.client.hset(patient.keys["totals"], "sent", "many")
    return WARNING, "unreadable-field", "totals", ["sent: 'many'"]


def other_format(patient):
    patient.client.hset(patient.keys["marks"], "format", "2")
    return ERROR, "format", "marks", []


def no_format(patient):
    patient.client.hdel(patient.keys["marks"], "format")
    return ERROR, "format", "marks", []


def a_mark_ahead(patient):
    patient.mark("report", patient.now + 3 * HOUR)
    return ERROR, "marks-ahead", "marks", ["report: runs again after 2", "in 2 h 59 min"]


def a_registration_ahead(patient):
    patient.mark("report", 1, patient.now + 50 * HOUR)
    return ERROR, "marks-ahead", "marks", ["report: runs again after 2", "in 2 d 1 h"]


def an_orphan_that_nobody_takes(patient):
    patient.client.zadd(patient.keys["open"], {patient.member: patient.now - HOUR})
    return WARNING, "orphans", "open", ["tidy @ 20", "the lease ended 1 h ago"]


def a_lease_far_ahead(patient):
    patient.client.zadd(patient.keys["open"], {patient.member: patient.now + 24 * HOUR})
    return WARNING, "lease-ahead", "open", ["tidy @ 20", "the lease ends in 23 h 59 min"]


def a_lease_without_an_end(patient):
    patient.client.zadd(patient.keys["open"], {patient.member: "inf"})
    return WARNING, "lease-ahead", "open", ["the lease never ends"]


def a_grant_without_its_open_tick(patient):
    patient.client.zrem(patient.keys["open"], patient.member)
    return WARNING, "grant-without-open", "open", ["tidy @ 20"]


def an_open_tick_without_its_grant(patient):
    patient.client.hdel(patient.keys["grants"], patient.member)
    return HINT, "open-without-grant", "grants", ["tidy @ 20"]


def an_entry_that_nobody_has(patient):
    patient.client.zadd(patient.keys["present"], {"report": patient.now - HOUR})
    return HINT, "gone-entries", "present", ["report: last seen 20"]


def an_entry_that_nobody_ever_had(patient):
    patient.mark("old", patient.now)
    return HINT, "gone-entries", "present", ["old: never seen"]


def a_recovery(patient):
    ends = patient.now + 5 * SECOND
    patient.client.hset(patient.keys["marks"], mapping={"recovering": "f" * 40, "hold_down": ends})
    return HINT, "recovering", "marks", []


def a_recovery_that_nobody_ends(patient):
    ends = patient.now - HOUR
    patient.client.hset(patient.keys["marks"], mapping={"recovering": "f" * 40, "hold_down": ends})
    return WARNING, "recovery-stuck", "marks", []


def another_identity(patient):
    patient.client.hset(patient.keys["marks"], "identity", "0" * 40)
    return HINT, "identity", "marks", []


def a_ttl(patient):
    patient.client.expire(patient.keys["grants"], 7200)
    return ERROR, "expires", "grants", []


def nobody_lives(patient):
    patient.place.set_heartbeat(patient.node.node, patient.now - HOUR)
    return HINT, "no-node", "nodes", []


def a_heartbeat_ahead(patient):
    patient.place.set_heartbeat("late", patient.now + HOUR)
    return HINT, "heartbeat-ahead", "nodes", []


def ticks_in_doubt(patient):
    patient.client.hincrby(patient.keys["totals"], "in_doubt:data_loss", 3)
    return HINT, "in-doubt", "totals", []


PLANTED = [
    unreadable_mark,
    unreadable_fence,
    a_long_unreadable_mark_with_a_name_of_two_lines,
    unreadable_grant,
    unreadable_tick,
    unreadable_total,
    other_format,
    no_format,
    a_mark_ahead,
    a_registration_ahead,
    an_orphan_that_nobody_takes,
    a_lease_far_ahead,
    a_lease_without_an_end,
    a_grant_without_its_open_tick,
    an_open_tick_without_its_grant,
    an_entry_that_nobody_has,
    an_entry_that_nobody_ever_had,
    a_recovery,
    a_recovery_that_nobody_ends,
    another_identity,
    a_ttl,
    nobody_lives,
    a_heartbeat_ahead,
    ticks_in_doubt,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_defect_is_the_only_finding(patient, plant):
    severity, name, key, told = plant(patient)
    before = patient.dump()
    report = examine(patient.app)
    assert patient.dump() == before
    (finding,) = report.findings
    assert (finding.severity, finding.name) == (severity, name)
    assert patient.keys[key] in finding.subject
    assert all(text in "".join(finding.examples) for text in told), finding.examples
    assert all(len(example) < 400 and example.isprintable() for example in finding.examples)
    assert finding.meaning
    assert finding.advice


NOT_FOLLOWED = "is not followed"
NOTHING_IS_SENT = "nothing is sent"


@pytest.mark.parametrize(
    ("name", "severity", "told"),
    [
        ("marks", ERROR, NOTHING_IS_SENT),
        ("open", ERROR, NOTHING_IS_SENT),
        ("grants", ERROR, NOTHING_IS_SENT),
        ("settled", ERROR, NOTHING_IS_SENT),
        ("totals", ERROR, NOTHING_IS_SENT),
        ("paused", ERROR, NOTHING_IS_SENT),
        ("nodes", ERROR, NOTHING_IS_SENT),
        ("entries", ERROR, NOT_FOLLOWED),
        ("gone", ERROR, NOT_FOLLOWED),
        ("changes", ERROR, "stored entries are not sent"),
        ("last", WARNING, "is not kept"),
        ("history", WARNING, "is not kept"),
        ("beats", WARNING, "is not kept"),
        ("audit", WARNING, "repair is refused"),
        ("fired", WARNING, "fire is refused"),
    ],
)
def test_a_key_of_another_type_is_the_only_finding(patient, name, severity, told):
    key = patient.keys[name]
    patient.client.delete(key)
    patient.client.lpush(key, "not ours")
    before = patient.dump()
    (finding,) = examine(patient.app).findings
    assert patient.dump() == before
    assert (finding.severity, finding.name, finding.subject) == (severity, "foreign-type", key)
    assert "a list instead of a" in finding.meaning
    assert told in finding.meaning


@pytest.mark.parametrize("name", ["entries", "changes", "gone", "last", "history", "beats"])
def test_what_is_told_of_a_key_of_another_type_is_true(patient, name):
    revision = patient.store("stored")
    patient.client.delete(patient.keys[name])
    patient.client.lpush(patient.keys[name], "not ours")
    (tick,) = due_ticks(patient.place, patient.node, "busy")
    asks = [Ask(tick, tick.at), Ask(Tick("stored", patient.now), 1, revision=revision)]
    of_code, of_stored = patient.node.claim(asks, 0, "{}").answers
    assert patient.node.settle([Settlement(of_code.grant, SENT)])
    assert of_stored.verdict is (Verdict.CHANGED if name == "changes" else Verdict.GRANTED)
    if name in {"entries", "changes", "gone"}:
        with pytest.raises(LedgerError, match=f":{name}' is ours"):
            patient.node.changes(0)
        with pytest.raises(LedgerError, match=f":{name}' is ours"):
            patient.store()
    else:
        patient.store()


@pytest.mark.parametrize("name", ["marks", "open", "grants", "paused", "entries"])
def test_a_key_that_was_deleted_is_the_only_finding(patient, name):
    patient.client.delete(patient.keys[name])
    (finding,) = examine(patient.app).findings
    assert (finding.severity, finding.name, finding.subject) == (
        ERROR,
        "lost-key",
        patient.keys[name],
    )


def test_many_marks_ahead_are_one_finding_with_the_farthest_first(patient):
    for number in range(30):
        patient.mark(f"entry {number:02}", patient.now + (number + 1) * HOUR, patient.now)
    patient.client.zadd(
        patient.keys["present"], {f"entry {number:02}": patient.now for number in range(30)}
    )
    (finding,) = examine(patient.app).findings
    assert finding.count == 30
    assert len(finding.examples) == 10
    assert finding.examples[0].startswith("entry 29: ")


def test_a_paused_entry_may_have_an_open_tick_for_long(patient):
    patient.client.zadd(patient.keys["open"], {patient.member: patient.now - HOUR})
    patient.operator.pause(["tidy"])
    report = examine(patient.app)
    assert report.findings == []
    assert report.facts["entries"] == "2, 0 stored, 1 paused"


def test_orphans_are_a_hint_while_nobody_lives(patient):
    patient.client.zadd(patient.keys["open"], {patient.member: patient.now - HOUR})
    patient.place.set_heartbeat(patient.node.node, patient.now - HOUR)
    assert {(each.severity, each.name) for each in examine(patient.app).findings} == {
        (HINT, "orphans"),
        (HINT, "no-node"),
    }


def test_a_server_without_a_ledger(durable):
    with durable.client() as client:
        client.flushall()
        app = Celery(NAMESPACE, broker=durable.url, set_as_current=False)
        (finding,) = examine(app).findings
        assert (finding.severity, finding.name) == (HINT, "no-ledger")
        assert client.dbsize() == 0


def test_the_same_app_in_another_namespace_or_behind_another_prefix(patient):
    key = patient.keys["marks"]
    for other in ("{redlock:elsewhere}", f"staging:{{redlock:{NAMESPACE}}}", "{redlock:dead}"):
        patient.client.copy(key, f"{other}:marks")
        if "dead" not in other:
            patient.client.copy(patient.keys["nodes"], f"{other}:nodes")
    patient.client.hset("{redlock:different}:marks", "e:other", "1 1 1 1 x")
    patient.client.copy(patient.keys["nodes"], "{redlock:different}:nodes")
    found = {each.subject: each for each in examine(patient.app).findings}
    assert set(found) == {"{redlock:elsewhere}:*", f"staging:{{redlock:{NAMESPACE}}}:*"}
    assert all(each.name == "other-ledger" for each in found.values())
    assert "another key prefix" in found[f"staging:{{redlock:{NAMESPACE}}}:*"].meaning
    assert found["{redlock:elsewhere}:*"].examples == ("report", "tidy")


def test_a_prefix_of_the_broker_is_a_part_of_each_key(durable):
    place = RedisPlace(durable, "redis")
    place.node(prefix="shop:")
    app = Celery(NAMESPACE, broker=durable.url, set_as_current=False)
    app.conf.broker_transport_options = {"global_keyprefix": "shop:"}
    found = {each.name: each.subject for each in examine(app).findings}
    place.close()
    marks = f"shop:{{redlock:{NAMESPACE}}}:marks"
    assert found == {"began-empty": f"{marks}: began", "no-node": marks.replace("marks", "nodes")}


def test_only_a_part_of_a_huge_key_is_looked_at_and_that_is_told(patient, monkeypatch):
    monkeypatch.setattr("celery_redlock_beat.store.contents.MOST", 1000)
    now = patient.now
    patient.client.zadd(patient.keys["open"], {f"1:{n}": now + n for n in range(3000)})
    names = {f"1:{n}": f"open me {now} 1 0 0" for n in range(3000)}
    patient.client.hset(patient.keys["grants"], mapping=names)
    report = examine(patient.app)
    assert {(each.severity, each.name, each.subject) for each in report.findings} == {
        (HINT, "not-looked-at", patient.keys["open"]),
        (HINT, "not-looked-at", patient.keys["grants"]),
    }


def test_a_hundred_thousand_entries_take_some_seconds(patient):
    now = patient.now
    marks = {f"e:entry {n}": f"{now} {now} 1 1 every µs" for n in range(100_000)}
    names = list(marks)
    for start in range(0, len(names), 10_000):
        chunk = names[start : start + 10_000]
        patient.client.hset(patient.keys["marks"], mapping={name: marks[name] for name in chunk})
        patient.client.zadd(patient.keys["present"], {name[2:]: now for name in chunk})
    started = time.monotonic()
    report = examine(patient.app)
    assert time.monotonic() - started < 20
    assert report.findings == []
    assert report.facts["entries"] == "100,002, 0 stored, 0 paused"


def test_a_ledger_that_is_at_work_is_not_taken_for_a_broken_one(patient):
    ended = threading.Event()

    def work():
        node = patient.place.node()
        while not ended.is_set():
            ticks = due_ticks(patient.place, node, "busy", 50)
            claimed = node.claim([Ask(tick, tick.at) for tick in ticks])
            grants = [answer.grant for answer in claimed.answers if answer.grant]
            node.settle([Settlement(each, SENT) for each in grants])

    with ThreadPoolExecutor(2) as workers:
        working = [workers.submit(work) for _ in range(2)]
        try:
            for _ in range(20):
                assert examine(patient.app).findings == []
        finally:
            ended.set()
        for each in working:
            each.result(10)
    assert patient.place.totals()["sent"] > 50


@pytest.mark.parametrize(
    ("key", "member", "score", "told"),
    [
        ("open", "7:tidy", "-inf", ["orphans", "open-without-grant"]),
        ("nodes", "abc", "inf", ["heartbeat-ahead"]),
        ("present", "tidy", "-inf", ["gone-entries"]),
    ],
)
def test_a_score_that_is_no_instant_is_told_as_the_nearest_one(patient, key, member, score, told):
    patient.client.zadd(patient.keys[key], {member: score})
    assert [finding.name for finding in examine(patient.app).findings] == told


def test_what_may_not_be_looked_at_is_not_told_as_nothing(patient):
    patient.client.execute_command(
        "ACL", "SETUSER", "narrow", "reset", "on", ">pw", "~*", "&*", "+@all", "-hscan"
    )
    url = patient.place.server.url.replace("://", "://narrow:pw@")
    app = Celery(NAMESPACE, broker=url, set_as_current=False)
    facts = examine(app).facts
    for name in ("nodes", "entries", "counted"):
        assert facts[name] == "not known: our user may not HSCAN"
    patient.client.execute_command("ACL", "DELUSER", "narrow")
