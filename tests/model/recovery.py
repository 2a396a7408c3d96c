"""The verb ``recover``: nodes push what they remember, and the recovery ends once it is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.closing import close_again, name_of
from model.feed import restore
from model.forgiving import dug_up, forgive, restored_late
from model.laws import untried_but_doubted
from model.states import NONE, Done, Grant, Held, Ledger, Node, Settled, State

if TYPE_CHECKING:
    from model.bounds import World

Result = tuple[State, str]


def recover(world: World, state: State, who: int, node: Node) -> Result:
    """Take a node's testimony; end the recovery if it is time."""
    state = begin(world, state, node)
    state = take_testimony(world, state, who, node)
    ledger = state.ledger
    if ledger.recovering != NONE and not is_ready(world, ledger):
        return state, "WAIT"
    if world.rules.doubts and doubtful(world, ledger):
        return state, "DOUBTS"
    return end(world, state), "OK"


def begin(world: World, state: State, node: Node) -> State:
    rules, ledger = world.rules, state.ledger
    running = ledger.recovering != NONE
    starts = ledger.recovering != state.server and (
        running
        or (rules.identity and ledger.identity != state.server)
        or node.seen > ledger.fence
        or bool(ledger.lost)
    )
    if running and not rules.another_identity:
        starts, ledger = False, ledger._replace(recovering=state.server)
    if not rules.one_discovery and running and node.epoch != ledger.epoch:
        starts = True
    if starts:
        is_once = rules.one_discovery and rules.push_fence
        epoch = state.epochs + 1 if is_once else fresh_among(state)
        ledger = ledger._replace(
            recovering=state.server,
            epoch=epoch,
            hold_over=False,
            heard=frozenset(),
            vouched=frozenset(),
            floor=floor_of(world, ledger),
            ticks=tuple(listed_again(grant) for grant in ledger.ticks),
            revision=ledger.revision if not ledger.lost or not rules.lost_is_told_anew else 0,
        )
        state = state._replace(epochs=max(epoch, state.epochs))
    elif ledger.floor == NONE:
        ledger = ledger._replace(floor=floor_of(world, ledger))
    if world.bounds.limit and ledger.before == NONE:
        ledger = ledger._replace(before=ledger.floor)
    return state._replace(ledger=ledger)


def fresh_among(state: State) -> int:
    """An epoch that nobody has: where each discovery makes one, counting them would never end."""
    late = (late.node for late in state.late)
    taken = {holder.epoch for holder in (state.ledger, *state.nodes, *late)}
    return next(epoch for epoch in range(-2, -20, -1) if epoch not in taken)


def floor_of(world: World, ledger: Ledger) -> int:
    """The mark before pushes raised it, also if an earlier recovery came to no end."""
    if ledger.floor != NONE and world.rules.floor_kept:
        return ledger.floor
    return max(ledger.mark, 0)


def listed_again(grant: Grant | Done | None) -> Grant | Done | None:
    """An open tick that the ``open`` zset has lost comes back with its lease over."""
    if isinstance(grant, Grant) and not grant.listed:
        return grant._replace(listed=True, over=True)
    return grant


def take_testimony(world: World, state: State, who: int, node: Node) -> State:
    state = dug_up(state, node)
    rules, ledger = world.rules, state.ledger
    if rules.push_fence:
        ledger = ledger._replace(fence=max(ledger.fence, node.seen))
    if rules.push_marks:
        mark = node.mark if rules.marks_not_cut else min(node.mark, state.now)
        ledger = with_runs(world, ledger, node)
        ledger = ledger._replace(mark=max(ledger.mark, mark), since=max(ledger.since, node.since))
        if node.mark >= 0 and not ledger.timetable:
            ledger = ledger._replace(timetable=node.words.entry.value)
    if rules.push_closed:
        ledger = ledger._replace(vouched=ledger.vouched | closed_by(world, node))
    ledger = ledger._replace(heard=ledger.heard | {name_of(world, who)})
    state = state._replace(ledger=ledger)
    for settled in sorted(rows_settled(world, node)):
        state = push_settled(world, state, settled)
    if rules.push_held:
        for held in node.held:
            state = push_held(world, state, name_of(world, who), held)
    return state


def with_runs(world: World, ledger: Ledger, node: Node) -> Ledger:
    """Take the runs that were told with a mark that this copy lacks, if they are more."""
    is_above = node.mark > ledger.before or not world.rules.runs_of_copy
    if not world.bounds.limit or not is_above or not world.rules.push_runs:
        return ledger
    return ledger._replace(runs=max(ledger.runs, node.runs))


def closed_by(world: World, node: Node) -> frozenset[int]:
    """What a node tells as closed; without the finer rule only up to the first open tick."""
    if world.rules.closed_above_open:
        return node.closed
    reach = 0
    while reach + 1 in node.closed:
        reach += 1
    return frozenset(range(1, reach + 1))


def rows_settled(world: World, node: Node) -> set[Settled]:
    rules, rows = world.rules, set()
    if rules.push_settled:
        rows |= {*node.own, *node.unsettled}
        in_hand = {row.held.tick for row in rows} | node.closed
        rows |= {Settled(held, "sent") for held in node.published if held.tick not in in_hand}
    if world.bounds.delivery == "enqueue":  # the message is lost with its settlement
        rows = {row._replace(outcome="doubt") if row.outcome == "sent" else row for row in rows}
    if rules.push_tried:
        rows |= {Settled(held, "doubt") for held in node.tried}
    return rows


def push_settled(world: World, state: State, settled: Settled) -> State:
    held, grant = settled.held, state.ledger.at(settled.held.tick)
    if isinstance(grant, Done) or (grant and not world.rules.closed_wins):
        return state
    if grant is None and held.tick <= state.ledger.floor and world.rules.counted_above_floor:
        kept = Done(held.fence, settled.outcome, held.previous)
        return state._replace(ledger=state.ledger.put(held.tick, kept))
    return close_again(world, state, held, settled.outcome)


def push_held(world: World, state: State, name: int, held: Held) -> State:
    grant = state.ledger.at(held.tick)
    if isinstance(grant, Done) and world.rules.done_beats_held:
        return state
    if isinstance(grant, Grant) and world.rules.higher_fence_wins and grant.fence > held.fence:
        return state
    if grant is None and held.tick <= state.ledger.floor and world.rules.reopened_above_floor:
        return state
    reopened = Grant(name, held.fence, held.attempt, held.previous, held.over)
    ledger = state.ledger.put(held.tick, reopened)
    if world.rules.push_marks:
        ledger = ledger._replace(mark=max(ledger.mark, held.tick))
    return state._replace(ledger=ledger)


def restored(world: World, state: State, who: int, node: Node) -> Result:
    """Take what a copy lacks of the feed; it comes in a call of its own."""
    begun = begin(world, state, node)
    state = begun if begun.ledger.recovering != NONE else state
    if node.epoch != state.ledger.epoch and world.rules.restore_of_epoch:
        return state, "OK"
    before = state.ledger.words
    state = restore(world, state, node)
    if state.ledger.recovering == NONE and state.ledger.words != before:
        state = restored_late(state)
    return state, "OK"


def is_ready(world: World, ledger: Ledger) -> bool:
    early = bool(ledger.beats) and ledger.beats <= ledger.heard
    return ledger.hold_over or (early and not world.rules.full_hold_down)


def doubtful(world: World, ledger: Ledger) -> list[int]:
    """Ticks that pushes brought below the mark, and of which nobody knows anything."""
    known = set(ledger.vouched) if world.bounds.delivery == "publish" else set()
    for tick, grant in enumerate(ledger.ticks, 1):
        if grant:
            first = grant.previous + 1 if world.rules.passed_is_no_doubt else tick
            known |= set(range(first, tick + 1))
    floor = max(ledger.floor, ledger.since)
    return [tick for tick in range(floor + 1, ledger.mark + 1) if tick not in known]


def doubt(world: World, state: State, who: int, node: Node) -> Result:
    """Count what a node listed as in doubt; then the recovery ends."""
    state = begin(world, state, node)
    ledger = state.ledger
    too_soon = ledger.recovering != NONE and not is_ready(world, ledger)
    if world.rules.doubts_of_epoch and (ledger.epoch != node.epoch or too_soon):
        return state, "RECOVERING"
    if ledger.floor == NONE:
        return state, "OK"
    for tick in doubtful(world, ledger):
        if tick == node.doubts or (tick < node.doubts and node.has_entry):
            state = untried_but_doubted(state, tick)
            state = close_again(world, state, Held(tick, 0, 0, tick - 1), "doubt")
        elif tick < node.doubts:
            state = state.note(accounted=state.history.accounted | {tick})
    ledger = state.ledger._replace(floor=max(ledger.floor, node.doubts))
    state = state._replace(ledger=ledger)
    return (state, "DOUBTS") if doubtful(world, ledger) else (end(world, state), "OK")


def end(world: World, state: State) -> State:
    """End a recovery, or the doubts of a node that came late."""
    if state.ledger.recovering != NONE:
        state = forgive(world, state)
    for tick in state.ledger.open():
        if tick in state.ledger.vouched and world.rules.closed_wins:
            grant = state.ledger.at(tick)
            state = untried_but_doubted(state, tick)
            held = Held(tick, grant.fence, grant.attempt, grant.previous)
            state = close_again(world, state, held, "doubt")
    ledger = state.ledger
    told = {*ledger.vouched, *range(1, ledger.since + 1)}
    accounted = {tick for tick in told if not ledger.counted[tick - 1]}
    state = state.note(accounted=state.history.accounted | accounted)
    ledger = ledger._replace(floor=NONE, before=NONE, vouched=frozenset(), heard=frozenset())
    if ledger.recovering != NONE:
        highest = max(ledger.revision, *(word.revision for word in ledger.words))
        ledger = ledger._replace(
            recovering=NONE,
            identity=state.server,
            hold_over=False,
            lost=frozenset(),
            revision=highest,
        )
    return state._replace(ledger=ledger)
