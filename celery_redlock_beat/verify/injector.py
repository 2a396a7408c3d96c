"""Do to real nodes what a script of faults says, and mend it again; it chooses nothing."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from celery_redlock_beat.verify.faults import Fault
    from celery_redlock_beat.verify.nodes import Node
    from celery_redlock_beat.verify.proxy import Proxy


class Injector:
    """The faults of one run; ``proxies`` are those through which each node reaches its servers.

    ``done`` counts the faults that began, by kind.
    """

    def __init__(
        self, script: Iterable[Fault], nodes: Sequence[Node], proxies: Mapping[int, Sequence[Proxy]]
    ) -> None:
        self.done: Counter[str] = Counter()
        self._nodes = nodes
        self._proxies = proxies
        # The order breaks ties, since faults themselves have none.
        self._steps = [
            (moment, order, ends, fault)
            for order, fault in enumerate(script)
            for ends, moment in ((False, fault.at), (True, fault.at + fault.lasts))
        ]
        heapq.heapify(self._steps)

    def advance(self, now: float) -> list[Fault]:
        """Do all that is due by ``now``, in seconds of the run; return the faults that began."""
        began = []
        while self._steps and self._steps[0][0] <= now:
            _, _, ends, fault = heapq.heappop(self._steps)
            if ends:
                self._end(fault)
            else:
                self._begin(fault)
                began.append(fault)
        return began

    def _begin(self, fault: Fault) -> None:
        self.done[fault.kind] += 1
        node = self._nodes[fault.node]
        match fault.kind:
            case "kill":
                node.kill()
            case "pause":
                node.freeze()
            case "restart":
                node.ask_to_end()
            case "cut":
                for proxy in self._proxies[fault.node]:
                    (proxy.half_open if fault.silent else proxy.cut)()

    def _end(self, fault: Fault) -> None:
        node = self._nodes[fault.node]
        match fault.kind:
            case "kill":
                node.start()
            case "pause":
                node.thaw()
            case "restart":
                node.stop()  # which waits for the end that was asked for
                node.start()
            case "cut":
                for proxy in self._proxies[fault.node]:
                    proxy.restore()
