"""Three real nodes on a real broker, five entries each second, and at the end an account.

It breaks nothing by itself: tests do that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from kombu import Connection

from celery_redlock_beat.ticks import SECOND, Micros
from celery_redlock_beat.verify.nodes import BROKEN, HEARD
from celery_redlock_beat.verify.rig import END, LIMIT, Place, Rig
from support.collector import Arrival, Collector
from support.every_second import FIVE, every_second
from support.nodes import BeatNode, Node, write_project
from support.servers import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.account import Account
    from support.servers import Server

__all__ = ["BROKEN", "END", "HEARD", "LEASE", "LIMIT", "NAMESPACE", "Trial"]

NAMESPACE = "proj"
LEASE = 5.0
concluded: list[Account] = []
"""The accounts of all trials so far, for whoever wants to show them."""
logger = logging.getLogger(__name__)


class Trial(Rig):
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
        place = Place(NAMESPACE, prefix, queue)
        own = env or {}
        super().__init__(
            [
                make_node(directory, f"node-{at}", env={"NODE": str(at), **own.get(at, {})})
                for at in range(nodes)
            ],
            Collector(self.broker_url, place.queue_key, clock_url=server.url),
            lambda: self.server.client(),  # noqa: PLW0108  a test may exchange the server
            place,
            {entry: 1 for entry, policy in policies.items() if policy == "all"},
            frozenset(policies),
        )
        self._start = start
        write_project(
            directory,
            url or self.broker_url,
            schedule or every_second(policies),
            config=config,
            extra=extra,
        )

    def go_on(self, seconds: float) -> None:
        """Wait until each entry was sent for an instant that is so many seconds ahead."""
        ahead = self.now() + round(seconds * SECOND)
        self.wait_for(lambda came: self._all_have_one(came, ahead), seconds + LIMIT)

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
                return between and not (self.books().open or client.llen(self.place.queue_key))

        wait_until(quiet, LIMIT, "a moment between two instants")

    def resumed_after(self, instant: Micros) -> float:
        """Wait for a tick that was granted after an instant; return when it came, in seconds."""

        def granted_since(came: Sequence[Arrival]) -> list[Arrival]:
            return [each for each in came if (each.fence or 0) > instant]

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
            self.wait_for(lambda _: self.have_all_come(last), patience)
        except TimeoutError:
            logger.warning("not all came that was due")  # the account tells what
        assert self.stop() == []
        self.mark_the_end()
        account = self.account(last, law=law, exact=exact)
        logger.info("%s: %s", self.directory.name, account)
        concluded.append(account)
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
        self.adopt(place, successor)
        self.begin([successor])
        return seconds

    def send_the_end(self) -> None:
        """Send it as kombu does, to whatever broker it is."""
        with Connection(self.broker_url) as connection:
            key = self.place.queue_key
            connection.Producer().publish({}, routing_key=key, headers={"id": END})

    def _all_have_one(self, came: Sequence[Arrival], ahead: Micros) -> bool:
        reached = {each.tick.entry for each in came if each.tick and each.tick.at >= ahead}
        return self.entries <= reached

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            if self._start:
                self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self
