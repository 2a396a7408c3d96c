"""Two states are alike if they differ only in the names of nodes: one stands for both."""

from __future__ import annotations

from model.states import NOBODY, OPERATOR, Grant, Ledger, State


def alike(state: State) -> State:
    """Return the state with its nodes in an order that depends on nothing but what they are."""
    keys = [hash(node) for node in state.nodes]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if all(keys[a] == keys[b] for a, b in zip(order, range(len(keys)), strict=True)):
        return state
    name = {NOBODY: NOBODY, OPERATOR: OPERATOR} | {old: new for new, old in enumerate(order)}
    return state._replace(
        nodes=tuple(state.nodes[old] for old in order),
        ledger=renamed(state.ledger, name),
        copy=state.copy and renamed(state.copy, name),
        late=tuple(late._replace(who=name[late.who]) for late in state.late),
    )


def renamed(ledger: Ledger, name: dict[int, int]) -> Ledger:
    return ledger._replace(
        ticks=tuple(
            grant._replace(owner=name[grant.owner]) if isinstance(grant, Grant) else grant
            for grant in ledger.ticks
        ),
        heard=frozenset(name[who] for who in ledger.heard),
        beats=frozenset(name[who] for who in ledger.beats),
    )
