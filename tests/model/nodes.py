"""A node: what it may ask next; what it learns from an answer is elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from model.feed import is_over
from model.states import NONE, UNREGISTERED, Grant, Held, Ledger, Node, Settled, State
from model.verbs import must_recover

if TYPE_CHECKING:
    from model.bounds import World

Call = tuple[Any, ...]


def calls(world: World, state: State, who: int) -> Iterator[Call]:
    """Yield each call that a node which is awake may make now."""
    node, ledger = state.nodes[who], state.ledger
    if node.plan:
        yield ("steer", node.plan)
    elif node.owes != NONE:
        yield ("restore",)
    elif node.doubts != NONE:
        yield ("doubt",)
    elif must_recover(world, state, node):
        yield ("recover",)
    elif node.start_owed:
        yield ("open_start",)
    elif node.uncounted:
        yield ("count_later", min(node.uncounted))
    elif must_register(world, node, ledger):
        yield ("register",)
    else:
        yield from working_calls(world, state, node)


def must_register(world: World, node: Node, ledger: Ledger) -> bool:
    if not world.bounds.stored:
        return node.has_entry and UNREGISTERED in (node.mark, ledger.mark)
    is_missing = ledger.mark == UNREGISTERED and ledger.words.entry == node.words.entry
    return node.has_entry and (node.fresh or is_missing)


def working_calls(world: World, state: State, node: Node) -> Iterator[Call]:
    for settled in node.unsettled:
        yield ("settle", settled)
    if not node.unsettled or world.bounds.delivery == "publish":
        yield ("poll",)
        yield from (("claim", tick) for tick in asks(world, state, node))
    for held in node.held if not node.asks_first else ():
        outcome = outcome_for(world, state, node, held)
        if world.bounds.stored and not node.has_entry and not is_forlorn(state):
            yield ("release", held)
        elif outcome != "sent":
            yield ("settle", Settled(held, outcome))
        elif world.bounds.poison or held.over:
            yield ("release", held)
        elif world.bounds.delivery == "enqueue":
            yield ("enqueue", held)


def asks(world: World, state: State, node: Node) -> list[int]:
    """Return the ticks that a node may ask for: due ones past its cursor, and orphans."""
    bounds, rules, wanted = world.bounds, world.rules, []
    until = min(state.now + bounds.hasty, bounds.ticks)
    if node.has_entry and until > node.cursor and not node.finished:
        if bounds.catch_up != "all":
            wanted = [until]
        elif rules.ascending:
            wanted = [node.cursor + 1]
        else:
            wanted = list(range(node.cursor + 1, until + 1))
    if not rules.newest_is_claimed:
        wanted = [tick for tick in wanted if tick > state.overdue]
    if node.has_entry or (rules.forlorn and is_forlorn(state)):
        wanted += [tick for tick in orphans(world, state) if tick not in wanted]
    return wanted


def orphans(world: World, state: State) -> list[int]:
    tells_over = is_over(state) and world.rules.over_is_not_held_back
    if state.ledger.words.pause.value and not tells_over:
        return []
    ticks = enumerate(state.ledger.ticks, 1)
    return [
        tick for tick, open_ in ticks if isinstance(open_, Grant) and open_.over and open_.listed
    ]


def is_forlorn(state: State) -> bool:
    """Whether nobody has the entry, nor will hear of it."""
    has_it = any(node.status in {"up", "asleep"} and node.has_entry for node in state.nodes)
    return not has_it and not state.ledger.words.entry.value


def outcome_for(world: World, state: State, node: Node, held: Held) -> str:
    if held.attempt > world.bounds.attempts and world.rules.most_attempts:
        return "attempts"
    if held.unwanted:
        return "operator"
    if not node.has_entry:
        return "unknown"
    if held.tick <= node.since:
        return "registration"
    return "grace" if held.tick <= state.overdue else "sent"
