"""The ledger's scripts: each is one atomic step on the server, and answers; nodes learn elsewhere.

A verb takes the world, the state, the name and the memory of the caller (a late request carries
the memory of the moment at which it was made), and returns the state after it and its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from model.closing import add_run, close_here, count_passed, name_of
from model.feed import next_fence
from model.laws import finished, is_remembered, sent
from model.recovery import Result, doubt, recover, restored
from model.states import NOBODY, NONE, UNREGISTERED, Grant, Held, Ledger, Node, Plan, Settled, State
from model.steering import make_known, make_known_anew, steer

if TYPE_CHECKING:
    from model.bounds import World

RECOVERING = "RECOVERING"


def execute(world: World, state: State, who: int, node: Node, call: tuple[Any, ...]) -> Result:
    """Run one script on the server."""
    verb, *rest = call
    if verb not in {"recover", "doubt", "restore", "steer"} and must_recover(world, state, node):
        return state, RECOVERING
    return VERBS[verb](world, state, who, node, *rest)


def must_recover(world: World, state: State, node: Node) -> bool:
    rules, ledger = world.rules, state.ledger
    return (
        ledger.recovering != NONE
        or (rules.identity and ledger.identity != state.server)
        or (rules.epoch and ledger.epoch != node.epoch)
        or (rules.highest_fence and node.seen > ledger.fence)
        or (rules.sentinels and bool(ledger.lost))
    )


# register, claim


def register(world: World, state: State, who: int, node: Node) -> Result:
    ledger, now, timetable = state.ledger, state.now, node.words.entry.value
    if is_stored_otherwise(world, ledger, node) and world.rules.register_looks_at_revision:
        return state, "CHANGED"
    at = node.words.entry.at if world.bounds.stored and world.rules.known_since_stored else now
    if ledger.mark != UNREGISTERED:
        if ledger.timetable and ledger.timetable != timetable:
            state = make_known_anew(world, state, timetable, at)
        return state, "KNOWN"
    if is_remembered(state):
        state = state.breaks("an entry that a live node remembers was registered anew")
    state = make_known(state, timetable, at)
    if not world.bounds.run_on_start or ledger.counted[now - 1]:
        return state, "REGISTERED"
    state = state.note(promised=now, accounted=state.history.accounted - {now})
    if not world.rules.start_in_one_script:
        return state, "START"
    return open_start(world, state, who, node)


def is_stored_otherwise(world: World, ledger: Ledger, node: Node) -> bool:
    """Whether an entry is not stored under the revision under which a node has it."""
    return world.bounds.stored and node.has_entry and ledger.words.entry != node.words.entry


def open_start(world: World, state: State, who: int, node: Node) -> Result:
    """Open the tick of run_on_start, unowned, its lease over."""
    state, fence = next_fence(world, state)
    grant = Grant(NOBODY, fence, 0, state.now - 1, over=True)
    ledger = state.ledger.put(state.history.promised, grant)._replace(fence=fence)
    return add_run(world, state._replace(ledger=ledger), 1), "REGISTERED"


def poll(world: World, state: State, who: int, node: Node) -> Result:
    """Ask for nothing, and be told what is open."""
    beats = state.ledger.beats | {name_of(world, who)}
    return state._replace(ledger=state.ledger._replace(beats=beats)), "OK"


def claim(world: World, state: State, who: int, node: Node, tick: int) -> Result:
    state, _ = poll(world, state, who, node)
    if is_stored_otherwise(world, state.ledger, node) and world.rules.claim_looks_at_revision:
        return state, "CHANGED"
    return ask(world, state, name_of(world, who), tick)


def ask(world: World, state: State, name: int, tick: int) -> Result:
    ledger, grant = state.ledger, state.ledger.at(tick)
    if ledger.mark == UNREGISTERED and grant is None:
        return state, "UNREGISTERED"
    if ledger.words.pause.value:
        if not world.rules.paused_changes_nothing:
            state = state._replace(ledger=ledger._replace(mark=max(ledger.mark, tick)))
        return state, "PAUSED"
    if tick > state.now and world.rules.early_refused:
        return state, "EARLY"
    if grant and tick > ledger.mark:
        state = add_run(world, state._replace(ledger=ledger._replace(mark=tick)), 1)
    if isinstance(grant, Grant):
        return claim_open(world, state, name, tick, grant)
    if tick <= state.ledger.mark:
        return state, "SETTLED"
    return claim_new(world, state, name, tick)


def claim_new(world: World, state: State, name: int, tick: int) -> Result:
    """Grant one more tick, unless the entry has a limit that stands against it."""
    rules, ledger, limit = world.rules, state.ledger, world.bounds.limit
    is_over = limit and rules.limit_is_looked_at and ledger.runs >= limit
    is_open = ledger.mark in ledger.open() or (is_over and ledger.open())
    if limit and is_open and rules.open_is_waited_for:
        return state, "HELD"
    if is_over:
        return finished(world, state), "FINISHED"
    if rules.runs_rise_with_mark:
        state = add_run(world, state, 1)
    return grant_to(world, state, name, tick, max(ledger.mark, 0), 1)


def claim_open(world: World, state: State, name: int, tick: int, grant: Grant) -> Result:
    if not grant.over:
        return state, "MINE" if grant.owner == name else "HELD"
    if world.bounds.limit:
        state = state.note(retried=state.history.retried | {tick})
    previous = grant.previous if world.rules.first_previous else state.ledger.mark
    return grant_to(world, state, name, tick, previous, grant.attempt + 1)


def grant_to(
    world: World, state: State, name: int, tick: int, previous: int, attempt: int
) -> Result:
    if state.history.words.pause.value:
        state = state.breaks("granted while paused")
    if not world.rules.previous_stored:
        previous = tick - 1
    state, fence = next_fence(world, state)
    grant = Grant(name, fence, attempt, previous)
    ledger = state.ledger.put(tick, grant)._replace(fence=fence, mark=max(tick, state.ledger.mark))
    return state._replace(ledger=ledger), "GRANTED"


# settle, enqueue, release


def may_close(world: World, ledger: Ledger, held: Held) -> str:
    grant = ledger.at(held.tick)
    if grant and grant.fence == held.fence:
        return "DONE" if isinstance(grant, Grant) else "ALREADY"
    if not world.rules.already_by_fence and not isinstance(grant, Grant):
        return "ALREADY"
    return "STALE"


def settle(world: World, state: State, who: int, node: Node, settled: Settled) -> Result:
    held = settled.held
    closing = may_close(world, state.ledger, held)
    if closing == "DONE":
        state = close_here(world, state, held, settled.outcome)
    return state, closing


def enqueue(world: World, state: State, who: int, node: Node, held: Held) -> Result:
    rules, ledger = world.rules, state.ledger
    closing = may_close(world, ledger, held)
    if closing != "DONE" and rules.enqueue_looks_at_fence:
        return state, closing
    if ledger.words.pause.value and rules.enqueue_looks_at_pause:
        return state, "PAUSED"
    state = sent(world, state, held.tick)
    if isinstance(ledger.at(held.tick), Grant):
        state = close_here(world, state, held, "sent")
    return state, "DONE"


def release(world: World, state: State, who: int, node: Node, held: Held) -> Result:
    grant = state.ledger.at(held.tick)
    if isinstance(grant, Grant) and grant.fence == held.fence:
        if grant.attempt > world.bounds.attempts and not held.over:
            state = state.breaks("a tick is tried without end")
        ledger = state.ledger.put(held.tick, grant._replace(owner=NOBODY))
        state = state._replace(ledger=ledger)
    return state, "OK"


def count_later(world: World, state: State, who: int, node: Node, tick: int) -> Result:
    """Count what was passed over in a call of its own: only where that rule is left out."""
    return count_passed(world, state, tick), "OK"


def steered(world: World, state: State, who: int, node: Node, plan: Plan) -> Result:
    return steer(world, state, plan)


VERBS = {
    "register": register,
    "open_start": open_start,
    "poll": poll,
    "claim": claim,
    "settle": settle,
    "enqueue": enqueue,
    "release": release,
    "count_later": count_later,
    "recover": recover,
    "doubt": doubt,
    "restore": restored,
    "steer": steered,
}
