"""What is done to nodes, and when: a script that a seed decides beforehand; it does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from celery_redlock_beat.hints import hint

LASTS = {"kill": (0.2, 6.0), "pause": (0.1, 10.0), "restart": (0.2, 2.0), "cut": (0.1, 10.0)}
"""The kinds of faults, and how many seconds each lasts, from and to."""
ALL = "all"
NONE = "none"
GAP = (0.3, 3.0)  # seconds between one fault and the next
BACK = {"kill": 3.0, "restart": 3.0}  # seconds until a node that was started again takes part
SHORTEST = 0.1


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one node: when it begins and how long it lasts, in seconds of the run.

    A ``silent`` cut swallows what is sent, as a broken network does; another one refuses.
    """

    at: float
    kind: str
    node: int
    lasts: float
    silent: bool = False

    def __str__(self) -> str:
        how = f" ({'silent' if self.silent else 'refused'})" if self.kind == "cut" else ""
        return f"{self.at:6.1f} s  {self.kind} node {self.node + 1} for {self.lasts:.1f} s{how}"


def parse_kinds(text: str, possible: tuple[str, ...] = tuple(LASTS)) -> tuple[str, ...]:
    """Read a list such as ``kill,pause``, or ``all``, or ``none``.

    ``possible`` are those that can be done here. Raises ``ValueError`` with a suggestion.
    """
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names in ([ALL], [NONE]):
        return possible if names == [ALL] else ()
    if not names:
        raise ValueError(f"no fault is named: choose some of {_listed()}")
    for name in names:
        if name in {ALL, NONE}:
            raise ValueError(f"{name!r} stands alone")
        if name not in LASTS:
            meant = hint(name, [*LASTS, ALL, NONE], f"choose some of {_listed()}")
            raise ValueError(f"{name!r} is no fault: {meant}")
    return tuple(name for name in LASTS if name in names)


def _listed() -> str:
    return f"{', '.join(LASTS)}; or {ALL}, or {NONE}"


def plan(kinds: tuple[str, ...], nodes: int, seconds: float, seed: int) -> tuple[Fault, ...]:
    """Return the faults of a run: the same for the same arguments.

    One node at least is unharmed at any time, and all faults are over when the run is.
    """
    random = Random(seed)  # noqa: S311  no secret
    well_from = [0.0] * nodes
    script: list[Fault] = []
    at = random.uniform(*GAP)
    while kinds and nodes > 1:
        kind, silent = random.choice(kinds), random.random() < 1 / 2
        first, last = LASTS[kind]
        lasts = first * (last / first) ** random.random()  # as many short ones as long ones
        harmed = sorted(moment for moment in well_from if moment > at)
        if len(harmed) >= nodes - 1:
            at = harmed[0]
        node = random.choice([place for place in range(nodes) if well_from[place] <= at])
        lasts = min(lasts, seconds - at)
        if lasts < SHORTEST:
            break
        script.append(Fault(round(at, 3), kind, node, round(lasts, 3), silent))
        well_from[node] = at + lasts + BACK.get(kind, 0.0)
        at += random.uniform(*GAP)
    return tuple(script)
