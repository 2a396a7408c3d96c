"""How a tick is closed and counted, by whichever script does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.states import Done, State

if TYPE_CHECKING:
    from model.bounds import World
    from model.states import Held


def name_of(world: World, who: int) -> int:
    return who if world.rules.names_differ else 0


def close(world: World, state: State, tick: int, fence: int, outcome: str, previous: int) -> State:
    """Write an outcome down, and count it and what was passed over."""
    if outcome in {"registration", "operator"}:
        state = state.note(withdrawn=state.history.withdrawn | {tick})
    kept = Done(fence, outcome, previous) if world.rules.settled_kept else None
    state = count(state._replace(ledger=state.ledger.put(tick, kept)), tick, outcome)
    if world.rules.counted_in_script:
        for passed in range(previous + 1, tick):
            state = count_passed(world, state, passed)
    return state


def close_here(world: World, state: State, held: Held, outcome: str) -> State:
    """Close a tick by the grant that is in force, outside of a recovery."""
    state = close(world, state, held.tick, held.fence, outcome, held.previous)
    if not world.rules.runs_rise_with_mark and outcome == "sent":
        return add_run(world, state, 1)
    is_run = outcome == "sent" or (held.attempt > 1 and world.rules.retried_is_a_run)
    if not is_run and world.rules.skipped_is_no_run and world.rules.runs_rise_with_mark:
        return add_run(world, state, -1)
    return state


def close_again(world: World, state: State, held: Held, outcome: str) -> State:
    """Close a tick in a recovery: also one that was skipped stays a run."""
    if outcome not in {"sent", "doubt"} and world.bounds.limit:
        state = state.note(whole=False)
    state = close(world, state, held.tick, held.fence, outcome, held.previous)
    if outcome == "doubt" and not world.rules.doubt_is_a_run:
        return add_run(world, state, -1)
    is_new = not (world.rules.runs_rise_with_mark and world.rules.closed_is_no_new_run)
    return add_run(world, state, 1) if is_new and outcome in {"sent", "doubt"} else state


def add_run(world: World, state: State, number: int) -> State:
    """Change the runs of an entry with a limit."""
    if not world.bounds.limit:
        return state
    runs = max(0, state.ledger.runs + number)
    return state._replace(ledger=state.ledger._replace(runs=runs))


def count(state: State, tick: int, outcome: str) -> State:
    ledger, before = state.ledger, state.ledger.counted[tick - 1]
    history = state.history
    is_known = tick not in history.forgotten and tick not in history.dug_up
    if before and is_known and (before, outcome) != ("paused", "doubt"):
        return state.breaks("a tick was counted twice")
    counted = (*ledger.counted[: tick - 1], outcome, *ledger.counted[tick:])
    return state._replace(ledger=ledger._replace(counted=counted))


def count_passed(world: World, state: State, tick: int) -> State:
    if world.bounds.catch_up == "all":
        state = state.breaks("a tick was passed over though each one is wanted")
    return count(state, tick, "superseded")
