"""What breaks, and what an operator does: each costs one of the faults that are left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from model.bounds import FAULTS, World
from model.closing import count
from model.states import NOBODY, NONE, UNREGISTERED, Grant, Ledger, Node, State
from model.verbs import execute


class Step(NamedTuple):
    """One thing that happens. Where it is a fault, nobody may count on it."""

    label: tuple[Any, ...]
    is_fault: bool
    state: State


def spend(state: State, fault: str) -> State | None:
    """Take one fault from what is left, or return None."""
    place = FAULTS.index(fault) + 1
    left = list(state.left)
    if not left[0] or not left[place]:
        return None
    left[0] -= 1
    left[place] -= 1
    if not left[0]:
        left = [0] * len(left)
    return state._replace(left=tuple(left))


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


def losses(world: World, state: State) -> Iterator[Step]:
    ledger = state.ledger
    can_fail = any(state.left[FAULTS.index(fault) + 1] for fault in ("failover", "blind"))
    if can_fail and state.copy is None:
        yield Step(("a replica has all up to here",), True, state._replace(copy=ledger))
    if state.copy is not None and (spent := spend(state, "failover")):
        lost = spent._replace(ledger=state.copy, copy=None, server=state.server + 1)
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
        lost = spent._replace(ledger=state.copy, copy=None)
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
        lost = spent._replace(ledger=empty).note(whole=not world.bounds.limit)
        yield Step(("FLUSHALL",), True, lost)
    if spent := spend(state, "lose_key"):
        spent = spent.note(whole=not world.bounds.limit)
        for key, lose in LOSE.items():
            yield Step(("a key is lost:", key), True, spent._replace(ledger=lose(world, ledger)))


def keeps(world: World, ledger: Ledger, copy: Ledger) -> bool:
    """Whether a copy has all that the ledger knows of an entry with a limit."""
    known = [(each.mark, each.ticks, each.counted, each.runs) for each in (ledger, copy)]
    return not world.bounds.limit or known[0] == known[1]


def lose_marks(world: World, ledger: Ledger) -> Ledger:
    ledger = ledger._replace(mark=UNREGISTERED, runs=0)
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
    return ledger._replace(pause=(0, False), lost=ledger.lost | {"paused"})


LOSE = {"marks": lose_marks, "open": lose_open, "grants": lose_grants, "paused": lose_paused}


def operator_steps(world: World, state: State) -> Iterator[Step]:
    """An operator pauses and resumes, where no recovery is running."""
    ledger, history = state.ledger, state.history
    if ledger.recovering != NONE or ledger.identity != state.server or ledger.lost:
        return
    if ledger.mark == UNREGISTERED:
        return
    revision = history.revision + 1
    if not ledger.pause[1] and (spent := spend(state, "pause")):
        paused = spent._replace(ledger=ledger._replace(pause=(revision, True)))
        paused = paused.note(paused=True, revision=revision, pause_known=True)
        yield Step(("an operator pauses the entry",), True, paused)
    if ledger.pause[1]:
        yield Step(("an operator resumes the entry",), True, resume(world, state, revision))


def resume(world: World, state: State, revision: int) -> State:
    ledger = state.ledger
    passed = range(ledger.mark + 1, state.now + 1)
    state = state.note(
        paused=False,
        revision=revision,
        pause_known=True,
        barred=state.history.barred | {tick for tick in passed if not ledger.at(tick)},
    )
    ledger = ledger._replace(pause=(revision, False))
    state = state._replace(ledger=ledger)
    if world.rules.resume_raises_mark:
        for tick in passed:
            state = count(state, tick, "paused")
        mark = max(ledger.mark, state.now)
        state = state._replace(ledger=state.ledger._replace(mark=mark))
    return state
