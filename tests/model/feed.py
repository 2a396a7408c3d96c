"""The feed of stored entries and pauses: how it is kept, followed and restored.

It judges nothing, and knows nothing of what operators want.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.states import FOREVER, NONE, UNREGISTERED, Ledger, Node, State, Word

if TYPE_CHECKING:
    from model.bounds import World

Result = tuple[State, str]
KINDS = ("entry", "pause")

# The ledger


def next_fence(world: World, state: State) -> tuple[State, int]:
    last = state.fences if world.rules.fence_of_time else state.ledger.fence
    fence = max(last, state.ledger.fence) + 1
    return state._replace(fences=max(fence, state.fences)), fence


def next_revision(world: World, state: State) -> tuple[State, int]:
    state, fence = next_fence(world, state)
    ledger = state.ledger._replace(fence=fence, revision=fence)
    return state._replace(ledger=ledger), fence


def put(ledger: Ledger, kind: str, word: Word) -> Ledger:
    return ledger._replace(words=ledger.words._replace(**{kind: word}))


def is_over(state: State) -> bool:
    """Whether the time of a pause is over that nobody has ended yet."""
    ends = state.ledger.words.pause.value
    return ends != FOREVER and 0 < ends <= state.now


def restore(world: World, state: State, node: Node) -> State:
    """Take what came after the revision that a node was answered, ascending."""
    ledger = state.ledger
    for kind in came_after(world, node, node.owes):
        word, known = getattr(node.words, kind), getattr(ledger.words, kind)
        is_late = ledger.recovering == NONE and word.revision <= ledger.revision
        if is_late and world.rules.late_is_later:
            continue
        if word.revision > known.revision or not world.rules.feed_revision:
            ledger = put(ledger, kind, word)
        ledger = ledger._replace(revision=max(ledger.revision, word.revision))
    return state._replace(ledger=ledger)


def came_after(world: World, node: Node, revision: int) -> list[str]:
    """Return the kinds of which a copy up to a revision lacks what a node knows."""
    if not world.rules.push_feed:
        return []
    words = [(getattr(node.words, kind), kind) for kind in KINDS]
    return [
        kind
        for word, kind in sorted(words)
        if word.revision > revision and (word.value or world.rules.push_gone)
    ]


# Nodes


def follow(world: World, node: Node, ledger: Ledger, *, anew: bool = False) -> Node:
    """Fetch what changed, if there is news; ``anew``: from the very beginning."""
    since = 0 if anew else node.upto
    if not anew and ledger.revision <= since:
        return node
    for kind in KINDS:
        word, known = getattr(ledger.words, kind), getattr(node.words, kind)
        is_told = word.revision and (word.value or since or world.rules.gone_is_told)
        if since == 0 and not is_told:
            word = Word(known.revision) if world.rules.untold_is_gone else known
        if word.revision > since or since == 0:
            node = learn(node, kind, word)
    return node._replace(upto=ledger.revision)


def learn(node: Node, kind: str, word: Word) -> Node:
    """Take in one change."""
    if word == getattr(node.words, kind):
        return node
    node = node._replace(words=node.words._replace(**{kind: word}))
    if kind == "pause":
        return node
    if word.value:
        return node._replace(has_entry=True, fresh=True, cursor=0, since=0, finished=False)
    return node._replace(
        has_entry=False,
        fresh=False,
        mark=UNREGISTERED,
        cursor=UNREGISTERED,
        told=UNREGISTERED,
        closed=frozenset(),
        knew=frozenset(),
        runs=0,
        since=0,
        finished=False,
    )


def owe(world: World, node: Node, ledger: Ledger) -> Node:
    """Learn from the answer to a push what the copy lacks of the feed."""
    if not world.bounds.has_feed:
        return node
    owes = ledger.revision if came_after(world, node, ledger.revision) else NONE
    upto = 0 if world.rules.recovery_begins_anew else node.upto
    return node._replace(owes=owes, upto=upto, asks_first=world.rules.asks_after_recovery)
