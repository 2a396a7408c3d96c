"""Real nodes, the messages that came of them, and the ledger's books; at the end an account.

It breaks nothing by itself and prints nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from celery_redlock_beat.testing.children import wait_until
from celery_redlock_beat.verify.account import Account, account_for
from celery_redlock_beat.verify.books import Books, Memory
from celery_redlock_beat.verify.checker import Rules
from celery_redlock_beat.verify.sources import micros

if TYPE_CHECKING:
    from redis import Redis

    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.verify.arrivals import Arrival
    from celery_redlock_beat.verify.checker import Period
    from celery_redlock_beat.verify.collector import Collector
    from celery_redlock_beat.verify.nodes import Node

END = "the end of the run"
LIMIT = 40.0  # for what takes two seconds on a machine that has nothing else to do


@dataclass(frozen=True, slots=True)
class Place:
    """Where in Redis a run lives: the ledger's namespace, the prefix of all keys, the queue."""

    namespace: str
    prefix: str = ""
    queue: str = "celery"

    @property
    def queue_key(self) -> str:
        """The key of the queue."""
        return self.prefix + self.queue


class Rig:
    """Nodes that run, with a collector of their messages; a context manager.

    ``connect`` makes a client of the ledger's server. ``periods`` are the entries whose every tick
    must come, all that is due every so many seconds; ``entries`` are all that are waited for.
    ``look_up`` is called in every wait, and may raise to end it.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        collector: Collector,
        connect: Callable[[], Redis],
        place: Place,
        periods: Mapping[str, Period],
        entries: frozenset[str] | None = None,
        look_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.nodes = list(nodes)
        self.collector = collector
        self.connect = connect
        self.place = place
        self.periods = dict(periods)
        self.entries = frozenset(periods) if entries is None else entries
        self.since: Mapping[str, Micros] = {}
        self.look_up = look_up
        self.rules = Rules(namespace=place.namespace)
        self.memory = Memory()
        self._stack = ExitStack()

    def begin(self, nodes: Sequence[Node] | None = None) -> None:
        """Start nodes, and wait until each of them takes part."""
        chosen = self.nodes if nodes is None else nodes
        for node in chosen:
            node.start()
        self.wait_for_nodes(chosen)
        if not self.since:
            self.until(lambda: self.entries <= self.books().since.keys(), "the entries")
            self.since = self.books().since

    def wait_for_nodes(self, nodes: Sequence[Node] | None = None) -> None:
        """Wait until nodes that were started take part."""
        for node in self.nodes if nodes is None else nodes:
            try:
                self.until(node.takes_part, f"{node.name} to take part")
            except TimeoutError:
                raise node.failed_to("take part") from None

    def now(self) -> Micros:
        """Return the time of the ledger's server."""
        marks = f"{self.place.prefix}{{redlock:{self.place.namespace}}}:marks"
        with self.connect() as client:  # in a Cluster, that of the node that has the ledger
            return micros(client.eval("return redis.call('TIME')", 1, marks))

    def books(self) -> Books:
        """Return what the ledger holds just now."""
        with self.connect() as client:
            return Books.read(client, self.place.namespace, self.place.prefix)

    def note_books(self) -> Books:
        """Note what the ledger holds, before it may lose it: the account then goes on over that."""
        books = self.books()
        self.memory = self.memory.then(books)
        return books

    def until(self, condition: Callable[[], object], what: str, limit: float = LIMIT) -> None:
        """Wait for a condition; raise ``TimeoutError`` after the limit."""

        def met() -> object:
            self.look_up()
            return condition()

        wait_until(met, limit, what, interval=0.02)

    def wait_for(
        self, condition: Callable[[list[Arrival]], object], limit: float = LIMIT
    ) -> list[Arrival]:
        """Wait until the messages so far meet a condition; return them."""
        return self.collector.wait_until(lambda it: condition(it.arrivals), limit)

    def have_all_come(self, last: Micros) -> bool:
        """Whether nothing that was due until an instant is missing, by what is known so far."""
        account = self.account(last, law=False)
        return not (account.count("lost") or account.count("open"))

    def stop(self, limit: float = LIMIT) -> list[str]:
        """Have every node end as on a deploy; return what was wrong with any, in words."""
        wrong = [f"{node.name} had ended by itself" for node in self.nodes if not node.alive]
        running = [node for node in self.nodes if node.alive]
        for node in running:
            node.ask_to_end()
        wrong += [what for node in running if (what := node.end(limit))]
        wrong += [f"{node.name}: {line}" for node in self.nodes for line in node.troubles()]
        return wrong

    def mark_the_end(self) -> list[Arrival]:
        """Send a message of our own, and wait for it: all that was sent before has come by then."""
        self.send_the_end()
        return self.wait_for(lambda came: any(each.task_id == END for each in came))

    def send_the_end(self) -> None:
        """Put that message into the queue, behind all others."""
        message = json.dumps({"headers": {"id": END}, "properties": {}})
        self.collector.put(message)

    def account(self, last: Micros, *, law: bool = True, exact: bool = True) -> Account:
        """Account for what came; with ``law`` also by the books as they are now."""
        return account_for(
            self.collector.arrivals,
            self.periods,
            self.since,
            last,
            self.books() if law else None,
            exact=exact,
            memory=self.memory,
            rules=self.rules,
        )

    def adopt(self, position: int, node: Node) -> None:
        """Have another node in the place of one; it is not started."""
        self.nodes[position] = node
        self._stack.push(node.__exit__)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.collector)
            for node in self.nodes:
                stack.push(node.__exit__)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
