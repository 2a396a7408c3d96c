"""What a loss of data excuses, and what it must not undo; the laws themselves are elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.laws import out, was_awake
from model.states import NONE, Grant, Ledger, Node, State

if TYPE_CHECKING:
    from model.bounds import World


def forgive(world: World, state: State) -> State:
    """When a recovery ends, excuse what nobody who was awake could vouch for."""
    history, ledger = state.history, state.ledger
    ticks = range(1, world.bounds.ticks + 1)
    forgotten = {
        tick for tick in ticks if not any(remembers(node, ledger, tick) for node in state.nodes)
    }
    excused = gone = forgotten & out(state)
    if world.bounds.delivery == "publish":
        excused |= {tick for tick in ticks if is_asleep_with(state, tick)}
    state = state.note(
        excused=history.excused | excused,
        forgotten=history.forgotten | forgotten,
        gone=history.gone | gone if world.bounds.limit else frozenset(),
        barred=history.barred - forgotten,
    )
    return judge_feed(state)


def remembers(node: Node, ledger: Ledger, tick: int) -> bool:
    """Whether a node that was awake knows the tick closed, or its mark where it is not open."""
    if not was_awake(node, ledger):
        return False
    return tick in node.knew or (node.told >= tick and not isinstance(ledger.at(tick), Grant))


def is_asleep_with(state: State, tick: int) -> bool:
    return any(
        not was_awake(node, state.ledger)
        and (node.publishing == tick or any(held.tick == tick for held in node.held))
        for node in state.nodes
    )


def judge_feed(state: State) -> State:
    """When a recovery ends, have what was done undone, where nobody who was awake knew of it."""
    ledger = state.ledger
    for node in state.nodes:
        pairs = zip(node.words, ledger.words, strict=True)
        has_told = was_awake(node, ledger) and node.owes == NONE
        if has_told and any(word.revision > kept.revision for word, kept in pairs):
            state = state.breaks(
                "what an operator did is undone, and a node that was awake knew it"
            )
    state = state.note(barred=state.history.barred - set(ledger.open()))
    if not ledger.words.entry.value:
        ended = set(range(1, state.history.ended + 1))
        state = state.note(accounted=state.history.accounted | ended)
    return restored_late(state) if state.history.words != ledger.words else state


def restored_late(state: State) -> State:
    """Take the feed of the ledger as what operators did: it is all that is left of it."""
    is_same = state.history.words.entry == state.ledger.words.entry
    return state.note(
        words=state.ledger.words,
        removed=state.history.removed and is_same,
        barred=state.history.barred if is_same else frozenset(),
        start=state.history.start if is_same else state.now,
        ended=state.history.ended if is_same else 0,
    )


def dug_up(state: State, node: Node) -> State:
    """Note that a node tells of an entry that was removed, and that no record is kept of."""
    ended = set(range(1, state.history.ended + 1))
    is_gone = ended and not (state.ledger.words.entry.value and node.words.entry.value)
    remembers_it = node.mark >= 0 or node.held or node.own or node.unsettled or node.tried
    if not is_gone or not (remembers_it or node.published):
        return state
    return state.note(dug_up=state.history.dug_up | ended)
