"""What breaks: each costs one of the faults that are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from model.bounds import FAULTS, World
from model.feed import put
from model.states import NOBODY, NONE, UNREGISTERED, Grant, Ledger, Node, State, Word
from model.verbs import execute


class Step(NamedTuple):
    """One thing that happens. Where it is a fault, nobody may count on it."""

    label: tuple[Any, ...]
    is_fault: bool
    state: State


def spend(state: State, fault: str) -> State | None:
    """Take one fault from what is left, or return None."""
    if not may(state, fault):
        return None
    if isinstance(state.left[0], str):
        return state._replace(left=state.left[1:])
    place = FAULTS.index(fault) + 1
    left = list(state.left)
    left[0] -= 1
    left[place] -= 1
    if not left[0]:
        left = [0] * len(left)
    return state._replace(left=tuple(left))


def may(state: State, fault: str) -> bool:
    """Whether a fault may happen next."""
    left = state.left
    if left and isinstance(left[0], str):
        return left[0] == fault
    return bool(left and left[0] and left[FAULTS.index(fault) + 1])


def misfortunes(world: World, state: State, who: int) -> Iterator[Step]:
    node = state.nodes[who]
    others = [other for n, other in enumerate(state.nodes) if n != who and other.status != "dead"]
    if node.status in {"up", "asleep"} and others and (spent := spend(state, "crash")):
        dead = Node(status="dead", has_entry=node.has_entry)
        yield Step((who, "crashes"), True, spent.node(who, dead))
    if node.status != "up":
        return
    if spent := spend(state, "sleep"):
        asleep = node._replace(status="asleep")
        yield Step((who, "falls asleep"), True, spent.node(who, asleep))
        if world.bounds.delivery == "publish":
            for held in node.held:
                if not held.over:
                    midway = asleep._replace(publishing=held.tick)
                    label = (who, "falls asleep before it publishes", held.tick)
                    yield Step(label, True, spent.node(who, midway))
    if node.has_entry and (spent := spend(state, "drop_entry")):
        dropped = node._replace(has_entry=False)
        if not world.rules.marks_of_others:
            dropped = dropped._replace(
                mark=UNREGISTERED, cursor=UNREGISTERED, closed=frozenset(), own=frozenset()
            )
        yield Step((who, "has the entry no more"), True, spent.node(who, dropped))


def late_steps(world: World, state: State) -> Iterator[Step]:
    for late in state.late:
        arrived = state._replace(late=())
        after, answer = execute(world, arrived, late.who, late.node, late.call)
        yield Step((late.who, late.call, "arrives late", answer), True, after)


def is_ahead(state: State, fault: str) -> bool:
    """Whether a fault may happen next, or, where they happen in order, later."""
    left = state.left
    return fault in left if left and isinstance(left[0], str) else may(state, fault)


def losses(world: World, state: State) -> Iterator[Step]:
    ledger = state.ledger
    can_fail = any(is_ahead(state, fault) for fault in ("failover", "blind"))
    if can_fail and state.copy is None:
        yield Step(("a replica has all up to here",), True, state._replace(copy=ledger))
    if state.copy is not None and (spent := spend(state, "failover")):
        lost = with_ledger(spent, state.copy)._replace(copy=None, server=state.server + 1)
        lost = lost.note(whole=lost.history.whole and keeps(world, ledger, state.copy))
        yield Step(("failover to the replica",), True, lost)
        if world.bounds.clock_back and state.now:
            back = lost._replace(now=state.now - 1).note(due=state.now)
            yield Step(("failover to the replica, its clock behind",), True, back)
    if (
        state.copy is not None
        and all(node.seen > state.copy.fence for node in state.nodes)
        and (spent := spend(state, "blind"))
    ):
        lost = with_ledger(spent, state.copy)._replace(copy=None)
        lost = lost.note(whole=not world.bounds.limit)
        yield Step(("the server comes back with an old snapshot",), True, lost)
    if spent := spend(state, "flush"):
        empty = Ledger(
            UNREGISTERED,
            (None,) * len(ledger.ticks),
            ("",) * len(ledger.ticks),
            identity=NONE,
            epoch=NONE,
        )
        lost = with_ledger(spent, empty).note(whole=not world.bounds.limit)
        yield Step(("FLUSHALL",), True, lost)
    if spent := spend(state, "lose_key"):
        spent = spent.note(whole=not world.bounds.limit)
        for key, lose in (LOSE_STORED if world.bounds.stored else LOSE).items():
            lost = with_ledger(spent, lose(world, ledger))
            yield Step(("a key is lost:", key), True, lost)


def with_ledger(state: State, ledger: Ledger) -> State:
    """Have another ledger; which ticks shall be skipped is known to nobody else."""
    return state._replace(ledger=ledger).note(unwanted=state.history.unwanted & ledger.unwanted)


def keeps(world: World, ledger: Ledger, copy: Ledger) -> bool:
    """Whether a copy has all that the ledger knows of an entry with a limit."""
    known = [(each.mark, each.ticks, each.counted, each.runs) for each in (ledger, copy)]
    return not world.bounds.limit or known[0] == known[1]


def lose_marks(world: World, ledger: Ledger) -> Ledger:
    ledger = ledger._replace(
        mark=UNREGISTERED, runs=0, since=0, timetable=0, unwanted=frozenset(), revision=0
    )
    if not world.rules.identity_beside_marks:
        return ledger
    return ledger._replace(fence=0, identity=NONE, epoch=NONE, recovering=NONE, hold_over=False)


def lose_open(world: World, ledger: Ledger) -> Ledger:
    for tick in ledger.open():
        ledger = ledger.put(tick, ledger.at(tick)._replace(listed=False, over=True))
    return ledger._replace(lost=ledger.lost | {"open"})


def lose_grants(world: World, ledger: Ledger) -> Ledger:
    for tick, grant in enumerate(ledger.ticks, 1):
        if isinstance(grant, Grant):
            ledger = ledger.put(tick, Grant(NOBODY, 0, 1, tick - 1, grant.over))
        else:
            ledger = ledger.put(tick, None)
    return ledger._replace(lost=ledger.lost | {"grants"})


def lose_paused(world: World, ledger: Ledger) -> Ledger:
    return lose_word(ledger, "pause")._replace(lost=ledger.lost | {"paused"})


def lose_entries(world: World, ledger: Ledger) -> Ledger:
    return lose_word(ledger, "entry")._replace(lost=ledger.lost | {"entries"})


def lose_word(ledger: Ledger, kind: str) -> Ledger:
    """What is gone is known from a key of its own."""
    return put(ledger, kind, Word()) if getattr(ledger.words, kind).value else ledger


LOSE = {"marks": lose_marks, "open": lose_open, "grants": lose_grants, "paused": lose_paused}
LOSE_STORED = {**LOSE, "entries": lose_entries}
