"""A way through the states, told so that one can follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from model.states import OPERATOR, Grant, Held, Plan, Settled, State

if TYPE_CHECKING:
    from model.explore import Found

NAMES = "ABC"


def told(found: Found) -> str:
    """Tell each step, and what the ledger holds after it."""
    lines = []
    for number, (label, state) in enumerate(found.trace[1:], 1):
        lines.append(f"{number:4}. {step(label):62} {ledger(state)}")
    return "\n".join([*lines, f"      {found.law}"])


def step(label: tuple[Any, ...]) -> str:
    if label[0] == OPERATOR:
        return "operator: " + " ".join(part(each) for each in label[1:])
    if isinstance(label[0], int):
        return f"{NAMES[label[0]]}: " + " ".join(part(each) for each in label[1:])
    return " ".join(part(each) for each in label)


def part(value: Any) -> str:
    match value:
        case Settled(held, outcome):
            return f"{part(held)} as {outcome}"
        case Plan(deed, expected, mark, upto):
            seen = f"mark {mark}, up to {upto}" if mark >= 0 else "no remainder"
            return f"{deed} (revision {expected}, {seen})"
        case Held(tick=tick, fence=fence):
            return f"tick {tick} (fence {fence})"
        case tuple():
            return " ".join(part(each) for each in value) + ","
        case str():
            return value.replace("_", " ") if value.islower() else value
    return f"tick {value}"


def ledger(state: State) -> str:
    """Tell mark, grants and counts of the ledger in one line."""
    ticks = []
    for tick, grant in enumerate(state.ledger.ticks, 1):
        if isinstance(grant, Grant):
            owner = NAMES[grant.owner] if grant.owner >= 0 else "nobody"
            lease = ", lease over" if grant.over else ""
            ticks.append(f"{tick} open: {owner}, fence {grant.fence}{lease}")
        elif outcome := state.ledger.counted[tick - 1] or (grant and grant.outcome):
            ticks.append(f"{tick} {outcome}")
    mark = state.ledger.mark if state.ledger.mark >= 0 else "none"
    running = f", runs {state.ledger.runs}" if state.ledger.runs else ""
    entry, pause = state.ledger.words
    running += f", stored as {entry.value} at {entry.revision}" if entry.value else ""
    running += f", paused at {pause.revision}" if pause.value else ""
    running += ", recovering" if state.ledger.recovering >= 0 else ""
    return f"[due {state.now}, mark {mark}{running}; " + "; ".join(ticks) + "]"
