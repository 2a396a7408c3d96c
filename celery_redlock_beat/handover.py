"""How a node stands to the scheduler that sent its entries before; it sends nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celery_redlock_beat.host import LastRun
from celery_redlock_beat.ticks import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from celery_redlock_beat.node import Node
    from celery_redlock_beat.predecessors.predecessor import Predecessor


class Handover:
    """Begin where the predecessor stopped, and take turns with it if it still runs.

    ``again`` registers all entries anew. ``last_run`` returns when another scheduler sent an entry
    last, which may know more than the predecessor; ``in_turns`` tells that it may have sent since
    ticks were claimed here.
    """

    def __init__(
        self,
        predecessor: Predecessor,
        again: Callable[[], None],
        last_run: Callable[[str], datetime | None],
        *,
        in_turns: bool,
    ) -> None:
        self.check = predecessor.check
        self.hear = predecessor.hear
        self.passed = predecessor.passed
        self.problem = predecessor.problem
        self.known_last_run = predecessor.last_run
        self._predecessor = predecessor
        self._last_run = last_run
        self._again = again
        self._in_turns = in_turns or predecessor.in_turns
        self._turn: str | None = ""

    def last_run(self, name: str) -> LastRun | None:
        """Return when the predecessor sent an entry last, as a node takes it."""
        at = self._last_run(name)
        return LastRun(to_micros(at), self._in_turns) if at else None

    def may_send(self) -> bool:
        """Whether it is this fleet's turn; with a new one, all entries are registered anew."""
        turn = self._predecessor.turn()
        if turn is not None and turn != self._turn:
            self._turn = turn
            self._again()
        return turn is not None

    def leave(self, node: Node) -> None:
        """Let the predecessor have its turn: a node has given back what it held."""
        self._predecessor.leave(node.settled_by_now)
