"""Which ticks were due, and what became of each; believes only what the worker noted.

The grid is computed here from plain periods, not by the package that is on trial.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from celery_redlock_beat.ticks import SECOND, Micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PERIODS = {"every second": 1, "every 2 seconds": 2, "cron string": 3, "cron in Berlin": 5}
"""The entries of the demo's project: each is due at every multiple of so many seconds."""


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the worker's notes: a message that it received, or a task that it ran.

    ``tick`` is the nominal instant; ``sender`` the process id of the beat that sent the message.
    """

    what: str
    entry: str
    tick: Micros
    sender: int = 0

    @classmethod
    def read(cls, line: str) -> Note:
        """Read a line; ``origin`` is Celery's own header, as in ``gen4711@host``."""
        told: dict[str, Any] = json.loads(line)
        process = str(told.get("origin") or "").partition("@")[0].removeprefix("gen")
        tick = told["tick"] and to_micros(datetime.fromisoformat(told["tick"]))
        return cls(told["what"], told["entry"] or "", tick or 0, int(process or 0))


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the ticks of one entry, as numbers of ticks.

    ``once`` are the due ones that arrived once and ran once, ``unrun`` those that arrived and did
    not run; ``stray`` are ticks that were sent and are not on the grid.
    """

    entry: str
    due: int = 0
    once: int = 0
    doubled: int = 0
    lost: int = 0
    unrun: int = 0
    stray: int = 0


def due_ticks(entry: str, after: Micros, until: Micros) -> range:
    """Return the instants later than ``after`` and not later than ``until``."""
    step = PERIODS[entry] * SECOND
    return range((after // step + 1) * step, until + 1, step)


def judge(notes: Iterable[Note], after: Micros, until: Micros) -> list[Tally]:
    """Judge every entry; what was due outside of the window may be missing, never doubled."""
    messages: dict[str, Counter[Micros]] = {entry: Counter() for entry in PERIODS}
    runs: dict[str, Counter[Micros]] = {entry: Counter() for entry in PERIODS}
    unknown: Counter[str] = Counter()
    for note in notes:
        counts = messages if note.what == "message" else runs
        if note.entry in counts:
            counts[note.entry][note.tick] += 1
        else:
            unknown[note.entry or "(no entry)"] += 1
    tallies = [
        _tally(entry, due_ticks(entry, after, until), messages[entry], runs[entry])
        for entry in PERIODS
    ]
    return tallies + [Tally(entry, stray=number) for entry, number in unknown.items()]


def _tally(
    entry: str, due: Sequence[Micros], messages: Counter[Micros], runs: Counter[Micros]
) -> Tally:
    step = PERIODS[entry] * SECOND
    return Tally(
        entry,
        due=len(due),
        once=sum(messages[at] == runs[at] == 1 for at in due),
        doubled=sum(messages[at] > 1 or runs[at] > 1 for at in messages.keys() | runs.keys()),
        lost=sum(not messages[at] for at in due),
        unrun=sum(bool(messages[at]) and not runs[at] for at in due),
        stray=sum(at % step != 0 for at in messages.keys() | runs.keys()),
    )


def faults(tallies: Iterable[Tally]) -> list[str]:
    """Return what is wrong, one sentence per entry and fault."""
    words = {
        "doubled": "sent or run more than once",
        "lost": "due and not sent",
        "unrun": "sent and not run",
        "stray": "sent without having been due",
    }
    return [
        f"{tally.entry}: {number} {said}"
        for tally in tallies
        for name, said in words.items()
        if (number := getattr(tally, name))
    ]
