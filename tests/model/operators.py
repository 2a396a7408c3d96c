"""What operators do: they look, ask, and ask again when nobody answers; it breaks nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from model.faults import Step, may, spend
from model.states import FOREVER, OPERATOR, UNREGISTERED, Late, Node, Plan, State
from model.steering import look, must_wait, pause, skip, steer

if TYPE_CHECKING:
    from model.bounds import World


def operator_steps(world: World, state: State) -> Iterator[Step]:
    """Yield what an operator may do next, where no recovery is running."""
    if must_wait(state) or not world.bounds.has_feed:
        return
    if state.plan:
        yield from asking(world, state, state.plan)
        return
    yield from pausing(world, state)
    if world.bounds.stored:
        yield from storing(world, state)
    yield from skipping(world, state)


def asking(world: World, state: State, plan: Plan) -> Iterator[Step]:
    """Ask as planned. Where no answer comes, the same is asked again, or looked at anew."""
    call = ("steer", plan)
    after, answer = steer(world, state, plan)
    yield Step((OPERATOR, *call, answer), True, after._replace(plan=None))
    if spent := spend(after, "reply_lost"):
        yield Step((OPERATOR, *call, "reply lost"), True, spent)
    if not state.late and (spent := spend(state, "late")):
        late = (Late(OPERATOR, Node(), call),)
        yield Step((OPERATOR, *call, "late"), True, spent._replace(late=late, plan=None))


def pausing(world: World, state: State) -> Iterator[Step]:
    ledger = state.ledger
    if ledger.mark == UNREGISTERED:
        return
    if spent := spend(state, "pause"):
        yield Step((OPERATOR, "pauses the entry"), True, pause(world, spent, FOREVER))
    for until in range(max(state.now, 1), min(state.now + 1, world.bounds.ticks) + 1):
        if spent := spend(state, "pause_until"):
            label = (OPERATOR, "pauses the entry until", until)
            yield Step(label, True, pause(world, spent, until))
    ends = ledger.words.pause.value
    if ends:
        upto = state.now if ends == FOREVER else min(state.now, ends)
        plan = look(world, state, "resume", upto, held=False)
        yield planned(state, plan)
        if world.bounds.caught_up:
            yield planned(state, Plan("resume", plan.expected))


def storing(world: World, state: State) -> Iterator[Step]:
    value = state.ledger.words.entry.value
    if not value:
        yield planned(state, look(world, state, "store", state.now, held=False, value=1))
        return
    if spent := spend(state, "remove"):
        yield planned(spent, look(world, spent, "remove", state.now, held=True))
    if spent := spend(state, "change"):
        plan = look(world, spent, "store", state.now, held=False, value=value + 1)
        yield planned(spent, plan)


def planned(state: State, plan: Plan) -> Step:
    return Step((OPERATOR, "looks, to", plan.deed), True, state._replace(plan=plan))


def skipping(world: World, state: State) -> Iterator[Step]:
    if not may(state, "skip"):
        return
    for tick in range(1, world.bounds.ticks + 1):
        after, answer = skip(world, state, tick)
        if answer == "DONE" and (spent := spend(after, "skip")):
            yield Step((OPERATOR, "has skipped", tick), True, spent)
