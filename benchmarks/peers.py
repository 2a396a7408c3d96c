"""The same faults for stock beat, RedBeat and this scheduler, and what their messages tell.

Each fault is a run of its own. All contenders run at the same time, each with a Redis of its own
that appends to a file, reached through a proxy, and with five entries of ``"schedule": 1.0``. Once
all nodes are up and every entry has come some times, a window begins; some seconds later, the fault
strikes. A process that ends by itself is counted, and started again after a second, as a service
manager would do; one that the fault kills is not, as if its machine were gone.

Only the messages in the queue are judged, by when they came: see ``judge``. Of their headers, only
Celery's own are read: ``task`` for the entry, and ``origin`` for the node that sends, which is the
one to hit. A cell says: missing / extra / processes that ended by themselves / the longest silence
of an entry.

What is unfair, and to whom:

- To this scheduler: what it skips by its default policy, all but the newest late tick, is missing
  here like any other. ``catch up all`` sends the others too. And a tick that waited for the end of
  its lease of 5 s comes alone, long after the silence: it counts as missing, and then as extra.
- To RedBeat: by default its lock holds for 25 minutes (five times the loop interval of 300 s),
  which no window outlasts. The other column has a lock of 10 s, has the others try to get it every
  2 s, and has RedBeat try a Redis that is away again for 30 s. What ends by itself does not give
  the lock back, so that its silence is mostly the lock's; and on a busy machine a start takes long.
- To stock beat: it was never meant to run three times. One of it is the fair comparison, and what
  kills it there could be mended by hand. A wrong or lost schedule file is not tried.
- To this scheduler again: entries of stock beat and RedBeat drift, and take a new phase after each
  pause, and none of that is counted. A double within the burst that ends a silence passes for a
  late message.
- To all: they share the machine, so the silences of a loaded one are longer than on one's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from contenders import CONTENDERS, ENTRIES, PERIOD, Contender
from faults import FAULTS
from trial import Trial

if TYPE_CHECKING:
    from faults import Fault
    from judge import Verdict

BEFORE = 3.0
AFTER = 17.0
SETTLE = 0.5
"""Seconds after the window until all that came in it has been read."""


@dataclass(frozen=True)
class Cell:
    """What became of one contender in one fault."""

    verdict: Verdict
    exits: int

    def __str__(self) -> str:
        found = self.verdict
        return f"{found.missing} / {found.extra} / {self.exits} / {found.silence:.1f} s"


@dataclass(frozen=True)
class Row:
    """One fault, with a cell for each contender."""

    fault: Fault
    cells: Sequence[Cell]


def contenders() -> list[Contender]:
    """Return those that can run here."""
    return [each for each in CONTENDERS if each.installed]


def measure(*, quick: bool = False) -> Iterator[Row]:
    """Run each fault; a row comes as soon as it is known."""
    for fault in FAULTS:
        if fault.quick or not quick:
            yield _row(fault)


def _row(fault: Fault) -> Row:
    with ExitStack() as stack, ThreadPoolExecutor(2 * len(CONTENDERS)) as pool:
        trials = [Trial(each, replicated=fault.replicated) for each in contenders()]
        for trial in trials:
            stack.enter_context(trial)
        list(pool.map(Trial.wait_until_steady, trials))
        return Row(fault, list(pool.map(partial(_cell, fault), trials)))


def _cell(fault: Fault, trial: Trial) -> Cell:
    start, seconds = time.time(), BEFORE + AFTER
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(_strike, fault, trial)
        trial.supervise(seconds)
        done.result()
    time.sleep(SETTLE)
    return Cell(trial.verdict(start, start + seconds), trial.exits)


def _strike(fault: Fault, trial: Trial) -> None:
    time.sleep(BEFORE)
    fault.strike(trial)


def report(*, quick: bool = False) -> None:
    """Print the table, row by row."""
    due = round(ENTRIES * (BEFORE + AFTER) / PERIOD)
    print(f"{ENTRIES} entries due every {PERIOD:g} s, {due} messages due in {BEFORE + AFTER:g} s.")
    print(f"The fault strikes after {BEFORE:g} s. A cell says:")
    print("missing / extra / processes that ended by themselves / longest silence of an entry\n")
    names = [each.name for each in contenders()]
    print(f"| fault | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for row in measure(quick=quick):
        print(f"| {row.fault.name} | {' | '.join(map(str, row.cells))} |", flush=True)
