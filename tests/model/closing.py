"""How a tick is closed and counted, by whichever script does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.states import Done, State

if TYPE_CHECKING:
    from model.bounds import World


def name_of(world: World, who: int) -> int:
    return who if world.rules.names_differ else 0


def close(world: World, state: State, tick: int, fence: int, outcome: str, previous: int) -> State:
    """Write an outcome down, and count it and what was passed over."""
    kept = Done(fence, outcome, previous) if world.rules.settled_kept else None
    state = count(state._replace(ledger=state.ledger.put(tick, kept)), tick, outcome)
    if world.rules.counted_in_script:
        for passed in range(previous + 1, tick):
            state = count_passed(world, state, passed)
    return state


def count(state: State, tick: int, outcome: str) -> State:
    ledger, before = state.ledger, state.ledger.counted[tick - 1]
    if before and tick not in state.history.forgotten and (before, outcome) != ("paused", "doubt"):
        return state.breaks("a tick was counted twice")
    counted = (*ledger.counted[: tick - 1], outcome, *ledger.counted[tick:])
    return state._replace(ledger=ledger._replace(counted=counted))


def count_passed(world: World, state: State, tick: int) -> State:
    if world.bounds.catch_up == "all":
        state = state.breaks("a tick was passed over though each one is wanted")
    return count(state, tick, "superseded")
