"""What is made of what was read, by arithmetic: no server is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from celery_redlock_beat import diagnostics
from celery_redlock_beat.cli.doctor import exit_code
from celery_redlock_beat.diagnostics import Finding, Report, Severity, durability, nodes, server
from celery_redlock_beat.diagnostics.findings import (
    instant,
    name_of,
    raw_text,
    sorted_by_severity,
    span,
)
from celery_redlock_beat.diagnostics.marks import ahead_of, leases_ahead, orphans
from celery_redlock_beat.diagnostics.parsing import (
    Marked,
    Marks,
    Paused,
    read_mark,
    read_marks,
    read_pause,
)
from celery_redlock_beat.diagnostics.pauses import not_ended, of_nobody
from celery_redlock_beat.diagnostics.repairs import Repair
from celery_redlock_beat.lateness import Policy, Slot
from celery_redlock_beat.settings import Settings
from celery_redlock_beat.store.contents import KINDS, Contents, Key
from celery_redlock_beat.store.facts import ServerFacts
from celery_redlock_beat.store.pairs import _steady, open_together, revision_of
from celery_redlock_beat.store.rights import WITH_A_KEY, WITHOUT_A_KEY, our_commands
from celery_redlock_beat.ticks import SECOND
from celery_redlock_beat.timetables import Interval

NOW = 1_900_000_000 * SECOND
HOUR = 3600 * SECOND
MINUTE = 60 * SECOND
KEYS = {name: Key(f"{{redlock:shop}}:{name}", kind) for name, kind in KINDS.items()}
ERROR, WARNING, HINT = Severity


def contents(**read):
    hashes = {name: fields for name, fields in read.items() if KINDS[name] == "hash"}
    zsets = {name: fields for name, fields in read.items() if KINDS[name] == "zset"}
    return Contents(NOW, KEYS, hashes, zsets)


def judged_server(settings=None, **facts):
    told = ServerFacts(**facts)
    return [
        (finding.severity, finding.name)
        for judge in server.JUDGES
        for finding in judge(told, settings or Settings())
    ]


def judged_durability(**facts):
    told = ServerFacts(**facts)
    return [
        (finding.severity, finding.name) for judge in durability.JUDGES for finding in judge(told)
    ]


@pytest.mark.parametrize(
    ("info", "old"),
    [
        ({"redis_version": "7.0.15"}, False),
        ({"redis_version": "6.2.0"}, False),
        ({"redis_version": "6.0.20"}, True),
        ({"redis_version": "5.0.14"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "8.1.0"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.5"}, True),
        ({"redis_version": "255.255.255"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_the_oldest_servers(info, old):
    assert judged_server(info=info) == ([(ERROR, "old-version")] if old else [])


def test_a_server_that_tells_nothing_is_described_all_the_same():
    assert server.described(ServerFacts()) == (
        "Redis (version unknown), role unknown, 0 replicas, answers in 0.0 ms"
    )
    valkey = {
        "redis_version": "7.2.4", "valkey_version": "9.1.0", "role": "slave",
        "server_mode": "standalone",
    }  # fmt: skip
    assert server.described(ServerFacts(valkey, latency=0.0123)) == (
        "Valkey 9.1.0, replica, standalone mode, answers in 12.3 ms"
    )


def test_round_trips_near_to_the_timeout_are_told():
    assert judged_server(latency=0.2) == []
    assert judged_server(latency=0.3) == [(WARNING, "slow")]
    assert judged_server(Settings(socket_timeout=2), latency=0.3) == []


@pytest.mark.parametrize(("ahead", "told"), [(SECOND, ""), (HOUR, "ahead of"), (-HOUR, "behind")])
def test_clocks_that_disagree(ahead, told):
    found = list(server.clock_differs(ServerFacts(ahead=ahead), Settings()))
    assert [f"is 1 h {told}" in each.meaning for each in found] == ([True] if told else [])


def test_a_server_with_hardly_any_room_for_clients():
    assert judged_server(info={"maxclients": "100", "connected_clients": "89"}) == []
    assert judged_server(info={"maxclients": "100", "connected_clients": "90"}) == [
        (WARNING, "clients-nearly-full")
    ]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"info": {"maxmemory_policy": "allkeys-lru"}}, [(WARNING, "eviction")]),
        ({"info": {"maxmemory_policy": "allkeys-lru", "maxmemory": "0"}}, []),
        ({"info": {"aof_enabled": "0"}, "refused": ("CONFIG GET",)}, [(HINT, "settings-unknown")]),
        ({"info": {"aof_enabled": "0"}, "config": {"save": ""}}, [(WARNING, "no-persistence")]),
        ({"info": {"aof_last_write_status": "err"}}, [(ERROR, "cannot-save")]),
        ({"info": {"role": "slave", "connected_slaves": "1"}}, []),
        ({"info": {"role": "master", "connected_slaves": "1"}}, [(WARNING, "split-brain")]),
        (
            {"info": {"role": "master", "connected_slaves": "1", "min_slaves_good_slaves": "1"}},
            [],
        ),
        (
            {"info": {"used_memory": "95", "maxmemory": "100", "maxmemory_policy": "noeviction"}},
            [(WARNING, "memory-nearly-full")],
        ),
        (
            {"info": {"used_memory": "95", "maxmemory": "100", "maxmemory_policy": "allkeys-lfu"}},
            [(WARNING, "eviction")],
        ),
    ],
    ids=str,
)
def test_what_is_told_may_be_little(facts, expected):
    assert judged_durability(**facts) == expected


def test_each_command_of_the_scripts_can_be_tried():
    assert our_commands() <= {*WITH_A_KEY, *WITHOUT_A_KEY}


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (b"5 4 3 2 every 5 s", Marked(5, 4)),
        (b"5 4 3 2 ", Marked(5, 4)),
        (b"5 4 3 2 two\nlines", Marked(5, 4)),
        (b"5 4 3 2", None),
        (b"-5 4 3 2 x", None),
        (b"5.0 4 3 2 x", None),
        (b"9" * 16 + b" 4 3 2 x", None),
        ("٣ 4 3 2 x".encode(), None),
        (b"", None),
    ],
    ids=str,
)
def test_records(text, record):
    assert read_mark(text) == record


def test_the_fields_beside_the_marks():
    marks = read_marks({
        b"e:a": b"5 4 3 2 x", b"e:identity": b"?", b"x:a": b"7", b"r:a": b"8", b"identity": b"ab",
        b"fence": b"17", b"hold_down": b"soon",
    })  # fmt: skip
    assert set(marks.entries) == {b"a"}
    assert marks.number("fence") == 17
    assert marks.number("hold_down") is None
    assert [str(each) for each in marks.unreadable] == ["identity: '?'", "hold_down: 'soon'"]


@pytest.mark.parametrize(
    ("text", "pause"),
    [
        (b'7 0 {"note": "x", "who": "y", "since": 1}', Paused()),
        (b"7 9 {}", Paused(9)),
        (b"7 9 {", Paused(9, is_readable=False)),
        (b"7 9 [1]", Paused(9, is_readable=False)),
        (b"7 9", Paused(is_readable=False)),
        (b"7 -9 {}", Paused(is_readable=False)),
        (b"lunch", Paused(is_readable=False)),
        (b"", Paused(is_readable=False)),
    ],
    ids=str,
)
def test_pauses(text, pause):
    assert read_pause(text) == pause


@pytest.mark.parametrize(
    ("text", "revision"), [(b"7 {}", 7), (b"{}", None), (b"7", None), (b"-7 {}", None), (b"", None)]
)
def test_the_revision_before_a_text(text, revision):
    assert revision_of(text) == revision


class _Failing:
    fingerprint = "failing"

    def latest_until(self, moment):
        raise ZeroDivisionError(moment)


@pytest.mark.parametrize(
    ("timetable", "policy", "told"),
    [
        (Interval(MINUTE), Policy(), ["pause-over"]),
        (Interval(MINUTE), Policy(enabled=False), []),
        (Interval(MINUTE), Policy(max_runs=3), []),
        (Interval(MINUTE), Policy(jitter=60 * MINUTE), []),
        (Interval(10**6 * HOUR), Policy(), []),
        (_Failing(), Policy(), []),
    ],
    ids=["due", "disabled", "limited", "jitter", "rare", "failing"],
)
def test_a_pause_is_over_for_too_long_when_its_entry_is_due(timetable, policy, told):
    paused = f"7 {NOW - 2 * MINUTE} {{}}".encode()
    known = contents(paused={b"a": paused}, nodes={b"n": NOW})
    marks = Marks({b"a": Marked(NOW - 5 * MINUTE, 0)})
    slots = {b"a": Slot("a", timetable, policy)}
    assert [each.name for each in not_ended(known, marks, slots)] == told


def test_pauses_are_not_judged_where_the_entries_are_not_known():
    known = contents(paused={b"a": b"7 0 {}"})
    assert list(of_nobody(known, Marks())) == []
    assert list(of_nobody(contents(paused={b"a": b"7 0 {}"}, marks={}), Marks())) != []


@pytest.mark.parametrize(
    ("text", "score", "together"),
    [(b"open x", 5.0, True), (b"open x", None, False), (b"done 5 sent", None, True),
     (b"done 5 sent", 5.0, False), (None, 5.0, False)],
)  # fmt: skip
def test_a_grant_and_an_open_tick_belong_together(text, score, together):
    assert open_together(text, score) is together


@pytest.mark.parametrize(
    ("told", "belongs"),
    [
        ((5.0, b"5 a", 5.0, b"5 a"), (b"5 a", 5.0)),
        ((5.0, b"5 a", None, b"5 a"), (b"5 a", None)),
        ((5.0, None, 5.0, None), (None, 5.0)),
        ((5.0, None, 5.0, b"6 a"), (None, 5.0)),
        ((5.0, None, 6.0, None), (None, None)),
        ((5.0, b"5 a", 6.0, b"6 a"), (None, None)),
        ((None, None, None, b"6 a"), (None, None)),
    ],
)
def test_what_was_read_in_turns_belongs_together_if_one_of_both_stayed(told, belongs):
    assert _steady(*told) == belongs


def test_a_mark_may_be_a_little_ahead_of_the_clock_of_a_new_primary():
    marks = Marks({b"a": Marked(NOW + SECOND // 2, 0), b"b": Marked(NOW + 2 * SECOND, 0)})
    assert list(ahead_of(marks, NOW)) == [b"b"]


def test_an_open_tick_is_an_orphan_long_after_its_lease_and_not_before_its_instant():
    def told(tick, ends, lease=5 * SECOND):
        found = orphans(contents(open={f"{tick}:a".encode(): float(ends)}), lease, 1)
        return [each.name for each in found]

    assert told(NOW - HOUR, NOW - 90 * SECOND) == []
    assert told(NOW - HOUR, NOW - 101 * SECOND) == ["orphans"]
    assert told(NOW - HOUR, NOW - 101 * SECOND, lease=MINUTE) == []
    assert told(NOW + HOUR, NOW - 101 * SECOND) == []


def test_a_lease_may_end_after_the_longest_back_off():
    def told(ends):
        found = leases_ahead(contents(open={b"1:a": ends, b"": float("inf")}), 5 * SECOND)
        return [each.name for each in found]

    assert told(NOW + 600.0 * SECOND) == []
    assert told(NOW + 606.0 * SECOND) == ["lease-ahead"]


def test_a_ledger_with_other_entries_or_without_a_living_node_is_no_neighbour():
    from celery_redlock_beat.store.neighbours import Neighbour

    ours = Marks(dict.fromkeys((b"a", b"b", b"celery.backend_cleanup"), Marked(1, 1)))
    other = Neighbour("other", "", frozenset((b"a", b"b")), NOW)
    cases = [
        (other, 1),
        (replace(other, heartbeat=NOW - HOUR), 0),
        (replace(other, entries=frozenset((b"a",))), 0),
        (replace(other, entries=frozenset((b"celery.backend_cleanup",))), 0),
    ]
    for each, number in cases:
        found = list(nodes.neighbours(contents(), ours, [each], "shop"))
        assert len(found) == number, each


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (-5, "0 ms"),
        (1_500, "2 ms"),
        (SECOND, "1 s"),
        (60 * SECOND, "1 min"),
        (61 * SECOND, "1 min 1 s"),
        (HOUR + SECOND, "1 h"),
        (2 * HOUR + 3 * MINUTE + SECOND, "2 h 3 min"),
        (49 * HOUR, "2 d 1 h"),
    ],
)
def test_durations_are_told_in_two_units(duration, text):
    assert span(duration) == text


def test_instants_are_told_so_that_they_can_be_typed():
    assert instant(NOW) == "2030-03-17T17:46:40Z"
    assert instant(NOW + 1) == "2030-03-17T17:46:40.000001Z"


def test_names_and_values_stay_on_one_short_line():
    assert name_of("réport".encode()) == "réport"
    assert name_of(b"a\nb\xff") == r"'a\nb\\xff'"
    assert raw_text(b"a\nb\xff") == r"'a\nb\xff'"
    assert len(raw_text(b"x" * 10_000)) == 82


def test_the_worst_comes_first_and_nothing_twice():
    hint, error = (Finding(each, "name", each.value, "m", "a") for each in (HINT, ERROR))
    again = replace(error, severity=WARNING, meaning="the same, less exact")
    assert sorted_by_severity([hint, error, again]) == [error, hint]


@pytest.mark.parametrize(
    ("severities", "code"), [([], 0), ([HINT], 0), ([HINT, WARNING], 1), ([WARNING, ERROR], 2)]
)
def test_the_exit_code_is_that_of_the_worst(severities, code):
    findings = [Finding(each, "n", "s", "m", "a") for each in severities]
    assert exit_code(Report({}, findings)) == code


RUNS = "it runs again with its next tick"
NOT_AGAIN = "is not sent again"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            NOW + HOUR,
            NOW,
            [
                "it runs again with its next tick",
                "is not sent again",
                "since the clock was set back",
            ],
        ),
        (
            NOW + HOUR,
            NOW - HOUR,
            [RUNS, NOT_AGAIN, "may be sent again"],
        ),
        (NOW - HOUR, NOW, ["is not sent, and not counted"]),
        (NOW - HOUR, NOW - 2 * HOUR, ["may be sent again"]),
        (NOW - HOUR, NOW - HOUR, []),
        (None, NOW, ["cannot be read", "may be sent again"]),
    ],
)
def test_what_comes_of_a_repair(before, after, told):
    lines = list(Repair("a", before, after, NOW, b"?").consequences())
    assert len(lines) == len(told)
    assert all(text in line for text, line in zip(told, lines, strict=True))


def test_each_finding_is_documented_and_nothing_else_is():
    folder = Path(diagnostics.__file__).parent
    source = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    finding = re.compile(
        r"Severity\.\w+(?: if \w+ else Severity\.\w+)?,\s+"
        r'"([a-z-]+)"(?: if \w+ else "([a-z-]+)")?'
    )
    named = {name for names in finding.findall(source) for name in names if name}
    page = Path(__file__).parents[2] / "docs" / "doctor.md"
    found = page.read_text("utf-8").split("## What it finds")[1].split("## Repair")[0]
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", found, re.MULTILINE)) == sorted(
        {*named, "no-writes"}
    )
