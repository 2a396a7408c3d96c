"""The scripts of operators: store, remove, pause, resume, skip; who asks for them is elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.closing import add_run, close, count
from model.feed import Result, next_fence, next_revision, put
from model.laws import asked_blindly, ended_too_late, in_force
from model.states import NONE, UNREGISTERED, Grant, Held, Ledger, Plan, State, Word

if TYPE_CHECKING:
    from model.bounds import World


def must_wait(state: State) -> bool:
    """Whether whoever has pushed nothing is answered RECOVERING."""
    ledger = state.ledger
    return ledger.recovering != NONE or ledger.identity != state.server or bool(ledger.lost)


# Looking


def look(world: World, state: State, deed: str, upto: int, *, held: bool, value: int = 0) -> Plan:
    """See what is to be said with a deed; ``held``: it ends also what somebody may be sending."""
    ledger = state.ledger
    expected = revision_of(ledger, deed)
    if ledger.mark == UNREGISTERED:
        return Plan(deed, expected, value=value)
    endings = tuple(
        Held(tick, grant.fence, grant.attempt, grant.previous)
        for tick in ledger.open()
        for grant in [ledger.at(tick)]
        if held or grant.over or not world.rules.leases_spared
    )
    return Plan(deed, expected, ledger.mark, upto, endings, value)


def revision_of(ledger: Ledger, deed: str) -> int:
    word = ledger.words.pause if deed == "resume" else ledger.words.entry
    return word.revision if word.value else 0


# Store, remove, resume


def steer(world: World, state: State, plan: Plan) -> Result:
    """Do what was planned, if all is still as it was seen."""
    rules, ledger = world.rules, state.ledger
    if must_wait(state):
        return state, "RECOVERING"
    is_another = revision_of(ledger, plan.deed) != plan.expected
    if is_another and rules.revision_compared:
        return state, "CHANGED"
    if plan.mark != NONE and not holds(world, state, plan):
        return state, "CHANGED"
    if plan.deed == "remove" and rules.remove_closes_open and plan_lacks(ledger, plan):
        return state, "CHANGED"
    if is_another:
        state = asked_blindly(state)
    return DEEDS[plan.deed](world, state, plan), "DONE"


def holds(world: World, state: State, plan: Plan) -> bool:
    """Whether mark and open ticks are as they were seen, and a resume ends nothing that is held."""
    rules, ledger = world.rules, state.ledger
    if ledger.mark != plan.mark and rules.mark_compared:
        return False
    for ending in plan.endings:
        grant = ledger.at(ending.tick)
        if not isinstance(grant, Grant) or grant.fence != ending.fence:
            return False
        if plan.deed == "resume" and rules.leases_spared and not grant.over:
            return False
    return True


def plan_lacks(ledger: Ledger, plan: Plan) -> bool:
    return ledger.open() != [ending.tick for ending in plan.endings]


def finish(world: World, state: State, plan: Plan, outcome: str) -> State:
    """Close the planned ticks under a new fence, count the rest, and raise the mark."""
    rules = world.rules
    ended = {*range(plan.mark + 1, plan.upto + 1), *(ending.tick for ending in plan.endings)}
    state = state.note(withdrawn=state.history.withdrawn | ended)
    for ending in plan.endings if outcome != "removed" or rules.remove_closes_open else ():
        fence = ending.fence
        if rules.ended_under_new_fence:
            state, fence = next_fence(world, state)
        state = close(world, state, ending.tick, fence, outcome, ending.previous)
        state = state._replace(ledger=state.ledger._replace(fence=max(fence, state.ledger.fence)))
        if ending.attempt < 1 or not rules.attempted_stays_run:
            state = add_run(world, state, -1)
        elif world.bounds.limit:
            state = state.note(retried=state.history.retried | {ending.tick})
    for tick in range(plan.mark + 1, plan.upto + 1):
        state = count(state, tick, outcome)
    mark = max(state.ledger.mark, plan.upto)
    return state._replace(ledger=state.ledger._replace(mark=mark))


def remove(world: World, state: State, plan: Plan) -> State:
    if plan.mark != NONE:
        state = finish(world, state, plan, "removed")
    for kind in ("pause", "entry"):
        if getattr(state.ledger.words, kind).value:
            state, revision = next_revision(world, state)
            state = state._replace(ledger=put(state.ledger, kind, Word(revision)))
    ledger = state.ledger._replace(unwanted=frozenset())
    if ledger.mark <= state.now or not world.rules.mark_ahead_stays:
        ledger = ledger._replace(mark=UNREGISTERED, runs=0, since=0, timetable=0)
    state = state._replace(ledger=ledger).note(
        words=ledger.words, removed=True, ended=plan.upto, unwanted=frozenset()
    )
    return bar(world, state, state.now, even_open=True)


def store(world: World, state: State, plan: Plan) -> State:
    is_new, was_removed = plan.expected == 0, state.history.removed
    state, revision = next_revision(world, state)
    ledger = put(state.ledger, "entry", Word(revision, plan.value, state.now))
    ended = state.history.ended if is_new else state.now
    state = state._replace(ledger=ledger).note(
        words=ledger.words,
        removed=False,
        start=state.now,
        accounted=state.history.accounted | set(range(ended + 1, state.now + 1)),
    )
    state = bar(world, state, state.now, even_open=was_removed)
    if not world.rules.store_registers:
        return state
    if ledger.mark == UNREGISTERED:
        return make_known(state, plan.value, state.now)
    if is_new or ledger.timetable != plan.value:
        if plan.mark != NONE:
            state = finish(world, state, plan, "registration")
        return make_known_anew(world, state, plan.value, state.now)
    return state


def resume(world: World, state: State, plan: Plan) -> State:
    if plan.mark != NONE:
        state = ended_too_late(state, plan)
        state = bar(world, state, plan.upto)
        if world.rules.resume_raises_mark:
            state = finish(world, state, plan, "paused")
    state, revision = next_revision(world, state)
    ledger = put(state.ledger, "pause", Word(revision))
    return state._replace(ledger=ledger).note(words=ledger.words)


DEEDS = {"remove": remove, "store": store, "resume": resume}


def bar(world: World, state: State, upto: int, *, even_open: bool = False) -> State:
    """Note ticks that may not be sent any more; who publishes what it holds cannot be held back."""
    ledger, is_ours = state.ledger, world.bounds.delivery == "enqueue" and even_open
    first = 1 if is_ours else max(ledger.mark, 0) + 1
    ticks = {tick for tick in range(first, upto + 1) if is_ours or not ledger.at(tick)}
    history = state.history
    return state.note(barred=history.barred | ticks, withdrawn=history.withdrawn | ticks)


# What becomes known


def make_known(state: State, timetable: int, at: int) -> State:
    """Make a record of an entry, from that instant on."""
    state = in_force(state, at)
    since = at if timetable else 0
    ledger = state.ledger._replace(mark=at, runs=0, since=since, timetable=timetable)
    state = state._replace(ledger=ledger)
    return state.note(accounted=state.history.accounted | set(range(1, at + 1)))


def make_known_anew(world: World, state: State, timetable: int, at: int) -> State:
    """Make another timetable known, that catches up nothing from before that instant."""
    state = in_force(state, at)
    ledger = state.ledger._replace(timetable=timetable)
    if world.rules.change_catches_up_nothing:
        ledger = ledger._replace(since=max(ledger.since, at))
    return state._replace(ledger=ledger)


# Pause, skip


def pause(world: World, state: State, until: int) -> State:
    state, revision = next_revision(world, state)
    ledger = put(state.ledger, "pause", Word(revision, until))
    return state._replace(ledger=ledger).note(words=ledger.words)


def skip(world: World, state: State, tick: int) -> Result:
    ledger = state.ledger
    if ledger.mark == UNREGISTERED:
        return state, "MISSING"
    if isinstance(ledger.at(tick), Grant) and world.rules.skip_refuses_open:
        return state, "OPEN"
    if tick <= ledger.mark and not isinstance(ledger.at(tick), Grant):
        return state, "SETTLED"
    state = state._replace(ledger=ledger._replace(unwanted=ledger.unwanted | {tick}))
    return state.note(unwanted=state.history.unwanted | {tick}), "DONE"
