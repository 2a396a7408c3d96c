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
FOREVER = -1
OPERATOR = -2


class Word(NamedTuple):
    """What the feed last told of an entry, its timetable, or of a pause, its end; 0: it is gone.

    ``at`` is the time of the revision.
    """

    revision: int = 0
    value: int = 0
    at: int = 0


class Words(NamedTuple):
    """The feed: the stored entry, and the pause."""

    entry: Word = Word()
    pause: Word = Word()


NO_WORDS = Words()


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
    sentinel is gone. ``words`` are the feed, ``revision`` its highest. ``unwanted`` are ticks that
    shall be skipped. ``runs`` and ``before``, the mark of the copy before any push, are kept for an
    entry with a limit only; ``since`` and the ``timetable`` that is registered, for one that is
    stored.
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
    words: Words = NO_WORDS
    revision: int = 0
    lost: frozenset[str] = frozenset()
    runs: int = 0
    before: int = NONE
    since: int = 0
    timetable: int = 0
    unwanted: frozenset[int] = frozenset()

    def at(self, tick: int) -> Grant | Done | None:
        return self.ticks[tick - 1]

    def put(self, tick: int, grant: Grant | Done | None) -> Ledger:
        return self._replace(ticks=(*self.ticks[: tick - 1], grant, *self.ticks[tick:]))

    def open(self) -> list[int]:
        return [tick for tick, grant in enumerate(self.ticks, 1) if isinstance(grant, Grant)]


class Held(NamedTuple):
    """A grant as its node knows it. ``unwanted``: an operator wants it to be skipped."""

    tick: int
    fence: int
    attempt: int
    previous: int
    over: bool = False
    unwanted: bool = False


class Settled(NamedTuple):
    """An outcome as its node knows it."""

    held: Held
    outcome: str


class Plan(NamedTuple):
    """What somebody who looked at the ledger is about to ask: store, remove, or resume.

    It holds for what was seen: the revision, and, unless ``mark`` is NONE, the remainder: what is
    due up to ``upto``, and ``endings``, the open ticks that end with it. ``value`` is to be stored.
    """

    deed: str
    expected: int
    mark: int = NONE
    upto: int = 0
    endings: tuple[Held, ...] = ()
    value: int = 0


class Node(NamedTuple):
    """One process: what it does, and all that it remembers.

    ``own`` is what it settled since it was last told what is open, ``tried`` what it tried without
    an answer, ``unsettled`` outcomes in hand, ``published`` what it ever published.
    ``publishing`` is a tick in whose publish it fell asleep. ``runs`` is what it was told with its
    mark, and ``finished`` whether it heard that the entry has run as often as it may. ``uncounted``
    and ``start_owed`` are used only where a rule is left out.

    ``words`` is what it knows of the feed, ``upto`` up to which revision. ``fresh``: it has to
    register what it heard is stored; ``since`` is what it was answered. ``owes`` is the revision of
    a copy that it has yet to tell of what came after, ``asks_first`` whether it has to ask before
    it tries what it holds. ``plan`` is how it ends a pause.

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
    words: Words = NO_WORDS
    upto: int = 0
    fresh: bool = False
    since: int = 0
    owes: int = NONE
    asks_first: bool = False
    plan: Plan | None = None
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
    those that were closed before a loss and need no count after it. ``words`` are what operators
    last did, as far as a loss left anybody who knew; ``removed`` whether nothing may be enqueued.
    ``barred`` are ticks that may not be sent any more, being passed over by a resume or from before
    an entry was stored; ``unwanted`` those that an operator skipped. ``start`` is when the entry
    came into force, ``ended`` up to when it was when it was removed; ``dug_up`` are ticks of which
    a recovery heard after that, ``withdrawn`` those that a deed ended. ``promised`` is the tick of
    run_on_start, ``due`` the highest tick that was ever due. Of an entry with a limit: ``whole``,
    whether nothing that the ledger knew was ever lost; ``retried`` are ticks that had more than one
    attempt, or that a deed ended after one, and ``gone`` those whose messages left, and of which
    nobody could say anything after a loss.
    ``broken`` names a law that a step broke.
    """

    sent: tuple[int, ...]
    excused: frozenset[int] = frozenset()
    forgotten: frozenset[int] = frozenset()
    accounted: frozenset[int] = frozenset()
    words: Words = NO_WORDS
    removed: bool = False
    barred: frozenset[int] = frozenset()
    unwanted: frozenset[int] = frozenset()
    start: int = 0
    ended: int = 0
    dug_up: frozenset[int] = frozenset()
    withdrawn: frozenset[int] = frozenset()
    promised: int = NONE
    due: int = 0
    whole: bool = True
    retried: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()
    broken: str = ""


class State(NamedTuple):
    """The world. ``plan`` is what an operator is about to ask.

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
    left: tuple[int, ...] | tuple[str, ...]
    history: History
    epochs: int = 1
    fences: int = 0
    overdue: int = 0
    plan: Plan | None = None

    def node(self, who: int, node: Node) -> State:
        return self._replace(nodes=(*self.nodes[:who], node, *self.nodes[who + 1 :]))

    def note(self, **changes: Any) -> State:
        return self._replace(history=self.history._replace(**changes))

    def breaks(self, law: str) -> State:
        return self if self.history.broken else self.note(broken=law)
