"""Walk through all states breadth-first, and tell the shortest way to one that breaks a law."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from model.laws import broken, is_finished
from model.steps import first_state, steps
from model.symmetry import alike

if TYPE_CHECKING:
    from model.bounds import World
    from model.states import State


class Found(NamedTuple):
    """How many states there are, and the way to one that breaks a law, if there is one."""

    states: int
    law: str
    trace: list[tuple[tuple[Any, ...], State]]


def explore(world: World) -> Found:
    """Visit every state; then ask of each whether all ticks can still be finished.

    States that differ only in the names of nodes are visited once. A way to a broken law is
    looked for again without that, so that the names in it stay what they are.
    """
    with _no_collector():
        found = _explore(world, alike)
    return shortest(world) if found.law else found


def shortest(world: World) -> Found:
    """Look for the shortest way to a broken law, every node under its own name."""
    with _no_collector():
        return _explore(world, lambda state: state)


@contextmanager
def _no_collector() -> Iterator[None]:
    # Millions of tuples and no cycles: looking for some takes a third of the time.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _explore(world: World, one_of: Callable[[State], State]) -> Found:
    first = first_state(world)
    number = {first: 0}
    states: list[State] = [first]
    came: list[tuple[int, tuple[Any, ...]]] = [(-1, ())]
    sure: list[list[int]] = []
    place = 0
    while place < len(states):
        state = states[place]
        onwards = []
        for label, is_fault, after in steps(world, state):
            after = one_of(after)  # noqa: PLW2901
            found = number.get(after)
            if found is None:
                found = number[after] = len(states)
                states.append(after)
                came.append((place, label))
                if law := broken(world, after):
                    return Found(len(states), law, trace_to(states, came, found))
            if not is_fault:
                onwards.append(found)
        sure.append(onwards)
        place += 1
    stuck = dead_end(world, states, sure)
    if stuck is not None:
        law = "a tick can never be finished from here"
        return Found(len(states), law, trace_to(states, came, stuck))
    return Found(len(states), "", [])


def dead_end(world: World, states: list[State], sure: list[list[int]]) -> int | None:
    """Return the first state from which no way without faults leads to the end of all ticks."""
    before: list[list[int]] = [[] for _ in states]
    for place, onwards in enumerate(sure):
        for found in onwards:
            before[found].append(place)
    reaches = [is_finished(world, state) for state in states]
    queue = deque(place for place, reached in enumerate(reaches) if reached)
    while queue:
        for earlier in before[queue.popleft()]:
            if not reaches[earlier]:
                reaches[earlier] = True
                queue.append(earlier)
    return next((place for place, reached in enumerate(reaches) if not reached), None)


def trace_to(
    states: list[State], came: list[tuple[int, tuple[Any, ...]]], place: int
) -> list[tuple[tuple[Any, ...], State]]:
    trace = []
    while place >= 0:
        earlier, label = came[place]
        trace.append((label, states[place]))
        place = earlier
    return trace[::-1]
