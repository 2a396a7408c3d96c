"""The laws of DESIGN.md, over states and their true history, and what is excused, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.states import FOREVER, NONE, Grant, Ledger, Node, Plan, State

if TYPE_CHECKING:
    from model.bounds import World

# Judged on the way of a step


def sent(world: World, state: State, tick: int) -> State:
    """A message leaves: Once, Clock, the entry's limit, and what an operator has forbidden."""
    history, before = state.history, state.history.sent[tick - 1]
    if before and tick not in history.excused:
        state = state.breaks("a tick was sent twice")
    if tick > max(history.due, state.now):
        state = state.breaks("a tick was sent before its instant")
    if tick in history.barred:
        state = state.breaks("a tick that a resume passed over was sent")
    if tick in history.unwanted:
        state = state.breaks("a tick that an operator had skipped was sent")
    if world.bounds.delivery == "enqueue" and history.words.pause.value:
        state = state.breaks("a message was pushed while the entry was paused")
    if world.bounds.delivery == "enqueue" and history.removed:
        state = state.breaks("a message was pushed after the entry was removed")
    count = (*history.sent[: tick - 1], min(before + 1, 2), *history.sent[tick:])
    state = state.note(sent=count)
    if world.bounds.limit and len(out(state) - history.gone) > world.bounds.limit:
        state = state.breaks("an entry had more messages than it may have")
    return state


def out(state: State) -> set[int]:
    """Return the ticks whose messages left."""
    return {tick for tick, number in enumerate(state.history.sent, 1) if number}


def finished(world: World, state: State) -> State:
    """Judge a node's being told that an entry has run as often as it may."""
    doubtful = {tick for tick, told in enumerate(state.ledger.counted, 1) if told == "doubt"}
    runs = out(state) | doubtful | state.history.retried
    if state.history.whole and len(runs) < world.bounds.limit:
        state = state.breaks("an entry was finished before it had run as often as it may")
    return state


def is_remembered(state: State) -> bool:
    """Whether a node that has pushed under this epoch was ever told of the entry."""
    return any(
        was_awake(node, state.ledger) and node.epoch == state.ledger.epoch and node.told >= 0
        for node in state.nodes
    )


def untried_but_doubted(state: State, tick: int) -> State:
    """Judge a doubt: no grant may come to it that its node holds, and that nobody tried."""
    if tick in state.history.withdrawn:
        return state
    fences = [fence for node in state.nodes for fence in fences_of(node, tick)]
    for node in state.nodes:
        for held in node.held:
            is_last = held.tick == tick and held.fence == max(fences)
            if was_awake(node, state.ledger) and is_last and not state.history.sent[tick - 1]:
                return state.breaks("a grant that was never tried came to be in doubt")
    return state


def fences_of(node: Node, tick: int) -> list[int]:
    grants = [*node.held, *node.tried, *(each.held for each in (*node.unsettled, *node.own))]
    return [held.fence for held in grants if held.tick == tick]


def followed(state: State, node: Node) -> State:
    """Judge what a node has that has fetched what changed."""
    pairs = zip(node.words, state.ledger.words, strict=True)
    if any(word != kept for word, kept in pairs if word.value or kept.value):
        state = state.breaks("a node that has followed all changes has something else")
    return state


def in_force(state: State, at: int) -> State:
    """Judge that an entry becomes known from an instant on: what fell due before is not sent."""
    history, ledger = state.history, state.ledger
    due = range(max(history.start, ledger.mark) + 1, at + 1)
    if history.words.entry.value and any(not ledger.counted[tick - 1] for tick in due):
        state = state.breaks("a tick fell due while the entry was in force, and will not be sent")
    return state


def asked_blindly(state: State) -> State:
    return state.breaks("a deed was done on what its operator had not seen")


def ended_too_late(state: State, plan: Plan) -> State:
    """Judge the end of a pause with a remainder."""
    ends = state.ledger.words.pause.value
    if ends != FOREVER and plan.upto > ends:
        state = state.breaks("a tick that fell due after a pause was counted as paused")
    return state


def was_awake(node: Node, ledger: Ledger) -> bool:
    """Whether a node could speak in time: who has not by the end of the hold-down was asleep."""
    return node.status == "up" and (node.epoch == ledger.epoch or not ledger.hold_over)


# Judged on each state


def broken(world: World, state: State) -> str:
    """Return the law that a state breaks, or an empty text."""
    return state.history.broken or one_live_grant(state) or accounting(state)


def one_live_grant(state: State) -> str:
    for tick, grant in enumerate(state.ledger.ticks, 1):
        if not isinstance(grant, Grant):
            continue
        holders = sum(
            held.tick == tick and held.fence == grant.fence
            for node in state.nodes
            if node.status in {"up", "asleep"}
            for held in node.held
        )
        if holders > 1:
            return "two nodes hold the same live grant"
    return ""


def accounting(state: State) -> str:
    """Each tick up to the mark is open, counted, or going to be counted with an open one."""
    ledger = state.ledger
    if ledger.recovering != NONE or ledger.floor != NONE or ledger.identity != state.server:
        return ""
    if ledger.lost or all(
        counted or grant for counted, grant in zip(ledger.counted, ledger.ticks, strict=False)
    ):
        return ""
    known = set(state.history.accounted)
    for node in state.nodes:
        if node.status in {"up", "asleep"}:
            known |= node.uncounted
            known |= {state.history.promised} if node.start_owed else set()
    for tick, grant in enumerate(ledger.ticks, 1):
        if isinstance(grant, Grant):
            known |= set(range(grant.previous + 1, tick + 1))
    for tick in range(1, max(ledger.mark, state.history.ended) + 1):
        if not ledger.counted[tick - 1] and tick not in known:
            return "a tick vanished: it is neither open nor counted"
    return ""


def is_finished(world: World, state: State) -> bool:
    """Whether all ticks are due and finished, or the operator wants none of it."""
    ledger = state.ledger
    if FOREVER in {state.history.words.pause.value, ledger.words.pause.value}:
        return True
    is_removed = world.bounds.stored and not ledger.words.entry.value
    nobody_has_it = not world.bounds.stored and all(
        node.status == "dead" or not node.has_entry for node in state.nodes
    )
    return (
        (state.now == world.bounds.ticks or is_removed)
        and (
            ledger.mark >= state.now or is_removed or nobody_has_it or has_run_enough(world, state)
        )
        and ledger.recovering == NONE
        and ledger.floor == NONE
        and ledger.identity == state.server
        and not ledger.open()
    )


def has_run_enough(world: World, state: State) -> bool:
    """Whether an entry has no more runs, or nobody who lives asks for one."""
    if not world.bounds.limit:
        return False
    alive = [node for node in state.nodes if node.status != "dead" and node.has_entry]
    return state.ledger.runs >= world.bounds.limit or all(node.finished for node in alive)
