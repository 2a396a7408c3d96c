"""What a state of the model is made of; immutable values, no behaviour but small changes.

Ticks are 1, 2, 3 of one entry; ``now`` is the number of ticks that are due by the server's clock.
A lease is alive or over, and when it ends is one of the things that may happen. Names of nodes are
their places in ``State.nodes``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NOBODY = -1
NONE = -1
UNREGISTERED = -1


class Grant(NamedTuple):
    """An open tick. ``listed``: it is in the ``open`` zset, and not only in ``grants``."""

    owner: int
    fence: int
    attempt: int
    previous: int
    over: bool = False
    listed: bool = True


class Done(NamedTuple):
    """A settled tick; what lay between ``previous`` and it was counted with it."""

    fence: int
    outcome: str
    previous: int


class Ledger(NamedTuple):
    """All keys of the ledger on one server.

    ``ticks`` and ``counted`` have one place per tick: its grant or None, and the outcome in the
    totals or "". ``floor`` is the mark that the copy had before pushes raised it, while there
    are doubts above it; ``vouched`` are the ticks that pushers know closed. ``lost`` are keys whose
    sentinel is gone. ``pause`` is a revision and whether the entry is paused. ``runs`` and
    ``before``, the mark of the copy before any push, are kept for an entry with a limit only.
    """

    mark: int
    ticks: tuple[Grant | Done | None, ...]
    counted: tuple[str, ...]
    fence: int = 0
    identity: int = 1
    epoch: int = 1
    recovering: int = NONE
    hold_over: bool = False
    heard: frozenset[int] = frozenset()
    floor: int = NONE
    vouched: frozenset[int] = frozenset()
    beats: frozenset[int] = frozenset()
    pause: tuple[int, bool] = (0, False)
    lost: frozenset[str] = frozenset()
    runs: int = 0
    before: int = NONE

    def at(self, tick: int) -> Grant | Done | None:
        return self.ticks[tick - 1]

    def put(self, tick: int, grant: Grant | Done | None) -> Ledger:
        return self._replace(ticks=(*self.ticks[: tick - 1], grant, *self.ticks[tick:]))

    def open(self) -> list[int]:
        return [tick for tick, grant in enumerate(self.ticks, 1) if isinstance(grant, Grant)]


class Held(NamedTuple):
    """A grant as its node knows it."""

    tick: int
    fence: int
    attempt: int
    previous: int
    over: bool = False


class Settled(NamedTuple):
    """An outcome as its node knows it."""

    held: Held
    outcome: str


class Node(NamedTuple):
    """One process: what it does, and all that it remembers.

    ``own`` is what it settled since it was last told what is open, ``tried`` what it tried without
    an answer, ``unsettled`` outcomes in hand, ``published`` what it ever published.
    ``publishing`` is a tick in whose publish it fell asleep. ``runs`` is what it was told with its
    mark, and ``finished`` whether it heard that the entry has run as often as it may. ``uncounted``
    and ``start_owed`` are used only where a rule is left out.

    Two fields belong to the history, and no node acts on them: ``told`` is the highest mark that
    this process was ever answered, ``knew`` the ticks it ever had reason to believe closed.
    """

    status: str = "up"  # new, up, asleep, dead
    has_entry: bool = True
    epoch: int = 1
    seen: int = 0
    mark: int = 0
    cursor: int = 0
    closed: frozenset[int] = frozenset()
    own: frozenset[Settled] = frozenset()
    held: tuple[Held, ...] = ()
    tried: frozenset[Held] = frozenset()
    unsettled: tuple[Settled, ...] = ()
    publishing: int = NONE
    doubts: int = NONE
    pause: tuple[int, bool] = (0, False)
    told: int = 0
    knew: frozenset[int] = frozenset()
    published: frozenset[Held] = frozenset()
    uncounted: frozenset[int] = frozenset()
    start_owed: bool = False
    runs: int = 0
    finished: bool = False


class Late(NamedTuple):
    """A request that its node has given up, and that may still arrive: who, as what, and what."""

    who: int
    node: Node
    call: tuple[Any, ...]


class History(NamedTuple):
    """What truly happened; neither the ledger nor a node sees it.

    ``sent`` counts messages per tick, also those that a failover lost. ``excused`` are the ticks
    that may be sent again, since nobody who was awake remembered (PROTOCOL.md, "What no protocol
    here can promise"), ``forgotten`` those of which nobody could say anything, ``accounted``
    those that were closed before a loss and need no count after it. ``paused`` is the operator's
    last word, the ``revision``-th, and ``pause_known`` whether a loss left anybody who heard it;
    ``barred`` are ticks that a resume passed over, ``promised`` is the tick of run_on_start,
    ``due`` the highest tick that was ever due. Of an entry with a limit: ``whole``, whether nothing
    that the ledger knew was ever lost; ``retried`` are ticks that had more than one attempt, and
    ``gone`` those whose messages left, and of which nobody could say anything after a loss.
    ``broken`` names a law that a step broke.
    """

    sent: tuple[int, ...]
    excused: frozenset[int] = frozenset()
    forgotten: frozenset[int] = frozenset()
    accounted: frozenset[int] = frozenset()
    paused: bool = False
    revision: int = 0
    pause_known: bool = True
    barred: frozenset[int] = frozenset()
    promised: int = NONE
    due: int = 0
    whole: bool = True
    retried: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    broken: str = ""


class State(NamedTuple):
    """The world.

    ``server`` is the identity of the master, ``copy`` what a replica holds, ``left`` how many
    faults may still come, ``overdue`` the highest tick whose grace is over; ``epochs`` and
    ``fences`` are the last ones that were ever given.
    """

    now: int
    server: int
    ledger: Ledger
    copy: Ledger | None
    nodes: tuple[Node, ...]
    late: tuple[Late, ...]
    left: tuple[int, ...]
    history: History
    epochs: int = 1
    fences: int = 0
    overdue: int = 0

    def node(self, who: int, node: Node) -> State:
        return self._replace(nodes=(*self.nodes[:who], node, *self.nodes[who + 1 :]))

    def note(self, **changes: Any) -> State:
        return self._replace(history=self.history._replace(**changes))

    def breaks(self, law: str) -> State:
        return self if self.history.broken else self.note(broken=law)
