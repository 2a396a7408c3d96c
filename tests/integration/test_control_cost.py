"""What it costs to ask of one entry, or of the fleet: the same, however many entries are stored."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from celery_redlock_beat import NoSuchEntry
from celery_redlock_beat.claims import registration_of
from celery_redlock_beat.documents import entries as documents
from celery_redlock_beat.ledger.steering import Definition
from support.control_case import HOURLY

FEW, MANY = 10, 5_000
MORE_DIGITS = 1.1
"""How much longer answers may be, since counts have more digits, and records other words."""

QUESTIONS = {
    "health": lambda control: control.health(),
    "nodes": lambda control: control.nodes(),
    "totals": lambda control: control.totals(),
    "history": lambda control: control.history(number=20),
    "history of one": lambda control: control.history("e7", number=20),
    "get": lambda control: control.get("e7"),
    "entries": lambda control: control.entries("e7", "e8"),
    "upcoming": lambda control: control.upcoming(3, "e7"),
    "why": lambda control: control.why("e7", datetime.now(UTC)),
    "export": lambda control: control.export("e7"),
}
DEEDS = {
    "add": lambda control: control.add("one more", **HOURLY),
    "update": lambda control: control.update("e7", max_runs=3),
    "pause": lambda control: control.pause("e7"),
    "resume": lambda control: control.resume("e7"),
    "fire": lambda control: control.fire("e7"),
    "remove": lambda control: control.remove("one more"),
}


class Told(Counter[str]):
    """How often each command was run, also by scripts, and how many bytes were answered."""

    @classmethod
    def of(cls, client, ask):
        client.config_resetstat()
        ask()
        sent = client.info("stats")["total_net_output_bytes"]
        stats = client.info("commandstats")
        told = cls({name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()})
        return cls({**told, "bytes": sent})


def store(case, begin, end):
    """Store entries of one document, without a history."""
    text = documents.written("e", HOURLY)
    made = case.control._catalogue.made("e", documents.read("e", text))
    known = registration_of(made.slot)
    wanted = [Definition(text, replace(known, entry=f"e{number}")) for number in range(begin, end)]
    assert all(each.done for each in case.place.operator(history=0).store(wanted))


def remember(case, number):
    """Fill the history with deeds."""
    for _ in range(number):
        case.control.pause("e7", note="a record")


def costs(case, asked):
    case.tells(ready=True, entries=1)
    return {name: Told.of(case.client, partial(ask, case.control)) for name, ask in asked.items()}


def test_one_entry_and_the_fleet_cost_the_same_among_few_and_many(case):
    store(case, 0, FEW)
    remember(case, 600)  # more than are read at once
    everything = QUESTIONS | DEEDS
    costs(case, everything)  # scripts are loaded, and connections made
    few = costs(case, everything)
    store(case, FEW, MANY)
    many = costs(case, everything)
    for name in everything:
        bytes_of_few, bytes_of_many = few[name].pop("bytes"), many[name].pop("bytes")
        assert many[name] == few[name], name
        assert bytes_of_many < bytes_of_few * MORE_DIGITS, name


def test_a_name_that_is_wrong_is_compared_with_so_many_and_no_document_is_read(case):
    store(case, 0, MANY)

    def ask():
        for attempt in (case.control.get, case.control.pause, case.control.entries):
            with pytest.raises(NoSuchEntry, match="did you mean 'e"):
                attempt("e 1234")

    with suppress(NoSuchEntry):
        case.control.get("other")
    told = Told.of(case.client, ask)
    assert not told["hscan"]
    assert told["zrange"] == 3
    assert told["evalsha"] == 4, "a deed waits first while nodes tell what they remember"
