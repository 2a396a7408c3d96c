"""Three real nodes on a real broker, five entries each second, and at the end an account.

It breaks nothing by itself: tests do that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from kombu import Connection

from celery_redlock_beat.ticks import SECOND, Micros
from support.account import Account, Books, account_for
from support.collector import Arrival, Collector
from support.every_second import FIVE, every_second
from support.nodes import BeatNode, Node, write_project
from support.servers import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers import Server

NAMESPACE = "proj"
END = "the end of the trial"
LEASE = 5.0
HEARD = "The ledger has heard this node"
BROKEN = ("This pass failed", "CRITICAL")
LIMIT = 40.0  # for what takes two seconds on a machine that has nothing else to do
logger = logging.getLogger(__name__)


class Trial:
    """Nodes that run, with a collector of their messages; a context manager.

    ``server`` is the ledger's, and the broker's unless ``broker_url`` names another one; ``url`` is
    what the nodes take for the broker, and ``prefix`` its ``global_keyprefix``. Entries of the
    policy "all" must lose nothing. ``env`` has what one node is given, by its place. With ``start``
    false the test starts the nodes.
    """

    def __init__(
        self,
        directory: Path,
        server: Server,
        *,
        url: str | None = None,
        broker_url: str | None = None,
        policies: Mapping[str, str] = FIVE,
        schedule: str | None = None,
        config: Mapping[str, Any] | None = None,
        extra: str = "",
        queue: str = "celery",
        prefix: str = "",
        make_node: Callable[..., Node] = BeatNode,
        nodes: int = 3,
        env: Mapping[int, Mapping[str, str]] | None = None,
        start: bool = True,
    ) -> None:
        self.directory = directory
        self.server = server
        self.broker_url = broker_url or server.url
        self.entries = frozenset(policies)
        self.since: Mapping[str, Micros] = {}
        self._complete = [entry for entry, policy in policies.items() if policy == "all"]
        self.collector = Collector(self.broker_url, prefix + queue, clock_url=server.url)
        own = env or {}
        self.nodes: list[Node] = [
            make_node(directory, f"node-{place}", env={"NODE": str(place), **own.get(place, {})})
            for place in range(nodes)
        ]
        self._queue = prefix + queue
        self._prefix = prefix
        self._start = start
        self._stack = ExitStack()
        write_project(
            directory,
            url or self.broker_url,
            schedule or every_second(policies),
            config=config,
            extra=extra,
        )

    def begin(self, nodes: Sequence[Node] | None = None) -> None:
        """Start nodes, and wait until each of them takes part."""
        chosen = self.nodes if nodes is None else nodes
        seen = {node: len(node.log) for node in chosen}
        for node in chosen:
            node.start()
        for node in chosen:
            node.wait_for_log(HEARD, LIMIT, since=seen[node])
        if not self.since:
            wait_until(lambda: self.entries <= self.books().since.keys(), LIMIT, "entries")
            self.since = self.books().since

    def now(self) -> Micros:
        """Return the time of the ledger's server."""
        with self.server.client() as client:
            seconds, micros = client.time()
        return int(seconds) * SECOND + int(micros)

    def books(self) -> Books:
        """Return what the ledger holds just now."""
        with self.server.client() as client:
            return Books.read(client, NAMESPACE, self._prefix)

    def go_on(self, seconds: float) -> None:
        """Wait until each entry was sent for an instant that is so many seconds ahead."""
        ahead = self.now() + round(seconds * SECOND)
        self.wait_for(lambda came: self._all_have_one(came, ahead), seconds + LIMIT)

    def wait_for(
        self, condition: Callable[[list[Arrival]], object], limit: float = LIMIT
    ) -> list[Arrival]:
        """Wait until the messages so far meet a condition."""
        return self.collector.wait_until(lambda it: condition(it.arrivals), limit)

    def next_burst(self) -> Micros:
        """Wait for the next message: nodes are at work now. Return the server's time."""
        before = len(self.collector.arrivals)
        self.wait_for(lambda came: len(came) > before)
        return self.now()

    def wait_for_quiet(self) -> None:
        """Wait for a moment between two instants, with all done that was due."""

        def quiet() -> bool:
            between = 0.3 < self.now() % SECOND / SECOND < 0.7
            with self.server.client() as client:
                return between and not self.books().open and not client.llen(self._queue)

        wait_until(quiet, LIMIT, "a moment between two instants")

    def resumed_after(self, instant: Micros) -> float:
        """Wait for a tick that was granted after an instant; return when it came, in seconds."""

        def granted_since(came: Sequence[Arrival]) -> list[Arrival]:
            # The fence is the server's time of the grant, or a little more.
            return [each for each in came if int(each.headers.get("redlock_fence", 0)) > instant]

        came = granted_since(self.wait_for(granted_since))
        seconds = (min(each.at for each in came) - instant) / SECOND
        logger.info("sending again after %.3f s", seconds)
        return seconds

    def conclude(self, *, law: bool = True, exact: bool = True, patience: float = 20.0) -> Account:
        """Wait for what is due by now, stop the nodes, and account for all ticks.

        Every node must be alive until then, end in good order, and have had no failed pass.
        """
        last = self.now()
        try:
            self.wait_for(lambda came: self._all_until(came, last), patience)
        except TimeoutError:
            logger.warning("not all came that was due")  # the account tells what
        self.stop()
        self._mark_the_end()
        arrivals = self.wait_for(lambda came: any(each.task_id == END for each in came))
        books = self.books() if law else None
        account = account_for(arrivals, self._complete, self.since, last, books, exact=exact)
        logger.info("%s: %s", self.directory.name, account)
        return account

    def end(self, node: Node) -> float:
        """Have a node end as on a deploy; return how many seconds it took."""
        seconds = node.stop()
        assert node.wait_for_exit() == 0
        logger.info("%s has ended in %.3f s", node.name, seconds)
        return seconds

    def replace(self, place: int, successor: Node) -> float:
        """Have a node end and another one start in its place; return how long the end took."""
        seconds = self.end(self.nodes[place])
        self.nodes[place] = successor
        self._stack.push(successor.__exit__)
        self.begin([successor])
        return seconds

    def stop(self) -> None:
        """Have every node end as on a deploy, and look how it did."""
        assert [node.name for node in self.nodes if not node.alive] == []
        for node in self.nodes:
            assert node.process is not None
            node.process.terminate()
        assert [node.name for node in self.nodes if node.wait_for_exit(LIMIT)] == []
        for node in self.nodes:
            for words in BROKEN:
                assert words not in node.log, f"{node.name}:\n{node.log[-5000:]}"

    def _all_have_one(self, came: Sequence[Arrival], ahead: Micros) -> bool:
        reached = {each.tick.entry for each in came if each.tick and each.tick.at >= ahead}
        return self.entries <= reached

    def _all_until(self, came: Sequence[Arrival], last: Micros) -> bool:
        account = account_for(came, self._complete, self.since, last)
        return not account.count("lost")

    def _mark_the_end(self) -> None:
        """Send a message of our own: what was sent before has come once it comes."""
        with Connection(self.broker_url) as connection:
            connection.Producer().publish({}, routing_key=self._queue, headers={"id": END})

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.collector)
            for node in self.nodes:
                stack.push(node.__exit__)
            if self._start:
                self.begin()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
