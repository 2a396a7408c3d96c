"""One run against the user's Redis: nodes, faults, messages, and nothing left behind.

It judges nothing and prints nothing: it tells its steps to ``say``.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from redis.exceptions import RedisError

from celery_redlock_beat.errors import RedlockBeatError
from celery_redlock_beat.store.errors import unavailable
from celery_redlock_beat.verify.corner import Corner
from celery_redlock_beat.verify.faults import Fault, plan
from celery_redlock_beat.verify.injector import Injector
from celery_redlock_beat.verify.nodes import NodeFailed
from celery_redlock_beat.verify.report import Report
from celery_redlock_beat.verify.stage import Stage, probe, server_name

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator

    from celery_redlock_beat.ticks import Micros
    from celery_redlock_beat.verify.target import Target

PATIENCE = 20.0  # for what is due by the end: a lease, a hold-down, and a slow machine
NEWS = 10.0  # seconds between two lines of progress
LOOK = 2.0  # seconds between two looks at the ledger's books


class Unable(RedlockBeatError, RuntimeError):
    """The run could not be made; the message says why and what to do."""


@dataclass(frozen=True)
class Options:
    """What to run: how many nodes, for how many seconds, and the faults by kind and seed."""

    nodes: int = 3
    seconds: float = 120.0
    kinds: tuple[str, ...] = ()
    seed: int = 0
    logs: Path | None = None


@dataclass
class Run:
    """One run; a context manager that ends what it started and deletes what it made.

    ``say`` is told each step, ``tell`` each fault, and ``look_up`` is called in every wait and may
    raise. ``deleted`` is how many keys were deleted in the end.
    """

    ledger: Target
    broker: Target
    options: Options
    say: Callable[[str], None]
    tell: Callable[[Fault], None] = lambda _: None
    look_up: Callable[[], None] = lambda: None
    deleted: int | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        self.corner = Corner.random(self.broker.endpoint.prefix)
        place, cuts = self.corner.place, "cut" in self.options.kinds
        for server in self._servers():
            with self._telling(server):
                self.say(f"{server_name(server.connect)} at {server.endpoint.label}.")
        with ExitStack() as stack:
            self._directory = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="redlock-verify-"))
            )
            stack.callback(self._clear)
            stack.callback(self._keep_logs)
            for server in self._servers():
                with self._telling(server):
                    probe(server.connect, place)
            stage = Stage(self.ledger, self.broker, self._directory, place, self.options.nodes)
            self._proxies = stack.enter_context(stage.proxies(wanted=cuts))
            self.say(f"Every key begins with {place.prefix}; all are deleted at the end.")
            self._rig = stack.enter_context(stage.rig(self._proxies, self.look_up))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _servers(self) -> list[Target]:
        return list(dict.fromkeys((self.ledger, self.broker)))

    @contextmanager
    def _telling(self, server: Target) -> Iterator[None]:
        try:
            yield
        except (RedisError, OSError) as error:
            raise Unable(f"{server.endpoint.label}: {unavailable(error)}") from error

    def go(self) -> Report:
        """Run to the end; return what became of all ticks.

        Raises:
            Unable: Redis is away, or the nodes do not come up.

        """
        options, rig = self.options, self._rig
        script = plan(options.kinds, options.nodes, options.seconds, options.seed)
        injector = Injector(script, rig.nodes, self._proxies)
        try:
            rig.begin()
            self.say(f"All {options.nodes} nodes take part; {options.seconds:g} s from now.")
            self._let_it_tick(injector)
            with suppress(NodeFailed):  # which the troubles tell
                rig.wait_for_nodes()
            last = rig.now()
            self._wait_for_the_rest(last)
            wrong = rig.stop()
            rig.mark_the_end()
            rig.note_books()
            account = rig.account(last)
        except RedisError as error:
            raise Unable(str(unavailable(error))) from error
        except TimeoutError as error:
            raise Unable(str(error)) from error
        return Report(account, rig.collector.arrivals, injector.done, tuple(wrong))

    def _let_it_tick(self, injector: Injector) -> None:
        began = time.monotonic()
        news, look = NEWS, LOOK
        while (passed := time.monotonic() - began) < self.options.seconds:
            self.look_up()
            for fault in injector.advance(passed):
                self.tell(fault)
            if passed >= look:
                look = passed + LOOK
                with suppress(RedisError, OSError):  # the user may have it fail over meanwhile
                    self._rig.note_books()
            if passed >= news:
                news += NEWS
                self.say(self._progress(passed, injector.done))
            time.sleep(0.02)
        injector.advance(float("inf"))

    def _progress(self, passed: float, done: Counter[str]) -> str:
        faults = f", {_told(done)}" if done else ""
        whole = self.options.seconds
        return f"{passed:.0f} of {whole:g} s: {len(self._rig.collector.arrivals)} messages{faults}"

    def _wait_for_the_rest(self, last: Micros) -> None:
        """Wait for what is due; what is missing after that is the report's business."""
        rig = self._rig
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            self.look_up()
            with suppress(RedisError, OSError):
                rig.note_books()
                if rig.have_all_come(last):
                    return
            time.sleep(0.2)

    def _keep_logs(self) -> None:
        if self.options.logs is not None:
            self.options.logs.mkdir(parents=True, exist_ok=True)
            for log in self._directory.glob("*.log"):
                shutil.copy(log, self.options.logs / log.name.replace(" ", "-"))

    def _clear(self) -> None:
        try:
            self.deleted = sum(self.corner.clear(each.connect) for each in self._servers())
        except (RedisError, OSError) as error:
            self.say(
                f"The keys that begin with {self.corner.prefix} could not be deleted: "
                f"{unavailable(error)}"
            )


def _told(done: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(done.items()))
