"""What somebody writes into the ledger's keys by hand, past every check: nodes and others go on."""

from __future__ import annotations

import json
import re

import pytest

from celery_redlock_beat.ledger.redis_scripts import ledger_keys
from celery_redlock_beat.ticks import SECOND
from support.servers import Server
from support.steered import SteeredTrial
from support.trial import LIMIT, NAMESPACE

KEYS = ledger_keys(NAMESPACE)
UNTOUCHED = {"one": "all", "two": "all"}
GOOD = {"task": "proj.noop", "schedule": {"kind": "interval", "every": 1}}
BAD: dict[str | bytes, bytes] = {
    "no json": b"not json",
    "empty": b"",
    "a list": b"[1, 2]",
    "unknown kind": json.dumps({**GOOD, "schedule": {"kind": "lunar"}}).encode(),
    "minute 99": json.dumps({**GOOD, "schedule": "99 * * * *"}).encode(),
    "no schedule": json.dumps({**GOOD, "schedule": None}).encode(),
    "unknown field": json.dumps({**GOOD, "colour": "red"}).encode(),
    "another format": json.dumps({**GOOD, "format": 99}).encode(),
    "no utf-8": b'{"task": "\xff\xfe"}',
    "too large": json.dumps({**GOOD, "args": ["x" * 2**21]}).encode(),
    "too deep": b'{"task": "proj.noop", "args": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "one": json.dumps(GOOD).encode(),
}
SOON = 2 * SECOND
"""How soon a message comes of what is due every second, and in force within one."""
STRANGE = b"strange \xff name"


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def trial(server, tmp_path):
    with SteeredTrial(tmp_path, server, untouched=UNTOUCHED) as trial:
        trial.operator.add("good")
        trial.sent_for("good", 0)
        yield trial


def all_have_said(trial, words, since=(0, 0, 0)):
    for node, place in zip(trial.nodes, since, strict=True):
        node.wait_for_log(words, LIMIT, place)


def goes_on(trial):
    """Look that what is good is sent as before."""
    trial.go_on(1)
    message = trial.sent_for("good", trial.now())
    assert message.at - message.tick.at < SECOND


def conclude(trial):
    trial.go_on(1)
    found = trial.conclude_steered()
    assert dict(found.faults) == {}


@pytest.mark.timeout(200)
def test_what_is_bad_is_told_by_name_and_left_as_it_is_while_all_else_goes_on(trial, server):
    with server.client() as client:
        client.hset(KEYS["entries"], mapping={**BAD, STRANGE: b"{}"})
        for name in BAD:
            all_have_said(trial, rf"ERROR.*Left out: entry '{re.escape(name)}': ")
        all_have_said(trial, r"ERROR.*Left out: entry 'strange .* name': .*UTF-8")
        goes_on(trial)
        kept = client.hgetall(KEYS["entries"])
        assert {name: kept[name.encode()] for name in BAD} == BAD
        assert kept[STRANGE] == b"{}"
        client.hdel(KEYS["entries"], "one", STRANGE)
    control = trial.operator.control
    for name in BAD.keys() - {"one"}:
        control.replace(name, GOOD)
        mended = trial.now()
        assert trial.sent_for(name, mended).at - mended < SOON
    for name in BAD.keys() - {"one"}:
        control.remove(name)
    trial.go_on(1)
    assert trial.stop() == []
    for node in trial.nodes:
        assert all(node.log.count(f"Left out: entry '{name}'") == 1 for name in BAD), "told once"


@pytest.mark.timeout(200)
def test_a_pause_that_somebody_wrote_by_hand_is_one_whatever_it_says(trial, server):
    texts = {"good": b"\xff", "one": b"since noon", "two": b"0 0"}
    with server.client() as client:
        for name, text in texts.items():
            client.hset(KEYS["paused"], name, text)
        paused = trial.now()
        trial.until(lambda: trial.now() > paused + 2.5 * SECOND, "some ticks")
        assert client.hmget(KEYS["paused"], list(texts)) == list(texts.values())
        late = [each.tick for each in trial.collector.arrivals if each.at > paused + SECOND / 2]
        assert late == []
        trial.operator.control.resume("good", "one", "two")
    goes_on(trial)
    assert trial.stop() == []


@pytest.mark.timeout(200)
@pytest.mark.parametrize("name", ["entries", "paused", "changes"])
def test_a_key_of_the_feed_that_holds_another_type_is_told_and_mended_without_a_restart(
    trial, server, name
):
    seen = [len(node.log) for node in trial.nodes]
    with server.client() as client:
        kept = client.dump(KEYS[name])
        client.set(KEYS[name], "something else")
        all_have_said(trial, re.escape(KEYS[name]), seen)
        if name != "paused":
            trial.go_on(2)  # what comes from code is sent all the time
        if kept:  # in one step: nodes write to it as soon as they can
            client.restore(KEYS[name], 0, kept, replace=True)
        else:
            client.delete(KEYS[name])
    mended = trial.now()
    assert trial.sent_for("good", mended).at - mended < SOON
    added = trial.operator.add("more").moment.returned
    assert trial.sent_for("more", added).at - added < SOON
    goes_on(trial)
    conclude(trial)


@pytest.mark.timeout(200)
def test_a_key_of_the_entries_that_held_another_type_and_is_deleted_is_told_again(trial, server):
    seen = [len(node.log) for node in trial.nodes]
    with server.client() as client:
        client.delete(KEYS["entries"])
        client.set(KEYS["entries"], "something else")
        all_have_said(trial, re.escape(KEYS["entries"]), seen)
        client.delete(KEYS["entries"])
    trial.until(lambda: trial.operator.control.get("good").revision, "its return")
    added = trial.operator.add("more").moment.returned
    assert trial.sent_for("more", added).at - added < SOON
    goes_on(trial)
    assert trial.stop() == []
    assert dict(trial.judge_messages().faults) == {}
