"""Write entries and their last runs as RedBeat does, in pipelines; it deletes nothing.

A last run is only ever raised, so that nothing is sent again that RedBeat has sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.predecessors.redbeat.coding import run_at
from celery_redlock_beat.predecessors.redbeat.keys import CHUNK, Raw, hashes
from celery_redlock_beat.predecessors.redbeat.records import record_of, timetable
from celery_redlock_beat.store.asking import asked
from celery_redlock_beat.ticks import SECOND, to_datetime, to_micros
from celery_redlock_beat.timetables import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from celery_redlock_beat.predecessors.redbeat.keys import Keys
    from celery_redlock_beat.predecessors.redbeat.records import Record
    from celery_redlock_beat.ticks import Micros, Timetable
    from celery_redlock_beat.timetables.zones import Zone

NO_MORE = -1
"""The score of what has no more ticks: RedBeat never looks at it."""


@dataclass(frozen=True, slots=True)
class Written:
    """An entry as RedBeat keeps it: both fields of its hash as JSON, and its score."""

    name: str
    definition: str
    meta: str
    score: int
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """That an entry was sent: its last tick, and how many messages since it was told last."""

    at: Micros
    runs: int = 1


def meta_of(at: Micros, runs: int, zone: Zone) -> str:
    """Return RedBeat's meta of an entry; ``zone`` is the app's."""
    return json.dumps({"last_run_at": run_at(at, zone), "total_run_count": runs})


def score_of(table: Timetable, ran: Micros, now: Micros) -> int:
    """Return when RedBeat looks at an entry next, in seconds: at once where that is over."""
    # RedBeat counts an interval from its last run, whatever the phase was.
    following = ran + table.period if isinstance(table, Interval) else table.next_after(ran)
    return NO_MORE if following is None else max(following, now) // SECOND


def write(client: Any, keys: Keys, entries: Sequence[Written]) -> None:
    """Write entries, and put them into RedBeat's schedule; others stay as they are.

    Raises:
        LedgerUnavailable: The server could not be asked; some may be written.

    """
    for start in range(0, len(entries), CHUNK):
        pipe = client.pipeline(transaction=False)
        for each in entries[start : start + CHUNK]:
            key = keys.of_entry(each.name)
            pipe.hset(key, mapping={"definition": each.definition, "meta": each.meta})
            pipe.zadd(keys.schedule, {key: each.score})
            if each.is_static:
                pipe.sadd(keys.statics, each.name)
        asked(pipe.execute)


def write_back(
    client: Any, keys: Keys, ran: Mapping[str, Ran], zone: Zone, now: Micros
) -> set[str]:
    """Tell RedBeat when entries were sent last; return the names of those that it has.

    ``zone`` is the app's, ``now`` the ledger's time. An entry that cannot be read keeps its score:
    RedBeat could not read it either. One of which RedBeat knows a later run stays as it is.

    Raises:
        LedgerUnavailable: The server could not be asked; some may be written.

    """
    names, found = list(ran), set()
    for start in range(0, len(names), CHUNK):
        chunk = names[start : start + CHUNK]
        told = asked(partial(hashes, client, [keys.of_entry(each) for each in chunk]))
        pipe = client.pipeline(transaction=False)
        for name, pair in zip(chunk, told, strict=True):
            if isinstance(pair, list) and pair[0] is not None:
                found.add(name)
                raw = Raw(name, pair[0], pair[1], is_planned=True)
                _push(pipe, keys, record_of(raw, zone, to_datetime(now)), ran[name], zone, now)
        asked(pipe.execute)
    return found


def _push(pipe: Any, keys: Keys, record: Record, ran: Ran, zone: Zone, now: Micros) -> None:
    if record.last_run_at is not None and to_micros(record.last_run_at) >= ran.at:
        return
    key = keys.of_entry(record.name)
    pipe.hset(key, "meta", meta_of(ran.at, record.total_run_count + ran.runs, zone))
    if record.document:
        score = score_of(timetable(record.name, record.document, zone), ran.at, now)
        pipe.zadd(keys.schedule, {key: score}, xx=True)
