"""What a node learns from an answer, or from none; what it asks is elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from model.feed import follow, is_over, owe
from model.laws import followed
from model.states import NONE, Held, Ledger, Node, Plan, Settled, State
from model.steering import look
from model.verbs import RECOVERING

if TYPE_CHECKING:
    from model.bounds import World

Call = tuple[Any, ...]


def unanswered(world: World, node: Node, call: Call) -> Node:  # noqa: PLR0911 - one per verb
    """Return a node that waited for an answer in vain; it learns nothing."""
    verb = call[0]
    if verb == "claim" and not world.rules.cursor_is_answered:
        return node._replace(cursor=max(node.cursor, call[1]))
    if verb == "enqueue":
        held = call[1]
        if not world.rules.tried_is_dropped:
            return node._replace(knew=node.knew | {held.tick})
        node = without(node, held.tick)
        return node._replace(tried=node.tried | {held}, knew=node.knew | {held.tick})
    if verb == "settle":
        return keep_unsettled(node, call[1])
    if verb == "release":
        return without(node, call[1].tick)
    if verb == "doubt":
        return node._replace(doubts=NONE)
    return node._replace(plan=None) if verb == "steer" else node


def answered(world: World, state: State, who: int, call: Call, answer: str) -> State:
    """Let a node learn from the answer that the script has just given."""
    node, verb = state.nodes[who], call[0]
    if answer == RECOVERING:
        node = keep_unsettled(node, call[1]) if verb == "settle" else node._replace(doubts=NONE)
        return state.node(who, node._replace(plan=None))
    if verb in LEARN:
        return LEARN[verb](world, state, who, call, answer)
    return state.node(who, unanswered(world, node, call))


def learn_claim(world: World, state: State, who: int, call: Call, answer: str) -> State:
    node, ledger = state.nodes[who], state.ledger
    node = node._replace(seen=max(node.seen, ledger.fence), asks_first=False)
    if answer == "UNREGISTERED":
        return state.node(who, follow(world, node, ledger))
    if (
        call[0] == "claim"
        and (node.has_entry or world.rules.marks_of_others)
        and answer != "CHANGED"
    ):
        if ledger.mark < node.told:
            state = state.breaks("a node was answered a lower mark than before")
        mark = max(node.mark, ledger.mark)
        moves = answer not in {"PAUSED", "EARLY"} or not world.rules.paused_changes_nothing
        cursor = max(node.cursor, mark) if moves else node.cursor
        if not world.rules.cursor_is_answered:
            cursor = max(cursor, call[1])
        node = hear_runs(node, ledger)._replace(mark=mark, cursor=cursor)
        node = node._replace(finished=node.finished or answer == "FINISHED")
    node = learn_open(world, node, state)
    if answer in {"GRANTED", "MINE"}:
        node = take(world, node, call[1], state)
    if answer == "PAUSED" and is_over(state) and node.has_entry and world.rules.nodes_end_pauses:
        node = node._replace(plan=end_of_pause(world, state))
    has_no_news = answer == "CHANGED" and ledger.revision <= node.upto
    node = follow(world, node, ledger, anew=has_no_news)
    return followed(state, node).node(who, node)


def end_of_pause(world: World, state: State) -> Plan:
    """Look at an entry whose pause is over, and count what fell due in it."""
    ends = state.ledger.words.pause.value if world.rules.ends_at_its_time else state.now
    return look(world, state, "resume", ends, held=False)


def hear_runs(node: Node, ledger: Ledger) -> Node:
    """Remember the runs that were told with a mark, as long as that is the highest."""
    return node._replace(runs=ledger.runs) if ledger.mark >= node.mark else node


def learn_open(world: World, node: Node, state: State) -> Node:
    """Conclude what is closed: all up to the mark but what was named as open."""
    open_ = set(state.ledger.open())
    closed = frozenset(range(1, node.mark + 1)) - open_
    tried = frozenset()
    if world.rules.tried_until_closed:
        tried = frozenset(
            held
            for held in node.tried
            if held.tick in open_ and state.ledger.at(held.tick).fence == held.fence
        )
    return node._replace(
        closed=closed,
        own=frozenset(),
        tried=tried,
        told=max(node.told, node.mark),
        knew=node.knew | closed,
    )


def take(world: World, node: Node, tick: int, state: State) -> Node:
    grant = state.ledger.at(tick)
    is_told = grant.attempt == 1 or world.rules.skip_told_to_all
    unwanted = tick in state.ledger.unwanted and is_told
    held = Held(tick, grant.fence, grant.attempt, grant.previous, unwanted=unwanted)
    if not world.rules.previous_stored:
        held = held._replace(previous=tick - 1)
    node = without(node, tick)
    mine = any(each.tick == tick for each in node.published)
    if mine and world.rules.own_orphan:
        rest = tuple(each for each in node.unsettled if each.held.tick != tick)
        return node._replace(unsettled=(*rest, Settled(held, "sent")))
    tried = frozenset(each for each in node.tried if each.tick != tick)
    knew = node.knew if mine else node.knew - {tick}
    return node._replace(held=tuple(sorted((*node.held, held))), tried=tried, knew=knew)


def learn_record(world: World, state: State, who: int, call: Call, answer: str) -> State:
    node, mark = state.nodes[who]._replace(fresh=False), state.ledger.mark
    if answer == "CHANGED":
        return state.node(who, node)
    mark = max(node.mark, mark)
    node = hear_runs(node, state.ledger)._replace(
        mark=mark,
        cursor=max(node.cursor, mark),
        told=max(node.told, mark),
        seen=max(node.seen, state.ledger.fence),
        start_owed=answer == "START",
        since=state.ledger.since,
    )
    return state.node(who, node)


def learn_start(world: World, state: State, who: int, call: Call, answer: str) -> State:
    return state.node(who, state.nodes[who]._replace(start_owed=False))


def learn_settle(world: World, state: State, who: int, call: Call, answer: str) -> State:
    return learn_closing(world, state, who, call[1], answer)


def learn_enqueue(world: World, state: State, who: int, call: Call, answer: str) -> State:
    held = call[1]
    if answer == "PAUSED":
        return state.node(who, without(state.nodes[who], held.tick))
    return learn_closing(world, state, who, Settled(held, "sent"), answer)


def learn_closing(world: World, state: State, who: int, settled: Settled, answer: str) -> State:
    """Learn whether an outcome stands; whoever is told so must be the one whose it is."""
    held, ledger = settled.held, state.ledger
    node = without(state.nodes[who], held.tick)
    rest = tuple(each for each in node.unsettled if each.held != held)
    node = node._replace(unsettled=rest)
    done = ledger.at(held.tick)
    if answer == "STALE":
        return state.node(who, node)
    ended = done is not None and done.outcome in {"removed", "paused", "registration"}
    if world.rules.settled_kept and (
        done is None or done.fence != held.fence or (ended and done.outcome != settled.outcome)
    ):
        state = state.breaks("a node was told that its outcome stands, and another's does")
    if answer == "DONE" and not world.rules.counted_in_script:
        passed = frozenset(range(held.previous + 1, held.tick))
        node = node._replace(uncounted=node.uncounted | passed)
    tick = held.tick
    return state.node(who, node._replace(own=node.own | {settled}, knew=node.knew | {tick}))


def learn_count(world: World, state: State, who: int, call: Call, answer: str) -> State:
    node = state.nodes[who]
    return state.node(who, node._replace(uncounted=node.uncounted - {call[1]}))


def learn_recovery(world: World, state: State, who: int, call: Call, answer: str) -> State:
    node, ledger = state.nodes[who], state.ledger
    doubts = ledger.mark if answer == "DOUBTS" else NONE
    seen = max(node.seen, ledger.fence)
    if call[0] == "recover" and world.rules.refused_is_dropped and world.rules.push_held:
        standing = {(tick, grant.fence) for tick, grant in enumerate(ledger.ticks, 1) if grant}
        held = tuple(each for each in node.held if (each.tick, each.fence) in standing)
        node = node._replace(held=held)
    node = node._replace(epoch=ledger.epoch, doubts=doubts, seen=seen)
    return state.node(who, owe(world, node, ledger) if call[0] == "recover" else node)


def learn_restored(world: World, state: State, who: int, call: Call, answer: str) -> State:
    return state.node(who, state.nodes[who]._replace(owes=NONE))


def without(node: Node, tick: int) -> Node:
    return node._replace(held=tuple(held for held in node.held if held.tick != tick))


def keep_unsettled(node: Node, settled: Settled) -> Node:
    node = without(node, settled.held.tick)
    if settled in node.unsettled:
        return node
    return node._replace(unsettled=(*node.unsettled, settled), knew=node.knew | {settled.held.tick})


LEARN = {
    "register": learn_record,
    "open_start": learn_start,
    "poll": learn_claim,
    "claim": learn_claim,
    "settle": learn_settle,
    "enqueue": learn_enqueue,
    "count_later": learn_count,
    "recover": learn_recovery,
    "doubt": learn_recovery,
    "restore": learn_restored,
}
