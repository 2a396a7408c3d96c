"""All that can happen in a state: nodes act, time passes, things break."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from model.closing import name_of
from model.faults import Step, late_steps, losses, misfortunes, spend
from model.laws import sent
from model.learning import answered, unanswered, without
from model.nodes import calls, outcome_for
from model.operators import operator_steps
from model.states import (
    NO_WORDS,
    NONE,
    UNREGISTERED,
    Done,
    Grant,
    Held,
    History,
    Late,
    Ledger,
    Node,
    Settled,
    State,
    Word,
    Words,
)
from model.verbs import execute, must_recover

if TYPE_CHECKING:
    from model.bounds import World


def first_state(world: World) -> State:
    bounds = world.bounds
    ticks = bounds.ticks
    joined = bounds.nodes - bounds.new
    up = Node()
    unaware = {"mark": UNREGISTERED, "cursor": UNREGISTERED, "told": UNREGISTERED}
    if bounds.stored:
        unaware["has_entry"] = False
    new = Node(status="new", epoch=0, **unaware)
    if bounds.absent:
        up = up._replace(**unaware)
    if bounds.run_on_start:
        up = up._replace(mark=UNREGISTERED, cursor=UNREGISTERED, told=UNREGISTERED)
    nodes = [up] * joined + [new] * bounds.new
    for who in range(bounds.without_entry):
        nodes[who] = nodes[who]._replace(has_entry=False)
    ledger = Ledger(
        mark=UNREGISTERED if bounds.run_on_start or bounds.absent else 0,
        ticks=(None,) * ticks,
        counted=("",) * ticks,
        beats=frozenset(name_of(world, who) for who in range(joined)),
    )
    words = Words(Word(1, 1)) if bounds.stored and not bounds.absent else NO_WORDS
    if words.entry.value:
        ledger = ledger._replace(words=words, revision=1, fence=1, timetable=1)
        nodes = [
            node._replace(words=words, upto=1, seen=1) if node.status == "up" else node
            for node in nodes
        ]
    return State(
        now=1 if bounds.run_on_start else 0,
        server=1,
        ledger=ledger,
        copy=None,
        nodes=tuple(nodes),
        late=(),
        left=bounds.left(),
        history=History((0,) * ticks, words=words),
        fences=words.entry.revision,
    )


def steps(world: World, state: State) -> Iterator[Step]:
    """Yield each thing that may happen next."""
    for who, node in enumerate(state.nodes):
        if node.status == "up":
            yield from node_steps(world, state, who)
        elif node.status == "new":
            yield Step((who, "starts"), False, state.node(who, node._replace(status="up")))
        elif node.status == "asleep":
            yield from waking(world, state, who)
        yield from misfortunes(world, state, who)
    yield from time_steps(world, state)
    yield from late_steps(world, state)
    yield from losses(world, state)
    yield from operator_steps(world, state)


# Nodes


def node_steps(world: World, state: State, who: int) -> Iterator[Step]:
    node = state.nodes[who]
    for call in calls(world, state, who):
        after, answer = execute(world, state, who, node, call)
        yield Step((who, call, answer), False, answered(world, after, who, call, answer))
        lost = unanswered(world, node, call)
        if spent := spend(after, "reply_lost"):
            yield Step((who, call, "reply lost"), True, spent.node(who, lost))
        if not state.late and call[0] != "poll" and (spent := spend(state, "late")):
            late = (Late(who, node, call),)
            yield Step((who, call, "late"), True, spent.node(who, lost)._replace(late=late))
    if world.bounds.delivery == "publish" and not world.bounds.poison:
        yield from publish_steps(world, state, who)


def publish_steps(world: World, state: State, who: int) -> Iterator[Step]:
    node, ledger = state.nodes[who], state.ledger
    if ledger.recovering != NONE and node.epoch == ledger.epoch:
        return  # it has told what it holds, and waits for the end
    for held in node.held:
        if held.over and world.rules.lease_is_looked_at:
            continue
        if outcome_for(world, state, node, held) == "sent":
            after = publish(world, state, who, held.tick)
            if not must_recover(world, state, node) and is_replaced(ledger, held):
                after = after.breaks("a node published while another grant is in force")
            if not held.over and is_counted_as_paused(ledger, held):
                after = after.breaks("a node published what had been counted as paused")
            yield Step((who, "publishes", held.tick), False, after)


def is_replaced(ledger: Ledger, held: Held) -> bool:
    grant = ledger.at(held.tick)
    return isinstance(grant, Grant) and grant.fence != held.fence


def is_counted_as_paused(ledger: Ledger, held: Held) -> bool:
    done = ledger.at(held.tick)
    return isinstance(done, Done) and done.outcome == "paused"


def publish(world: World, state: State, who: int, tick: int) -> State:
    node = state.nodes[who]
    held = next(held for held in node.held if held.tick == tick)
    state = sent(world, state, tick)
    if any(each.tick == tick for each in node.published):
        state = state.breaks("one node published a tick twice")
    node = without(node, tick)._replace(
        unsettled=(*node.unsettled, Settled(held, "sent")),
        knew=node.knew | {tick},
        published=node.published | {held},
        publishing=NONE,
    )
    return state.node(who, node)


def waking(world: World, state: State, who: int) -> Iterator[Step]:
    node = state.nodes[who]
    awake = state.node(who, node._replace(status="up"))
    if node.publishing != NONE:
        published = publish(world, awake, who, node.publishing)
        yield Step((who, "wakes and publishes"), False, published)
        return
    yield Step((who, "wakes"), False, awake)
    if any(not held.over for held in node.held):
        held = tuple(held._replace(over=True) for held in node.held)
        late = state.node(who, node._replace(status="up", held=held))
        yield Step((who, "wakes after its leases"), False, late)


# Time


def time_steps(world: World, state: State) -> Iterator[Step]:
    ledger = state.ledger
    if state.now < world.bounds.ticks:
        yield Step(("due now:", state.now + 1), False, state._replace(now=state.now + 1))
    if world.bounds.catch_up == "none" and state.overdue < state.now:
        later = state._replace(overdue=state.now)
        yield Step(("grace over:", state.now), False, later)
    for tick in ledger.open():
        if may_end(world, state, tick):
            yield Step(("lease over:", tick), False, lease_ends(world, state, tick))
    if ledger.recovering == state.server and not ledger.hold_over and all_pushed(world, state):
        over = state._replace(ledger=ledger._replace(hold_over=True))
        yield Step(("the hold-down ends",), False, over)


def may_end(world: World, state: State, tick: int) -> bool:
    """A node that is awake acts within its lease, unless it must wait for a recovery."""
    grant = state.ledger.at(tick)
    if grant.over:
        return False
    for who, node in enumerate(state.nodes):
        if name_of(world, who) != grant.owner or node.status != "up":
            continue
        in_hand = [*node.held, *(settled.held for settled in node.unsettled)]
        if any(held.tick == tick and held.fence == grant.fence for held in in_hand):
            return must_recover(world, state, node)
    return True


def lease_ends(world: World, state: State, tick: int) -> State:
    ledger, grant = state.ledger, state.ledger.at(tick)
    for who, node in enumerate(state.nodes):
        held = tuple(
            each._replace(over=True) if (each.tick, each.fence) == (tick, grant.fence) else each
            for each in node.held
        )
        if held != node.held:
            state = state.node(who, node._replace(held=held))
    # Published and not settled when the lease ends: publish delivery may send it again.
    is_out = state.history.sent[tick - 1] or any(node.publishing == tick for node in state.nodes)
    if world.bounds.delivery == "publish" and is_out:
        state = state.note(excused=state.history.excused | {tick})
    return state._replace(ledger=ledger.put(tick, grant._replace(over=True)))


def all_pushed(world: World, state: State) -> bool:
    """The hold-down is long enough for each node that is awake to have pushed."""
    return all(
        node.status != "up" or (node.epoch == state.ledger.epoch and node.owes == NONE)
        for node in state.nodes
    )
